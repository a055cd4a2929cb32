//! What happens during training, for whoever wants to know.
//!
//! The loop emits [`Event`]s; the terminal, `metrics.jsonl` and the tests listen
//! to the same ones.
//!
//! [`Event`]: crate::train::event::Event

use std::path::Path;

pub use crate::run::EpochRecord;
use crate::{data::Dataset, method::Terms};

/// Something that happened during training.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// The dataset is read and its validation split is cut.
    Opened(&'a Dataset),
    /// Something the user should know.
    Note(&'a str),
    /// A problem that does not stop the training.
    Warning(&'a str),
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
    /// A method that does not learn in steps has come this far with a part of its work.
    Working {
        /// Which part.
        what: &'static str,
        /// Pieces of it that are done.
        done: usize,
        /// Pieces in all.
        total: usize,
    },
    /// An epoch is over and validated.
    Epoch(&'a EpochRecord),
    /// The run can be resumed from here.
    Saved(&'a Path),
}

/// Nobody listens.
impl Observer for () {
    fn observe(&mut self, _event: &Event<'_>) {}
}

/// Listens to training, and may ask it to stop.
pub trait Observer {
    /// Hears of an event.
    fn observe(&mut self, event: &Event<'_>);

    /// Whether training should save its state and return.
    fn wants_to_stop(&self) -> bool {
        false
    }
}
