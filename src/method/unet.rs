//! Full supervision by masks, as an upper bound.
//!
//! The only method that is given masks, in training and in choosing its epoch; the type of its
//! supervision says so, and no other method can be given them.

use burn::tensor::{Device, Tensor, activation::log_softmax};

use super::{
    classifier::baseline,
    decision, gradient,
    learner::{ImageValidation, Learned, Learner, ModelOutput, StepContext, Terms, images, input},
};
use crate::{
    config::{Config, Decision},
    data::{
        loader::{EvalImage, SupervisedBatch, SupervisedLoader},
        mask::Mask,
    },
    model::{
        Branch, Pass,
        layers::{tensor, values},
        unet::Unet,
    },
};

/// A U-Net trained on masks.
#[derive(Debug, Clone, Copy)]
pub struct FullSupervision;

impl Learner for FullSupervision {
    type Network = Unet;
    type Supervision = SupervisedLoader;

    const HAS_BACKBONE: bool = false;
    const LEARNS_BY_MASK: bool = false;

    fn published(&self, config: &mut Config) {
        baseline(config);
        config.optimizer.learning_rate = 0.1;
    }

    fn network(&self, config: &Config, _classes: usize, device: &Device) -> Unet {
        Unet::new(config, device)
    }

    fn learn(&self, network: &Unet, batch: &SupervisedBatch, context: &StepContext<'_>) -> Learned {
        let pictures = &batch.images;
        let (count, pixels) = (pictures.labels.len(), pictures.height * pictures.width);
        let pass = Pass::Train(Branch::Whole, context.share);
        let scores = network.forward(images(pictures, context.device).autodiff(), pass);
        let truth = |flags: &[f32]| {
            let shape = [count, 1, pictures.height, pictures.width];
            tensor(flags.to_vec(), shape, context.device).autodiff()
        };
        let counts = f64::from(u8::from(context.share.counts()));
        let scored = batch.scored.iter().map(|&scored| f64::from(scored)).sum::<f64>() * counts;
        let [scored] = context.share.ranks.sums([scored]).map(|scored| scored.max(1.0));
        let losses = pixel_losses(scores.clone(), truth(&batch.foreground));
        let loss = (losses * truth(&batch.scored)).sum() / scored * counts;
        let gradients = gradient::collect(network, loss.clone().backward(), &context.share);
        if !context.share.counts() {
            return Learned { gradients, ..Learned::default() };
        }
        let mistakes = wrong(&foreground(scores), &batch.foreground, &batch.scored, pixels);
        let value = f64::from(values(loss.clone().inner())[0]);
        Learned { terms: Terms::single(value), gradients, mistakes, localizer_passes: count }
    }

    fn validate(
        &self,
        network: &Unet,
        image: &EvalImage,
        truth: &Mask,
        context: &StepContext<'_>,
    ) -> ImageValidation {
        let input = input(image, context.device);
        let found = foreground(network.forward(input, Pass::Evaluate(Branch::Whole)));
        let found = image.geometry.restore(&found);
        let (mut loss, mut wrong, mut count) = (0.0, 0, 0);
        for (pixel, (found, &marked)) in found.into_iter().zip(&truth.foreground).enumerate() {
            if truth.ignored.as_ref().is_some_and(|ignored| ignored[pixel]) {
                continue;
            }
            let probability = if marked { found } else { 1.0 - found };
            loss -= f64::from(probability.max(f32::MIN_POSITIVE)).ln();
            wrong += usize::from((found >= 0.5) != marked);
            count += 1;
        }
        let count = f64::from(count.max(1));
        let mistake = wrong as f64 / count;
        ImageValidation { mistake, localizer_mistake: None, loss: loss / count }
    }

    /// It segments foreground and predicts no class, so that `class` is not used.
    fn localize(
        &self,
        network: &Unet,
        image: Tensor<4>,
        _class: Option<usize>,
        config: &Config,
    ) -> ModelOutput {
        let [_, _, height, width] = image.dims();
        let probability = foreground(network.forward(image.clone(), Pass::Evaluate(Branch::Whole)));
        let scores = match config.mask.rule {
            Decision::Method => probability,
            Decision::MinMax => {
                let map = tensor(probability, [1, 1, height, width], &image.device());
                values(decision::min_max(map, [height, width], 1, &config.mask))
            }
        };
        ModelOutput { classifier: None, localizer: None, scores }
    }

    fn pass(&self, network: &Unet, images: Tensor<4>, pass: Pass, _config: &Config) {
        network.forward(images, pass);
    }

    fn mask_rule(&self, config: &Config) -> String {
        match config.mask.rule {
            Decision::Method => "pixels that are more probably foreground".to_owned(),
            Decision::MinMax => decision::min_max_rule(&config.mask),
        }
    }
}

/// Cross-entropy of each pixel, `[B, 2, H, W]` and `[B, 1, H, W]` → `[B, 1, H, W]`.
pub fn pixel_losses(scores: Tensor<4>, foreground: Tensor<4>) -> Tensor<4> {
    let log = log_softmax(scores, 1);
    let (without, with) = (log.clone().slice_dim(1, 0..1), log.slice_dim(1, 1..2));
    -(with * foreground.clone() + without * (-foreground + 1.0))
}

/// Probability of the foreground, pixel by pixel.
fn foreground(scores: Tensor<4>) -> Vec<f32> {
    values(log_softmax(scores.inner(), 1).slice_dim(1, 1..2).exp())
}

/// The share of wrong pixels among the scored ones of each image, summed over the images.
fn wrong(found: &[f32], truth: &[f32], scored: &[f32], pixels: usize) -> f64 {
    let images = found.chunks_exact(pixels).zip(truth.chunks_exact(pixels));
    let shares = images.zip(scored.chunks_exact(pixels)).map(|((found, truth), scored)| {
        let sides = found.iter().zip(truth).zip(scored).filter(|(_, scored)| **scored > 0.5);
        let wrong =
            sides.clone().filter(|((found, truth), _)| (**found >= 0.5) != (**truth >= 0.5));
        wrong.count() as f64 / sides.count().max(1) as f64
    });
    shares.sum()
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use super::*;
    use crate::{device, train::distributed::tests as shared};

    #[test]
    fn the_loss_of_a_pixel_is_its_cross_entropy() {
        let device = device::cpu();
        // Scores 0 and ln 3: foreground has probability ¾.
        let ln3 = 3.0_f32.ln();
        let scores = tensor(vec![0.0, 0.0, ln3, ln3], [1, 2, 1, 2], &device);
        let truth = tensor(vec![1.0, 0.0], [1, 1, 1, 2], &device);
        let losses = values(pixel_losses(scores, truth));
        assert!((losses[0] + 0.75_f32.ln()).abs() < 1e-6, "{losses:?}");
        assert!((losses[1] + 0.25_f32.ln()).abs() < 1e-6, "{losses:?}");
    }

    #[test]
    fn a_step_of_several_ranks_is_that_of_one_process() {
        let mut config = shared::config();
        (config.unet.width, config.unet.depth) = (4, 2);
        let supervised = |of: Range<usize>| {
            let images = shared::batch(of);
            let pixels = images.height * images.width;
            // The object is elsewhere in each image, and what is not scored of another size.
            let flags = |flag: fn(usize, usize) -> bool| {
                let pixel = |sample: usize| (0..pixels).map(move |i| f32::from(flag(sample, i)));
                images.samples.iter().flat_map(|&sample| pixel(sample)).collect()
            };
            SupervisedBatch {
                foreground: flags(|sample, i| (i / 8 + sample) % 3 == 0),
                scored: flags(|sample, i| i > 100 * sample),
                images,
            }
        };
        for (images, ranks) in [(5, 2), (5, 3), (2, 3)] {
            shared::assert_shared(&FullSupervision, &config, images, ranks, supervised);
        }
    }

    #[test]
    fn pixels_without_verdict_are_neither_right_nor_wrong() {
        let wrong = wrong(&[0.9, 0.9, 0.1, 0.1], &[1.0, 0.0, 1.0, 0.0], &[1.0, 0.0, 1.0, 1.0], 4);
        assert_eq!(wrong, 1.0 / 3.0);
    }
}
