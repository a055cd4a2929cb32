//! The events of a training, and those who observe them.
//!
//! The training loop emits [`Event`]s; the terminal, the training curves and the tests observe the
//! same ones.
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
    /// Training starts or resumes.
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
        /// How many of them are misclassified; for U-Net, the sum of their shares of wrong pixels.
        mistakes: f64,
    },
    /// Progress of work other than learning in steps.
    Working {
        /// The part of its work that is under way.
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

/// Ignores all events, and never stops the training.
impl Observer for () {
    fn observe(&mut self, _event: &Event<'_>) {}
}

/// Is told the events of a training, and may stop it.
pub trait Observer {
    /// Is told an event.
    fn observe(&mut self, event: &Event<'_>);

    /// Whether training should save its state and return.
    fn wants_to_stop(&self) -> bool {
        false
    }
}
