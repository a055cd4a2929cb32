//! What the files of a run hold beside tensors.

use serde::{Deserialize, Serialize};

use crate::{
    config::{Config, Normalization, Semantics},
    data::Dataset,
    digest::Digest,
    method::Terms,
};

/// The note in a weight file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WeightsNote {
    /// Version of pinpoint that wrote the file.
    pub version: String,
    /// Class names, in the order of the scores.
    pub classes: Vec<String>,
    /// How input must be normalized.
    pub normalization: Normalization,
    /// The threshold from which on mask values are foreground.
    pub threshold: f64,
    /// The semantics that it was trained with.
    pub semantics: Semantics,
    /// Epochs trained.
    pub epoch: usize,
    /// The settings that it was trained with; older versions did not record them.
    #[serde(default)]
    pub settings: Option<Box<Config>>,
}

impl WeightsNote {
    /// The note for weights trained with these settings.
    pub fn new(config: &Config, classes: &[String], epoch: usize) -> Self {
        Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            classes: classes.to_owned(),
            normalization: config.preprocess.normalization,
            threshold: 0.5,
            semantics: config.semantics,
            epoch,
            settings: Some(Box::new(config.clone())),
        }
    }
}

/// The progress of a run: all of a checkpoint but its tensors.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Position {
    /// The names and classes of the samples learned from, as SHA-256; older versions kept a number
    /// that cannot be compared with it.
    #[serde(default)]
    pub samples: Option<String>,
    /// The epoch in progress.
    pub epoch: usize,
    /// Its next step.
    pub step: usize,
    /// Updates the optimizer has made.
    pub updates: u64,
    /// Sums over the epoch so far.
    pub sums: Sums,
    /// The epoch whose weights are kept.
    pub best: Option<Best>,
    /// Finished epochs.
    pub records: Vec<EpochRecord>,
    /// How many processes train, if several do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ranks: Option<usize>,
}

impl Position {
    /// Whether no step was made yet.
    pub fn is_start(&self) -> bool {
        (self.epoch, self.step) == (0, 0)
    }

    /// Where a training on a dataset starts, by several processes if so many are given.
    pub fn start(dataset: &Dataset, ranks: Option<usize>) -> Self {
        let mut digest = Digest::default();
        for sample in dataset.train.iter().chain(&dataset.valid) {
            for text in [&sample.id, &dataset.classes[sample.label]] {
                digest.add(text.as_bytes());
                // UTF-8 never has this byte.
                digest.add(&[0xff]);
            }
        }
        Self { samples: Some(digest.hex()), ranks, ..Self::default() }
    }

    /// Refuses a position that no run of `epochs` epochs with `steps` steps each can have.
    pub fn check(&self, epochs: usize, steps: usize) -> Result<(), String> {
        let Self { epoch, step, updates, records, .. } = self;
        // A run may have been interrupted between the last step of an epoch and its end.
        let is_within = *epoch <= epochs && *step <= steps;
        let done = epoch.checked_mul(steps).and_then(|done| done.checked_add(*step));
        if is_within && done.is_some_and(|done| done as u64 == *updates) && records.len() == *epoch
        {
            return Ok(());
        }
        Err(format!(
            "it claims epoch {epoch}, step {step} after {updates} updates and {} finished epochs, \
             of {epochs} epochs with {steps} steps",
            records.len()
        ))
    }
}

/// Sums over the images of an epoch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "each is the sum of what it is named after")]
pub struct Sums {
    pub images: usize,
    #[serde(alias = "looks")]
    pub localizer_passes: usize,
    pub mistakes: f64,
    pub terms: Terms,
    pub seconds: f64,
}

/// The epoch whose weights are kept.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "as in `EpochRecord`")]
pub struct Best {
    pub epoch: usize,
    pub error: f64,
    pub loss: f64,
}

/// One epoch, as `metrics.jsonl` and `metrics.csv` keep it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct EpochRecord {
    /// Counted from 0.
    pub epoch: usize,
    /// The learning rate.
    pub learning_rate: f64,
    /// Mean over the training images.
    pub loss_localizer: f64,
    /// Mean over the training images; none if the method has no such loss.
    pub loss_foreground: Option<f64>,
    /// Likewise.
    pub loss_background: Option<f64>,
    /// Mistakes on training images (of ours, on their foreground), in percent.
    pub train_error: f64,
    /// Localizer passes per image: 1 without erasing.
    #[serde(alias = "looks")]
    pub localizer_passes: f64,
    /// Mistakes on validation images, in percent; none without a validation split.
    pub valid_error: Option<f64>,
    /// The same by the localizer, if it predicts classes too.
    pub valid_localizer_error: Option<f64>,
    /// Cross-entropy on validation images (of ours, of localizer plus classifier).
    pub valid_loss: Option<f64>,
    /// Whether this epoch's weights are the best so far.
    pub best: bool,
    /// Time the epoch took, validation included.
    pub seconds: f64,
}
