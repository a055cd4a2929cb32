//! data_split.
