//! The score that chooses the epoch to keep.
//!
//! It is of what training learns from: a method that sees labels is judged by
//! labels, and masks choose only what was trained on masks.

use std::ops::ControlFlow;

use super::TrainingTask;
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

/// Judges the validation split; none without one, or if none of it can be judged.
///
/// Breaks off if `stop` says so.
pub(super) fn validate(
    task: &TrainingTask<'_>,
    stop: impl Fn() -> bool,
    judge: impl Fn(&EvalImage, &Sample) -> Result<Option<Judgement>>,
) -> Result<ControlFlow<(), Option<Validation>>> {
    let samples = &task.dataset.valid;
    let paths = samples.iter().map(|sample| sample.image.clone()).collect();
    let settings =
        EvalSettings { workers: task.workers, max_megapixels: task.config.data.max_megapixels };
    let images = EvalLoader::new(paths, task.config.preprocess.clone(), settings);
    let (mut mistakes, mut losses, mut count) = (0.0, 0.0, 0.0);
    let mut images = images.images();
    for sample in samples {
        let Some(image) = images.next_unless(&stop) else { return Ok(ControlFlow::Break(())) };
        if let Some(Judgement { mistake, loss }) = judge(&image?, sample)? {
            mistakes += mistake;
            losses += loss;
            count += 1.0;
        }
    }
    let mean = Validation { error: 100.0 * mistakes / count, loss: losses / count };
    Ok(ControlFlow::Continue((count > 0.0).then_some(mean)))
}
