//! loader.
