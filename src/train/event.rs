//! What happens during training, for whoever wants to know.
//!
//! The loop emits [`Event`]s; the terminal, `metrics.jsonl` and the tests listen
//! to the same ones.
//!
//! [`Event`]: crate::train::event::Event

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::method::Terms;

/// Something that happened during training.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// Something the user should know.
    Note(&'a str),
    /// Training starts, or goes on.
    Started {
        /// Passes over the training set in all.
        epochs: usize,
        /// Batches per pass.
        steps: usize,
        /// The first epoch and step that will be computed.
        from: (usize, usize),
    },
    /// A batch was learned from.
    Step {
        /// Counted from 0.
        epoch: usize,
        /// Counted from 0.
        step: usize,
        /// Loss of this batch.
        terms: Terms,
        /// Images learned from.
        images: usize,
        /// Of them, named wrongly; a segmenter counts the share of wrong pixels of each.
        mistakes: f64,
    },
    /// An epoch is over and validated.
    Epoch(&'a EpochRecord),
    /// The run can be resumed from here.
    Saved(&'a Path),
}

/// One epoch, as `metrics.jsonl` and `metrics.csv` keep it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EpochRecord {
    /// Counted from 0.
    pub epoch: usize,
    /// Step size that was used.
    pub learning_rate: f64,
    /// Mean over the training images.
    pub loss_localizer: f64,
    /// Mean over the training images; none if the method has no such loss.
    pub loss_foreground: Option<f64>,
    /// Likewise.
    pub loss_background: Option<f64>,
    /// Mistakes on training images (of ours, on their foreground), in percent.
    pub train_error: f64,
    /// Looks taken per image: 1 without erasing.
    pub looks: f64,
    /// Mistakes on validation images, in percent; none without a validation split.
    pub valid_error: Option<f64>,
    /// Cross-entropy on validation images (of ours, of localizer plus classifier).
    pub valid_loss: Option<f64>,
    /// Whether this epoch's weights are the best so far.
    pub best: bool,
    /// Time the epoch took, validation included.
    pub seconds: f64,
}

/// Listens to training, and may ask it to stop.
pub trait Observer {
    /// Hears of an event.
    fn hear(&mut self, event: &Event<'_>);

    /// Whether training should save its state and return.
    fn wants_to_stop(&self) -> bool {
        false
    }
}
