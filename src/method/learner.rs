//! What a method must be able to do: learn from batches, and localize with what it learned.

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
    /// What it trains.
    type Network: Module + Sync;

    /// What it learns from, which is also all that it can see of the truth.
    type Supervision: Supervision;

    /// Whether it starts from a backbone's published weights.
    const HAS_BACKBONE: bool = true;

    /// Whether its masks take part in training, or are only read from the trained network.
    const LEARNS_BY_MASK: bool = true;

    /// The method whose training this one's is, step by step, if it only reads its mask otherwise.
    const TRAINED_AS: Option<&'static str> = None;

    /// Lays the settings it was published with over the defaults.
    fn published(&self, config: &mut Config);

    /// A network with weights drawn from the settings' seed.
    fn network(&self, config: &Config, classes: usize, device: &Device) -> Self::Network;

    /// A network whose weights are about to be loaded, all of them.
    ///
    /// Drawing them first would be the slowest part of opening a run.
    fn blank(&self, config: &Config, classes: usize, device: &Device) -> Self::Network {
        self.network(config, classes, device)
    }

    /// Computes the loss of a batch and its gradient, without moving the weights.
    ///
    /// Of a batch that several ranks share, each gives its contribution: summed over the ranks,
    /// what comes of the step is that of the whole batch.
    fn learn(
        &self,
        network: &Self::Network,
        batch: &BatchOf<Self>,
        context: &StepContext<'_>,
    ) -> Learned;

    /// How far the network is from the truth about a validation image.
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

    /// The same for an image too large to be held, with scores at its own size; none if the
    /// network must see it whole.
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

    /// One forward pass whose only purpose is what it does to batch norm's statistics.
    fn pass(&self, network: &Self::Network, images: Tensor<4>, pass: Pass, config: &Config);

    /// How a soft mask becomes foreground, for the protocol of a report.
    fn mask_rule(&self, config: &Config) -> String;
}

/// What a step of `L` learns from.
pub type BatchOf<L> = <<L as Learner>::Supervision as Supervision>::Batch;

/// What `L` may know of a validation image.
pub type TruthOf<L> = <<L as Learner>::Supervision as Supervision>::Truth;

/// What a step needs to know beside its batch.
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
    /// What of the batch this rank learns from.
    pub share: Share,
}

impl StepContext<'_> {
    /// Whether the backbone is not to learn yet, its statistics included.
    pub fn backbone_is_frozen(&self) -> bool {
        self.epoch < self.config.optimizer.frozen_epochs
    }
}

/// What came of a step.
#[derive(Debug, Default)]
pub struct Learned {
    /// Means over the batch; of a share of it, the share's contribution to them.
    pub terms: Terms,
    /// Gradient of the weighted loss, batch mean.
    pub gradients: GradientSum,
    /// Images that were named wrongly; a segmenter counts the share of wrong pixels of each.
    pub mistakes: f64,
    /// How many images went through the localizer, those of erasing rounds included.
    pub localizer_passes: usize,
}

/// Class probabilities and pixel scores of one image: what the network gave and no more.
///
/// A [`Prediction`](crate::Prediction) is what is made of it for a user: refined, cut and named.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelOutput {
    /// Probability of each class, by the classifier; none for a method without one.
    pub classifier: Option<Vec<f32>>,
    /// Probability of each class, by the localizer, if that is another network.
    pub localizer: Option<Vec<f32>>,
    /// Soft mask, row by row, 1 is foreground; one half is where the method itself would cut.
    ///
    /// One score per pixel of the network's input, or of the image itself once the preprocessing
    /// is undone.
    pub scores: Vec<f32>,
}

/// The terms of the loss; those that a method does not have are absent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Terms {
    /// Of what gives the mask.
    pub localizer: f64,
    /// Of a classifier that sees the foreground.
    pub foreground: Option<f64>,
    /// Of a classifier that sees the background.
    pub background: Option<f64>,
}

/// How far a network is from the truth about one image.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ImageValidation {
    /// 1 if it names another class; a segmenter's share of wrong pixels.
    pub mistake: f64,
    /// The same of a localizer that names a class of its own.
    pub localizer_mistake: Option<f64>,
    /// What training minimizes, without evidence about the background.
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
    /// Of a method that minimizes one thing only.
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
