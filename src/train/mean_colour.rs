//! The colour that erasing may fill with.

use super::{TrainingTask, eval_images};
use crate::{
    config::{Config, Fill, PreprocessConfig},
    error::Result,
};

/// The mean colour of the training images, or zeros if erasing does not need it; `None` if asked to
/// stop.
pub(super) fn mean_colour(
    task: &TrainingTask<'_>,
    stop: impl Fn() -> bool,
) -> Result<Option<[f32; 3]>> {
    if task.config.erase.fill != Fill::Mean {
        return Ok(Some([0.0; 3]));
    }
    let paths = task.dataset.train.iter().map(|sample| sample.image.clone()).collect();
    let unchanged = Config { preprocess: PreprocessConfig::unchanged(), ..task.config.clone() };
    let mut images = eval_images(paths, &unchanged, task.workers);
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
    let (mean, std) = task.config.preprocess.normalization.mean_std();
    let images = task.dataset.train.len() as f64;
    Ok(Some(
        [0, 1, 2].map(|channel| ((sums[channel] / images) as f32 - mean[channel]) / std[channel]),
    ))
}
