//! The supervision of a method, as a type.

use std::path::Path;

use super::{Batch, Epoch};
use crate::{
    collective::Part,
    config::Config,
    data::{Dataset, Sample, preprocess::Size},
    error::Result,
};

/// The source of a method's batches, and of all ground truth that it has access to.
///
/// Weak supervision is a matter of types: a method with a [`TrainLoader`](super::TrainLoader) is
/// given labels, in training and in validation, and has no way to ask for more.
pub trait Supervision: Sized {
    /// What one step learns from.
    type Batch: AsRef<Batch>;

    /// The ground truth of a validation image.
    type Truth;

    /// Opens a part of each batch of the training split, loaded by so many threads; the settings
    /// must have passed [`Config::check`].
    fn open(dataset: &Dataset, config: &Config, workers: usize, part: Part) -> Result<Self>;

    /// Batches in an epoch, a smaller last one included.
    fn batches(&self) -> usize;

    /// The batches of one epoch from `first_batch` on, prepared ahead in the background.
    ///
    /// The first image that fails ends the epoch with an error that names its file.
    fn epoch(&self, epoch: u64, first_batch: usize) -> Epoch<Self::Batch>;

    /// The ground truth of a validation image of this size, if there is any.
    fn truth(&self, sample: &Sample, size: Size) -> Result<Option<Self::Truth>>;

    /// The mask files of a sample that are learned from; none if only labels are.
    fn masks_of(_sample: &Sample) -> Vec<&Path> {
        Vec::new()
    }

    /// What the user should know about what is learned from.
    fn note(&self) -> Option<String> {
        None
    }
}
