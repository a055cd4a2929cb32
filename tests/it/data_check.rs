//! data_check.
