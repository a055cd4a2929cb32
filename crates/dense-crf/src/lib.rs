//! Snaps soft labels to the edges of an image: a fully connected CRF, slices in, slices out.
//!
//! Every pixel is connected to every other. Pairs that are near each other and alike in colour
//! pull towards the same label; a few mean-field updates turn a vague mask into one that follows
//! the picture. The sums over all pairs are Gaussian filters in position and colour, computed on a
//! permutohedral lattice in time linear in the pixels.
//!
//! ```
//! use dense_crf::{Params, refine_mask};
//!
//! # fn main() -> Result<(), dense_crf::Error> {
//! // Left half dark, right half bright; the mask says so, except for one doubtful pixel.
//! let (width, height) = (8, 4);
//! let shade = |x: usize| if x < 4 { [20, 20, 20] } else { [230, 230, 230] };
//! let rgb: Vec<u8> = (0..width * height).flat_map(|i| shade(i % width)).collect();
//! let mut mask: Vec<f32> =
//!     (0..width * height).map(|i| if i % width < 4 { 0.2 } else { 0.8 }).collect();
//! mask[6] = 0.4;
//!
//! let refined = refine_mask(&rgb, width, height, &mask, &Params::natural())?;
//! assert!(refined[6] > 0.9 && refined[1] < 0.1);
//! # Ok(())
//! # }
//! ```
//!
//! [`refine_mask`] is for one mask, [`DenseCrf`] for any number of labels, and [`Params`] has the
//! parameters. The path through the modules:
//!
//! ```text
//! rgb, probabilities ─▶ crf ─▶ tile ─▶ kernel ─▶ lattice
//!                                        │
//!                                     meanfield ─▶ probabilities
//! ```
//!
//! Answers are the same, bit for bit, for any number of threads (`rayon`'s current pool).
//!
//! The model is Krähenbühl and Koltun's *Efficient Inference in Fully Connected CRFs with Gaussian
//! Edge Potentials* (2011); the filter is Adams, Baek and Davis's *Fast High-Dimensional Filtering
//! Using the Permutohedral Lattice* (2010).
#![forbid(unsafe_code)]

mod crf;
mod error;
mod kernel;
mod lattice;
mod meanfield;
mod params;
mod tile;

pub use crf::{DenseCrf, refine_mask};
pub use error::{Error, Result};
pub use params::{Appearance, Params, Smoothness};
