//! Min-max entropy with recursive erasing: low entropy on the foreground, high on the background.
//!
//! Belharbi et al., *Min-max entropy for weakly supervised pointwise
//! localization*, 2019. The localizer turns an image into a mask; the classifier
//! must predict the class from the foreground, and the uniform distribution from the
//! background. [`step`](crate::method::minmax::step) is Algorithm 1 of the paper.

/// Trust coefficients of recursive erasing.
pub mod trust;

/// The size constraint.
pub mod size;

/// Erasing a mask from an image.
pub mod erase;

/// One training step: Algorithm 1.
pub mod step;

/// Class and mask of preprocessed images.
pub mod localize;

/// The same for images of any size.
pub mod tiled;

use burn::tensor::{Device, Tensor};

pub use self::step::{Outcome, Step};
use self::{localize::localize, size::Barrier, tiled::localize_tiled, trust::Trust};
use super::{
    dropout::Dropout,
    learner::{
        ImageValidation, Learned, Learner, StepContext, Terms, images, input,
        negative_log_likelihood,
    },
    output::{ModelOutput, most_probable},
    tiles::{LargeImage, Tiling},
};
use crate::{
    config::{Config, Evidence},
    data::loader::{Batch, EvalImage, TrainLoader},
    model::{Model, Pass, Rules},
};

/// The method, to be trained and asked.
#[derive(Debug, Clone, Copy)]
pub struct Minmax;

impl Learner for Minmax {
    type Network = Model;
    type Supervision = TrainLoader;

    /// The defaults of all settings are what this method was published with.
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
        let dropout = Dropout::draw(
            config.pool.dropout,
            model.classes(),
            cells,
            config.seed,
            epoch as u64,
            &batch.samples,
        );
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
        let terms = Terms {
            localizer: losses.localizer,
            foreground: Some(losses.foreground),
            background: Some(losses.background),
        };
        let localizer_passes = localizer_passes.iter().sum();
        Learned { terms, gradients, mistakes: mistakes as f64, localizer_passes }
    }

    /// By the class only: the classifier's mistake, and the negative log-likelihood of both heads.
    fn validate(
        &self,
        model: &Model,
        image: &EvalImage,
        label: &usize,
        context: &StepContext<'_>,
    ) -> ImageValidation {
        let output = localize(model, context.config, input(image, context.device));
        let score = |probabilities: Option<Vec<f32>>| {
            let probabilities = probabilities.expect("both heads name a class");
            let is_wrong = most_probable(&probabilities) != *label;
            (f64::from(u8::from(is_wrong)), negative_log_likelihood(&probabilities, *label))
        };
        let (mistake, loss) = score(output.classifier);
        let (localizer_mistake, localizer_loss) = score(output.localizer);
        ImageValidation {
            mistake,
            localizer_mistake: Some(localizer_mistake),
            loss: loss + localizer_loss,
        }
    }

    /// The mask weighs every class's map by its probability, so that no class need be given.
    fn localize(
        &self,
        model: &Model,
        image: Tensor<4>,
        _class: Option<usize>,
        config: &Config,
    ) -> ModelOutput {
        localize(model, config, image)
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
