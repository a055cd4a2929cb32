//! Pixel-level localization learned from image-level labels.
//!
//! Training is one path, and the modules below are declared in its order:
//!
//! ```text
//! data ─▶ …
//! ```
//!
//! `docs/data.md` says what a dataset may look like, `ARCHITECTURE.md` the rules
//! that keep the parts apart.
#![forbid(unsafe_code)]

mod error;

pub use error::{Error, Result};

/// Settings of one experiment, as read from TOML.
pub mod config;

/// Named random streams, the only source of randomness.
pub mod rng;

/// Images, labels and masks: from files to augmented batches.
pub mod data;

/// Pictures of a run: curves, overlays and galleries.
pub mod report;
