//! hostile_images.
