//! From files on disk to augmented batches.
//!
//! ```text
//! layout ─▶ manifest ─▶ split ─▶ image ─▶ augment ─▶ loader ─▶ Batch { images, labels }
//!              │
//!              └─▶ check          mask (read by evaluation only)
//! ```

pub mod augment;
pub mod check;
pub mod image;
pub mod layout;
pub mod loader;
pub mod manifest;
pub mod mask;
pub mod npy;
pub mod preprocess;
pub mod probability;
pub mod problem;
pub mod split;
mod staging;
pub mod synthetic;

pub use layout::{Layout, OpenOptions, is_image};
pub use manifest::{Dataset, PixelBox, Sample, Split, Truth};
pub use mask::MaskRule;
pub use problem::{Problem, ProblemKind};
