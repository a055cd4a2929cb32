//! The score that chooses the epoch to keep.
//!
//! It looks at classes only: masks are for evaluation, never for choosing.

use super::Task;
use crate::{
    data::{
        loader::{EvalLoader, EvalSettings},
        preprocess::Size,
    },
    error::Result,
    model::Model,
    predict::examine,
};

/// How well a validation split was classified.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Validation {
    /// Share of images the classifier names wrongly on their foreground, in percent.
    pub(super) error: f64,
    /// Mean cross-entropy of localizer plus classifier.
    pub(super) loss: f64,
}

/// Classifies the validation split; none without one.
pub(super) fn validate(task: &Task<'_>, model: &Model) -> Result<Option<Validation>> {
    let samples = &task.dataset.valid;
    if samples.is_empty() {
        return Ok(None);
    }
    let paths = samples.iter().map(|sample| sample.image.clone()).collect();
    let settings =
        EvalSettings { workers: task.workers, max_megapixels: task.config.data.max_megapixels };
    let images = EvalLoader::new(paths, task.config.preprocess.clone(), settings);
    let (mut mistakes, mut loss) = (0, 0.0);
    for (image, sample) in images.images().zip(samples) {
        let image = image?;
        let Size { width, height } = image.geometry.padded;
        let size = [height as usize, width as usize];
        let found = examine(model, task.config, image.input, size, &task.device);
        mistakes += usize::from(found.class() != sample.label);
        let surprise = |probabilities: &[f32]| {
            -f64::from(probabilities[sample.label].max(f32::MIN_POSITIVE)).ln()
        };
        loss += surprise(&found.classifier) + surprise(&found.localizer);
    }
    let count = samples.len() as f64;
    Ok(Some(Validation { error: 100.0 * mistakes as f64 / count, loss: loss / count }))
}
