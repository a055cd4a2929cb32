//! Min-max entropy with recursive erasing: low entropy on the foreground, high on the background.
//!
//! Belharbi et al., *Min-max entropy for weakly supervised pointwise
//! localization*, 2019. The localizer turns an image into a mask; the classifier
//! must predict the class from the foreground, and the uniform distribution from the
//! background. [`step`] is Algorithm 1 of the paper.

pub mod erase;
pub mod size;
pub mod step;
mod tiled;
pub mod trust;

use burn::tensor::{Device, Tensor, activation::softmax};

pub use self::step::{Outcome, Step};
use self::{size::Barrier, tiled::localize_tiled, trust::Trust};
use super::{
    dropout::Dropout,
    learner::{ImageValidation, Learned, Learner, ModelOutput, StepContext, images, input},
    tiles::{LargeImage, Tiling},
};
use crate::{
    config::{Config, Evidence},
    data::loader::{Batch, EvalImage, TrainLoader},
    model::{Branch, Model, Pass, Rules, layers::values, mask::foreground},
};

/// The method.
#[derive(Debug, Clone, Copy)]
pub struct Minmax;

impl Learner for Minmax {
    type Network = Model;
    type Supervision = TrainLoader;

    /// The defaults are the published settings of this method.
    fn published(&self, _config: &mut Config) {}

    fn network(&self, config: &Config, classes: usize, device: &Device) -> Model {
        Model::new(config, classes, device)
    }

    fn blank(&self, config: &Config, classes: usize, device: &Device) -> Model {
        Model::blank(config, classes, device)
    }

    fn learn(&self, model: &Model, batch: &Batch, context: &StepContext<'_>) -> Learned {
        let StepContext { config, epoch, .. } = *context;
        let cells = model.cells([batch.height, batch.width], &Rules::new(config));
        let dropout = Dropout::draw(config, model.classes(), cells, epoch, &batch.samples);
        let step = Step {
            config,
            model,
            images: images(batch, context.device),
            labels: &batch.labels,
            dropout: &dropout,
            rounds: if epoch < config.erase.first_epoch { 0 } else { config.erase.rounds },
            trust: Trust::new(batch.count(), config.erase.sigma, config.semantics),
            mean_colour: context.mean_colour,
            size: Barrier::at(&config.loss.size, epoch),
            frozen: context.backbone_is_frozen(),
            share: context.share,
        };
        let Outcome { losses, gradients, mistakes, localizer_passes, .. } = step.run();
        let localizer_passes = localizer_passes.iter().sum();
        Learned { terms: losses, gradients, mistakes: mistakes as f64, localizer_passes }
    }

    /// From the label only: the mistake of the classifier, and the negative log-likelihood of both
    /// heads.
    fn validate(
        &self,
        model: &Model,
        image: &EvalImage,
        label: &usize,
        context: &StepContext<'_>,
    ) -> ImageValidation {
        let output = self.localize(model, input(image, context.device), None, context.config);
        let [classifier, localizer] = [output.classifier, output.localizer].map(|probabilities| {
            ImageValidation::of(&probabilities.expect("both heads name a class"), *label)
        });
        ImageValidation {
            mistake: classifier.mistake,
            localizer_mistake: Some(localizer.mistake),
            loss: classifier.loss + localizer.loss,
        }
    }

    /// Mask and class probabilities of the localizer, and those of the classifier on the
    /// foreground.
    ///
    /// The mask is made of the maps of all classes, so that `class` is not used.
    fn localize(
        &self,
        model: &Model,
        image: Tensor<4>,
        _class: Option<usize>,
        config: &Config,
    ) -> ModelOutput {
        let rules = Rules::new(config);
        let [_, _, height, width] = image.dims();
        let response = model.localize(image.clone(), Pass::Evaluate(Branch::Whole), &rules, None);
        let localizer = values(softmax(response.scores.clone(), 1));
        let mask = response.mask([height, width], &rules);
        let shown = foreground(image, mask.clone());
        let classified = model.classify(shown, Pass::Evaluate(Branch::Foreground), &rules, None);
        ModelOutput {
            classifier: Some(values(softmax(classified.scores, 1))),
            localizer: Some(localizer),
            scores: values(mask),
        }
    }

    fn localize_tiled(
        &self,
        model: &Model,
        image: LargeImage<'_>,
        tiling: Tiling,
        config: &Config,
        device: &Device,
    ) -> Option<ModelOutput> {
        Some(localize_tiled(model, config, image, tiling, device))
    }

    fn pass(&self, model: &Model, images: Tensor<4>, pass: Pass, config: &Config) {
        model.localize(images, pass, &Rules::new(config), None);
    }

    fn mask_rule(&self, config: &Config) -> String {
        let evidence = match config.evidence() {
            Evidence::Weighted => "class maps weighed by probability",
            Evidence::Centred => "class maps less their mean, weighed by probability",
            Evidence::Spread => "spread of the class maps",
            Evidence::Auto => "spread of the class maps (their difference if there are two)",
        };
        format!("{evidence}, brought to [0, 1], cut at {}", config.mask.threshold)
    }
}
