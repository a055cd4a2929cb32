//! What a method implements: learning from a batch, validation, and localization.

use burn::{
    module::Module,
    tensor::{Device, Tensor},
};
use serde::{Deserialize, Serialize};

use super::{
    GradientSum,
    tiles::{LargeImage, Tiling},
};
use crate::{
    collective::Share,
    config::Config,
    data::loader::{Batch, EvalImage, Supervision},
    model::{Pass, layers::tensor},
};

/// A method that learns where objects are.
pub trait Learner {
    /// The network that it trains.
    type Network: Module + Sync;

    /// What it learns from, which is also all of the ground truth that it has access to.
    type Supervision: Supervision;

    /// Whether it starts from a backbone's published weights.
    const HAS_BACKBONE: bool = true;

    /// Whether masks take part in its training, or are only computed from the trained network.
    const LEARNS_BY_MASK: bool = true;

    /// The method that it is trained as, if only its masks differ from those of that method.
    const TRAINED_AS: Option<&'static str> = None;

    /// Sets what the method was published with, where that differs from the defaults.
    fn published(&self, config: &mut Config);

    /// A network with weights drawn from the settings' seed.
    fn network(&self, config: &Config, classes: usize, device: &Device) -> Self::Network;

    /// A network whose weights are all about to be loaded.
    ///
    /// Drawing random ones first would be the slowest part of opening a run.
    fn blank(&self, config: &Config, classes: usize, device: &Device) -> Self::Network {
        self.network(config, classes, device)
    }

    /// Computes the loss of a batch and its gradient, without updating the weights.
    ///
    /// If several ranks share the batch, each gives its contribution: their sum is the result for
    /// the whole batch.
    fn learn(
        &self,
        network: &Self::Network,
        batch: &BatchOf<Self>,
        context: &StepContext<'_>,
    ) -> Learned;

    /// Loss and mistake on a validation image.
    fn validate(
        &self,
        network: &Self::Network,
        image: &EvalImage,
        truth: &TruthOf<Self>,
        context: &StepContext<'_>,
    ) -> ImageValidation;

    /// Class and pixel scores of one image of `[1, 3, H, W]`, at that size.
    ///
    /// Where the mask depends on the class, it is of the `class` given, or else of the one that
    /// the network finds most probable.
    fn localize(
        &self,
        network: &Self::Network,
        image: Tensor<4>,
        class: Option<usize>,
        config: &Config,
    ) -> ModelOutput;

    /// The same for an image whose input is too large to be held, with scores at the size of the
    /// image; `None` if the method cannot work in tiles.
    fn localize_tiled(
        &self,
        _network: &Self::Network,
        _image: LargeImage<'_>,
        _tiling: Tiling,
        _config: &Config,
        _device: &Device,
    ) -> Option<ModelOutput> {
        None
    }

    /// One forward pass, only to update the running statistics of batch norm.
    fn pass(&self, network: &Self::Network, images: Tensor<4>, pass: Pass, config: &Config);

    /// How a soft mask becomes foreground, for the protocol of a report.
    fn mask_rule(&self, config: &Config) -> String;
}

/// What a step of `L` learns from.
pub type BatchOf<L> = <<L as Learner>::Supervision as Supervision>::Batch;

/// The ground truth of a validation image that `L` has access to.
pub type TruthOf<L> = <<L as Learner>::Supervision as Supervision>::Truth;

/// What a step needs beside its batch.
#[derive(Debug, Clone)]
pub struct StepContext<'a> {
    /// Settings of the run.
    pub config: &'a Config,
    /// Counted from 0.
    pub epoch: usize,
    /// Where tensors live, without differentiation.
    pub device: &'a Device,
    /// Mean colour of the normalized training images, if erasing fills with it.
    pub mean_colour: [f32; 3],
    /// The part of the batch that this rank learns from.
    pub share: Share,
}

impl StepContext<'_> {
    /// Whether the backbone is frozen in this epoch, its running statistics included.
    pub fn backbone_is_frozen(&self) -> bool {
        self.epoch < self.config.optimizer.frozen_epochs
    }
}

/// The result of a step.
#[derive(Debug, Default)]
pub struct Learned {
    /// The loss: means over the batch, or the contribution of this rank's share to them.
    pub terms: Terms,
    /// Gradient of the weighted loss, batch mean.
    pub gradients: GradientSum,
    /// Number of misclassified images; for U-Net, the sum of the images' shares of wrong pixels.
    pub mistakes: f64,
    /// Number of images passed through the localizer, those of erasing rounds included.
    pub localizer_passes: usize,
}

/// Class probabilities and pixel scores of one image, as the network gives them.
///
/// A [`Prediction`](crate::Prediction) is made of it by refining, cutting and naming the class.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelOutput {
    /// Probability of each class, by the classifier; none for a method without one.
    pub classifier: Option<Vec<f32>>,
    /// Probability of each class, by the localizer, if that is another network.
    pub localizer: Option<Vec<f32>>,
    /// Soft mask, row by row, 1 is foreground; the method's own cut is at one half.
    ///
    /// One score per pixel of the network's input, or of the image once the preprocessing is
    /// undone.
    pub scores: Vec<f32>,
}

/// The terms of the loss; those that a method does not have are absent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Terms {
    /// Of the localizer, which gives the mask.
    pub localizer: f64,
    /// Of the classifier on the foreground.
    pub foreground: Option<f64>,
    /// Of the classifier on the background.
    pub background: Option<f64>,
}

/// Loss and mistake on one validation image.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ImageValidation {
    /// 1 if the class is wrong, else 0; for U-Net, the share of wrong pixels.
    pub mistake: f64,
    /// The same by the localizer, if it predicts the class too.
    pub localizer_mistake: Option<f64>,
    /// The loss that training minimizes, without its term on the background.
    pub loss: f64,
}

impl ImageValidation {
    /// Whether the most probable class is the label, and the cross-entropy against it.
    pub fn of(probabilities: &[f32], label: usize) -> Self {
        Self {
            mistake: f64::from(u8::from(most_probable(probabilities) != label)),
            localizer_mistake: None,
            loss: -f64::from(probabilities[label].max(f32::MIN_POSITIVE)).ln(),
        }
    }
}

impl Terms {
    /// The terms of a method with a single loss.
    pub fn single(loss: f64) -> Self {
        Self { localizer: loss, ..Self::default() }
    }

    /// The sum of the terms.
    pub fn total(&self) -> f64 {
        self.localizer + self.foreground.unwrap_or(0.0) + self.background.unwrap_or(0.0)
    }

    /// Adds another mean, counted `weight` times.
    pub fn add(&mut self, other: &Self, weight: f64) {
        let add = |sum: Option<f64>, term: Option<f64>| {
            term.map(|term| sum.unwrap_or(0.0) + term * weight).or(sum)
        };
        self.localizer += other.localizer * weight;
        self.foreground = add(self.foreground, other.foreground);
        self.background = add(self.background, other.background);
    }

    /// Each term, divided by a count.
    pub fn over(&self, count: f64) -> Self {
        Self {
            localizer: self.localizer / count,
            foreground: self.foreground.map(|term| term / count),
            background: self.background.map(|term| term / count),
        }
    }
}

/// The images of a batch, `[B, 3, H, W]`.
pub(crate) fn images(batch: &Batch, device: &Device) -> Tensor<4> {
    let shape = [batch.labels.len(), 3, batch.height, batch.width];
    tensor(batch.images.clone(), shape, device)
}

/// The network's input for an image to evaluate, `[1, 3, H, W]`.
pub(crate) fn input(image: &EvalImage, device: &Device) -> Tensor<4> {
    let [height, width] = image.geometry.padded.rows_columns();
    tensor(image.input.clone(), [1, 3, height, width], device)
}

/// The index of the largest value, the first of equals.
pub fn most_probable(probabilities: &[f32]) -> usize {
    let larger = |best: usize, next: usize| {
        if probabilities[next] > probabilities[best] { next } else { best }
    };
    (0..probabilities.len()).reduce(larger).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_equals_is_most_probable() {
        assert_eq!(most_probable(&[0.2, 0.4, 0.4]), 1);
        assert_eq!(most_probable(&[]), 0);
    }

    #[test]
    fn terms_that_a_method_does_not_have_stay_absent() {
        let mut sum = Terms::default();
        sum.add(&Terms::single(2.0), 3.0);
        assert_eq!(sum, Terms::single(6.0));
        sum.add(&Terms { localizer: 0.0, foreground: Some(1.0), background: None }, 2.0);
        assert_eq!(
            sum.over(2.0),
            Terms { localizer: 3.0, foreground: Some(1.0), background: None }
        );
        assert_eq!(sum.total(), 8.0);
    }
}
