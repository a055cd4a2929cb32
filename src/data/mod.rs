//! From files on disk to augmented batches.
//!
//! ```text
//! layout ─▶ manifest ─▶ split ─▶ image ─▶ augment ─▶ loader ─▶ Batch { images, labels }
//!              │
//!              └─▶ check          mask (read by evaluation only)
//! ```

/// Which files are which sample: datasets, splits, samples.
pub mod manifest;

/// What can be wrong with a dataset: collected, never stopped at.
pub mod problem;

/// The dataset layouts that are read as they are.
pub mod layout;

/// Everything that is wrong with a dataset, at once.
pub mod check;

/// Folders that appear whole or not at all.
mod staging;

/// Validation splits and folds, by the published algorithm.
pub mod split;

/// Decoding of images, within limits.
pub mod image;

/// Decoding of ground-truth masks: one meaning, whatever the file's.
pub mod mask;

/// Score maps as NumPy's `.npy` files.
pub mod npy;

/// Probability maps from pictures and arrays.
pub mod probability;

/// Image to network input and scores back to image pixels.
pub mod preprocess;

/// Seeded random variation of training images.
pub mod augment;

/// Parallel, prefetching, deterministic batches.
pub mod loader;

/// A labelled dataset with exact masks, drawn in code.
pub mod synthetic;

pub use layout::{Layout, OpenOptions, is_image};
pub use manifest::{Dataset, PixelBox, Sample, Split, Truth};
pub use mask::MaskRule;
pub use problem::{Problem, ProblemKind};
