//! The colour that erasing may fill with.

use super::TrainingTask;
use crate::{
    config::{Config, Fill, PreprocessConfig},
    data::loader::EvalImages,
    error::Result,
};

/// The mean colour of the training images, if erasing needs it; none if it was asked to stop.
pub(super) fn mean_colour(
    task: &TrainingTask<'_>,
    stop: impl Fn() -> bool,
) -> Result<Option<[f32; 3]>> {
    let Config { data, preprocess, erase, .. } = task.config;
    if erase.fill != Fill::Mean {
        return Ok(Some([0.0; 3]));
    }
    let paths = task.dataset.train.iter().map(|sample| sample.image.clone()).collect();
    let unchanged = PreprocessConfig::unchanged();
    let mut images = EvalImages::new(paths, unchanged, data.max_megapixels, task.workers);
    let mut sums = [0.0_f64; 3];
    for _ in &task.dataset.train {
        let Some(image) = images.next_unless(&stop) else { return Ok(None) };
        let image = image?.rgb;
        let pixels = f64::from(image.width()) * f64::from(image.height());
        for (channel, sum) in sums.iter_mut().enumerate() {
            let total: u64 = image.pixels().map(|pixel| u64::from(pixel[channel])).sum();
            *sum += total as f64 / pixels / 255.0;
        }
    }
    let (mean, std) = preprocess.normalization.mean_std();
    let images = task.dataset.train.len() as f64;
    Ok(Some(
        [0, 1, 2].map(|channel| ((sums[channel] / images) as f32 - mean[channel]) / std[channel]),
    ))
}
