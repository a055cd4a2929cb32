//! augment.
