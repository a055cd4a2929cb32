//! Training as a classifier, by cross-entropy with the label, which most baselines share.
//!
//! They differ in how class scores are computed and in what the mask is made of.

use burn::{
    module::Module,
    tensor::{Device, Tensor, activation::softmax},
};

use super::{
    gradient,
    learner::{
        ImageValidation, Learned, Learner, ModelOutput, StepContext, Terms, images, input,
        most_probable,
    },
    losses::{cross_entropy, sample_predictions},
};
use crate::{
    config::{Backbone, Config, Keep, Stem},
    data::loader::{Batch, EvalImage, TrainLoader},
    model::{Branch, Pass, layers::values},
};

/// A method that trains a classifier and makes its mask of the maps or gradients of that.
pub trait Classifier {
    /// The network that it trains.
    type Network: Module + Sync;

    /// The method that it is trained as, if only its masks differ from those of that method.
    const TRAINED_AS: Option<&'static str> = None;

    /// Lays the settings it was published with over [those of all baselines](baseline).
    fn published(&self, _config: &mut Config) {}

    /// A network with weights drawn from the settings' seed.
    fn network(&self, config: &Config, classes: usize, device: &Device) -> Self::Network;

    /// The score of each class, `[B, 3, H, W]` → `[B, C]`.
    ///
    /// `dropout` says which dropout masks are drawn; `None` switches dropout off.
    fn scores(
        &self,
        network: &Self::Network,
        images: Tensor<4>,
        pass: Pass,
        config: &Config,
        dropout: Option<DropoutKey<'_>>,
    ) -> Tensor<2>;

    /// The scores `[1, C]` and the mask `[1, 1, H, W]` of one image.
    ///
    /// The mask is of the `class` given, or else of the one [`chosen`] by the scores.
    fn scores_and_mask(
        &self,
        network: &Self::Network,
        image: Tensor<4>,
        class: Option<usize>,
        config: &Config,
    ) -> (Tensor<2>, Tensor<4>);

    /// How a soft mask becomes foreground.
    fn mask_rule(&self, config: &Config) -> String;
}

/// The epoch and the samples that dropout masks are drawn for, beside which only the seed decides.
#[derive(Debug, Clone, Copy)]
pub struct DropoutKey<'a> {
    /// Counted from 0.
    pub epoch: usize,
    /// The index of each image in the training split.
    pub samples: &'a [usize],
}

/// The published settings that all baselines share: a smaller backbone, and fewer epochs.
pub fn baseline(config: &mut Config) {
    config.model.backbone = Backbone::Resnet18;
    config.model.stem = Stem::Classic;
    // There is no second classifier that would see masked images.
    config.model.classifier_scale = 1.0;
    config.pool.dropout = 0.0;
    config.train.epochs = 90;
    config.train.keep = Keep::LowestLoss;
    config.optimizer.learning_rate = 0.01;
    config.optimizer.decay_every = 30;
    config.optimizer.weight_decay = 1e-4;
}

/// The class that a mask is of: the one given, or else the one with the highest score.
pub fn chosen(scores: &Tensor<2>, class: Option<usize>) -> usize {
    class.unwrap_or_else(|| most_probable(&values(scores.clone().inner())))
}

impl<C: Classifier> Learner for C {
    type Network = C::Network;
    type Supervision = TrainLoader;

    const LEARNS_BY_MASK: bool = false;
    const TRAINED_AS: Option<&'static str> = C::TRAINED_AS;

    fn published(&self, config: &mut Config) {
        baseline(config);
        Classifier::published(self, config);
    }

    fn network(&self, config: &Config, classes: usize, device: &Device) -> C::Network {
        Classifier::network(self, config, classes, device)
    }

    fn learn(&self, network: &C::Network, batch: &Batch, context: &StepContext<'_>) -> Learned {
        let images = images(batch, context.device).autodiff();
        let pass = Pass::Train(Branch::Whole, context.share);
        let pass = if context.backbone_is_frozen() { pass.frozen() } else { pass };
        let dropout = DropoutKey { epoch: context.epoch, samples: &batch.samples };
        let scores = self.scores(network, images, pass, context.config, Some(dropout));
        let predictions = sample_predictions(scores.clone(), &batch.labels);
        let loss = cross_entropy(scores, &batch.labels).mean() * context.share.weight();
        let gradients = gradient::collect(network, loss.backward(), &context.share);
        if !context.share.counts() {
            return Learned { gradients, ..Learned::default() };
        }
        let total: f64 = predictions.iter().map(|prediction| f64::from(prediction.loss)).sum();
        Learned {
            terms: Terms::single(total / context.share.all as f64),
            gradients,
            mistakes: predictions.iter().filter(|prediction| !prediction.correct).count() as f64,
            localizer_passes: batch.labels.len(),
        }
    }

    fn validate(
        &self,
        network: &C::Network,
        image: &EvalImage,
        label: &usize,
        context: &StepContext<'_>,
    ) -> ImageValidation {
        let pass = Pass::Evaluate(Branch::Whole);
        let image = input(image, context.device);
        let scores = self.scores(network, image, pass, context.config, None);
        let probabilities = values(softmax(scores, 1));
        ImageValidation::of(&probabilities, *label)
    }

    fn localize(
        &self,
        network: &C::Network,
        image: Tensor<4>,
        class: Option<usize>,
        config: &Config,
    ) -> ModelOutput {
        let (scores, mask) = self.scores_and_mask(network, image, class, config);
        ModelOutput {
            classifier: Some(values(softmax(scores.inner(), 1))),
            localizer: None,
            scores: values(mask.inner()),
        }
    }

    fn pass(&self, network: &C::Network, images: Tensor<4>, pass: Pass, config: &Config) {
        self.scores(network, images, pass, config, None);
    }

    fn mask_rule(&self, config: &Config) -> String {
        Classifier::mask_rule(self, config)
    }
}
