//! The score that chooses the epoch to keep.
//!
//! It is of what training learns from: a method that sees labels is judged by
//! labels, and masks choose only what was trained on masks.

use super::Task;
use crate::{
    data::{
        Sample,
        loader::{EvalImage, EvalLoader, EvalSettings},
    },
    error::Result,
    method::Judgement,
};

/// How well a validation split was learned.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Validation {
    /// Share of images that are named wrongly, or of pixels, in percent.
    pub(super) error: f64,
    /// Mean loss.
    pub(super) loss: f64,
}

/// Judges the validation split; none without one.
pub(super) fn validate(
    task: &Task<'_>,
    judge: impl Fn(&EvalImage, &Sample) -> Result<Judgement>,
) -> Result<Option<Validation>> {
    let samples = &task.dataset.valid;
    if samples.is_empty() {
        return Ok(None);
    }
    let paths = samples.iter().map(|sample| sample.image.clone()).collect();
    let settings =
        EvalSettings { workers: task.workers, max_megapixels: task.config.data.max_megapixels };
    let images = EvalLoader::new(paths, task.config.preprocess.clone(), settings);
    let (mut mistakes, mut losses) = (0.0, 0.0);
    for (image, sample) in images.images().zip(samples) {
        let Judgement { mistake, loss } = judge(&image?, sample)?;
        mistakes += mistake;
        losses += loss;
    }
    let count = samples.len() as f64;
    Ok(Some(Validation { error: 100.0 * mistakes / count, loss: losses / count }))
}
