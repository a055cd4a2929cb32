//! parity.
