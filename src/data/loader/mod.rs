//! Parallel, prefetching, deterministic batches.
//!
//! Every random draw comes from a stream named by *(seed, epoch, sample)* and
//! results are put back in order, so the number of workers, and who finishes
//! first, never change a byte.

mod cache;
mod evaluation;
mod supervised;
mod supervision;
mod training;

use std::{any::Any, path::Path};

pub use evaluation::{EvalImage, EvalImages, prefetch, read_for_evaluation};
use image::RgbImage;
pub use supervised::{SupervisedBatch, SupervisedEpoch, SupervisedLoader};
pub use supervision::{Batches, Supervision};
pub use training::{Batch, Epoch, TrainLoader};

use super::{
    image::{read_rgb, unusable},
    preprocess::{Size, check_upscaled},
};
use crate::{
    config::PreprocessConfig,
    error::{Error, Result},
};

/// Decodes an image that is not too large once it is enlarged.
fn read_to_enlarge(
    path: &Path,
    preprocess: &PreprocessConfig,
    max_megapixels: u32,
) -> Result<RgbImage> {
    let image = read_rgb(path, max_megapixels)?;
    check_upscaled(path, Size::of(&image), preprocess.upscale_short_side, max_megapixels)?;
    Ok(image)
}

/// Names the file at which a worker panicked.
///
/// Decoders of damaged files are where this happens; the user can act on the file.
fn panicked(path: &Path, payload: &(dyn Any + Send)) -> Error {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    let reason =
        text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("no reason given");
    let problem = format!("preparing the image failed unexpectedly ({reason})");
    unusable(path, problem, "save the image anew or remove it, and please report this as a bug")
}
