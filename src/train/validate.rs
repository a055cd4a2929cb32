//! The validation score, by which the epoch to keep is chosen.
//!
//! Validation has the same supervision as training: a method that learns from labels is validated
//! on labels, and only one that learns from masks on masks.

use std::ops::ControlFlow;

use super::{TrainingTask, eval_images};
use crate::{
    data::{Sample, loader::EvalImage},
    error::Result,
    method::ImageValidation,
};

/// The scores of a validation split.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Validation {
    /// Share of misclassified images, or of wrong pixels, in percent.
    pub(super) error: f64,
    /// The same by the localizer, if it predicts classes too.
    pub(super) localizer_error: Option<f64>,
    /// Mean loss.
    pub(super) loss: f64,
}

/// Scores the validation split; `None` if it is empty or has no ground truth for this method.
///
/// Breaks off if `stop` says so.
pub(super) fn validate(
    task: &TrainingTask<'_>,
    stop: impl Fn() -> bool,
    score: impl Fn(&EvalImage, &Sample) -> Result<Option<ImageValidation>>,
) -> Result<ControlFlow<(), Option<Validation>>> {
    let samples = &task.dataset.valid;
    let mine = &samples[task.ranks.part().range(samples.len())];
    let paths = mine.iter().map(|sample| sample.image.clone()).collect();
    let mut images = eval_images(paths, task.config, task.workers);
    // One score per image, unless asked to stop.
    let scores = mine.iter().map(|sample| {
        let image = images.next_unless(&stop);
        image.map(|image| score(&image?, sample)).transpose()
    });
    let scores: Vec<Option<Option<ImageValidation>>> =
        task.ranks.agree(scores.collect::<Result<_>>())?;
    if task.ranks.any(scores.contains(&None)) {
        return Ok(ControlFlow::Break(()));
    }

    // For each image its numbers and whether it has any, padded so that ranks send equally many.
    let mut rows = vec![[0.0; 5]; samples.len().div_ceil(task.ranks.size())];
    for (row, score) in rows.iter_mut().zip(scores.into_iter().flatten()) {
        if let Some(ImageValidation { mistake, localizer_mistake, loss }) = score {
            let localizer = localizer_mistake.map_or([0.0; 2], |mistake| [mistake, 1.0]);
            *row = [mistake, loss, 1.0, localizer[0], localizer[1]];
        }
    }
    let mut sums = [0.0; 5];
    for row in task.ranks.all_gather(rows.as_flattened()).chunks_exact(5) {
        sums.iter_mut().zip(row).for_each(|(sum, value)| *sum += value);
    }
    let [mistakes, losses, count, of_localizer, localized] = sums;
    let mean = Validation {
        error: 100.0 * mistakes / count,
        localizer_error: (localized > 0.0).then(|| 100.0 * of_localizer / localized),
        loss: losses / count,
    };
    Ok(ControlFlow::Continue((count > 0.0).then_some(mean)))
}
