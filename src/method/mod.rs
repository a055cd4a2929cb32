//! What a step of training does: our method and its rivals.

/// Min-max entropy with recursive erasing.
pub mod minmax;
