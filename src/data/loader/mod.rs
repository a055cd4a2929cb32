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

use std::{
    panic::{self, AssertUnwindSafe},
    path::Path,
};

pub use evaluation::{EvalImage, EvalImages, prefetch, read_for_evaluation};
use image::RgbImage;
pub use supervised::{SupervisedBatch, SupervisedLoader};
pub use supervision::Supervision;
pub use training::{Batch, Epoch, TrainLoader};

use super::{
    image::read_rgb,
    preprocess::{Size, check_upscaled},
};
use crate::{
    config::PreprocessConfig,
    error::{Error, Result},
};

/// Decodes an image, and refuses it if preprocessing would enlarge it beyond the limit.
fn read_to_enlarge(
    path: &Path,
    preprocess: &PreprocessConfig,
    max_megapixels: u32,
) -> Result<RgbImage> {
    let image = read_rgb(path, max_megapixels)?;
    check_upscaled(path, Size::of(&image), preprocess.upscale_short_side, max_megapixels)?;
    Ok(image)
}

/// Runs `prepare` on a file, and turns a panic, as decoders may on damaged files, into an error
/// that names the file.
fn naming<T>(path: &Path, prepare: impl FnOnce() -> Result<T>) -> Result<T> {
    panic::catch_unwind(AssertUnwindSafe(prepare)).unwrap_or_else(|payload| {
        let text = payload.downcast_ref::<String>().map(String::as_str);
        let reason =
            text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("no reason given");
        let problem = format!("preparing the image failed unexpectedly ({reason})");
        let remedy = "save the image anew or remove it, and please report this as a bug";
        Err(Error::image(path, problem, remedy))
    })
}
