//! split.
