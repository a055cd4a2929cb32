//! Pixel-level localization learned from image-level labels.
//!
//! Training is one path, and the modules below are declared in its order:
//!
//! ```text
//! data ─▶ model ⇄ method ─▶ train
//!           │
//! weights ──┴─▶ predict ─▶ metrics ─▶ evaluate ─▶ report
//! ```
//!
//! Start at [`train::fit`], at [`method::minmax::Step`], which is the method line by
//! line, or at [`evaluate::evaluate`]. `docs/method.md` has the equations,
//! `docs/data.md` says what a dataset may look like, and `ARCHITECTURE.md` has the
//! rules that keep the parts apart.
#![forbid(unsafe_code)]

mod bilinear;
mod digest;
mod error;
mod protobuf;
mod regular;

pub use error::{Error, Result};

/// Settings of one experiment, as read from TOML.
pub mod config;

/// Named random streams, the only source of randomness.
pub mod rng;

/// Processes that train one network together.
pub mod collective;

/// Statistics that methods and metrics share.
pub mod stats;

/// Where tensors live.
pub mod device;

/// Images, labels and masks: from files to augmented batches.
pub mod data;

/// The network: a backbone with a localizer and a classifier head.
pub mod model;

/// What a step of training does: our method and its baselines.
pub mod method;

/// The run directory: what training leaves on disk, whole or not at all.
pub mod run;

/// The training loop.
pub mod train;

/// Trained networks as ONNX files.
pub mod export;

/// What a method says about an image.
pub mod predict;

/// Score maps snapped to the edges of their image.
pub mod refine;

/// Scores of masks, boxes and classes against ground truth.
pub mod metrics;

/// Answers in the formats of other programs.
pub mod formats;

/// A method's answers on a split, scored.
pub mod evaluate;

/// Curves, overlays and galleries as pictures.
pub mod report;
