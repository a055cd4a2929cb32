//! One training step: Algorithm 1 of the paper, without the optimizer.
//!
//! `L7` is line 7 of Algorithm 1, `Eq. 9` an equation of the paper, both also in
//! `docs/method.md`. The paper walks through one sample at a time; here each line is
//! executed for all samples of the batch that have not stopped. Each loss is
//! differentiated as soon as it is known, which keeps the memory of a step independent of
//! the number of rounds u.

mod replay;
#[cfg(test)]
mod tests;

use burn::tensor::Tensor;

use super::{
    erase::{erase, fill},
    size::Barrier,
    trust::Trust,
};
use crate::{
    collective::Share,
    config::{Config, LossConfig, MaskGradient, Statistics},
    method::{
        dropout::Dropout,
        gradient::{GradientSum, accumulate},
        learner::Terms,
        losses::{cross_entropy, cross_entropy_to_uniform, sample_predictions},
    },
    model::{
        Branch, Model, Pass, Response, Rules,
        layers::{tensor, values},
        mask::{background, foreground},
    },
};

/// A training step on one batch.
#[derive(Debug)]
pub struct Step<'a> {
    /// Settings of the run.
    pub config: &'a Config,
    /// The network G (localizer M and classifier C), on a device that differentiates.
    pub model: &'a Model,
    /// X, `[B, 3, H, W]`, not differentiated.
    pub images: Tensor<4>,
    /// y, one class index per image.
    pub labels: &'a [usize],
    /// The dropout masks of the step.
    pub dropout: &'a Dropout,
    /// u in this epoch; 0 before erasing starts.
    pub rounds: usize,
    /// Ψ of the batch.
    pub trust: Trust,
    /// Mean colour of the normalized training images, for [`Fill::Mean`](crate::config::Fill).
    pub mean_colour: [f32; 3],
    /// The size constraint of this epoch.
    pub size: Barrier,
    /// Whether the backbone is frozen, its running statistics included.
    pub frozen: bool,
    /// The part of the batch that `images` are.
    pub share: Share,
}

/// The result of a step.
#[derive(Debug)]
pub struct Outcome {
    /// The terms of Eq. 8, averaged over the samples of the batch: H(p, p̂ˢ) of the localizer
    /// (Eq. 7) over its passes too, H(p, p̂)⁺ of the classifier on the foreground (Eq. 3), and its
    /// H(q, p̂)⁻ on the background (Eq. 5), which is at least `ln C`.
    pub losses: Terms,
    /// Gradient of the weighted loss, batch mean.
    pub gradients: GradientSum,
    /// Number of images that the classifier misclassifies on their foreground.
    pub mistakes: usize,
    /// Number of images in each localizer pass.
    pub localizer_passes: Vec<usize>,
    /// The accumulated masks R⁺⋆, `[B, 1, H, W]`.
    pub mask: Tensor<4>,
}

/// The state of the recursion for each image of the batch, as `[1, …]` tensors.
struct Recursion {
    /// X⋆
    images: Vec<Tensor<4>>,
    /// R⁺⋆
    masks: Vec<Tensor<4>>,
}

/// One localizer pass over the images that have not stopped.
struct LocalizerPass {
    /// Their indices in the batch.
    active: Vec<usize>,
    /// Ψ of each.
    trust: Vec<f32>,
    /// The part that they are of the images of all ranks.
    share: Share,
}

/// A loss of the classifier, on the foregrounds or on the backgrounds.
struct PartLoss {
    /// Sum over the batch.
    sum: f64,
    /// Gradient of the weighted batch mean by the mask; `None` if the mask is detached.
    mask_gradient: Option<Tensor<4>>,
}

impl Step<'_> {
    /// Computes the loss of the batch and its gradient.
    pub fn run(mut self) -> Outcome {
        let detached = self.config.mask.gradient == MaskGradient::Detached;
        let mut gradients = GradientSum::new(); // L2
        let mut recursion = self.start(); // L4, L5
        let (mut passes, mut localizer_loss) = (Vec::new(), 0.0);

        // L7: t ≤ u, while there is a sample that has not stopped.
        for t in 0..Trust::passes(self.rounds, self.config.semantics) {
            let active = self.trust.active();
            let share = Share::of(self.share.ranks, active.len());
            if share.all == 0 {
                break;
            }
            // L8: forward X⋆ in M.
            let passed = images_of_pass(&active);
            let labels = self.labels_of(&passed);
            let response = self.localize(&recursion, &passed, self.localizer_statistics(t, share));
            // L9: H_t (Eq. 7), Ψ(t) (Eq. 11, 12) and R⁺ᵗ (Eq. 9).
            let mut predictions = sample_predictions(response.scores.clone(), &labels);
            predictions.truncate(active.len());
            localizer_loss += predictions.iter().map(|p| f64::from(p.loss)).sum::<f64>();
            let trust = if self.rounds == 0 {
                // Without erasing there is no recursion, and the mask is used without trust.
                vec![1.0; active.len()]
            } else {
                self.trust.coefficients(&active, &predictions)
            };
            let pass = LocalizerPass { active, trust, share };
            let mask = response.detached().mask(self.size(), &self.rules());
            // L10, L11, L13; L15 is Ψ = 0, with which a sample is no longer active.
            self.accumulate_and_erase(&mut recursion, &pass, mask);
            // L12, also for samples that stop in this pass: see `docs/method.md` §6.
            if detached {
                let loss = self.localizer_loss(&response, &labels);
                accumulate(&mut gradients, self.model, loss.backward(), &share);
            }
            passes.push(pass);
        }

        // L18 to L21.
        let mask = Tensor::cat(recursion.masks, 0);
        let (foreground, mistakes) = self.foreground_loss(&mask, &mut gradients);
        let background = self.background_loss(&mask, &mut gradients);
        if let (Some(plus), Some(minus)) = (foreground.mask_gradient, background.mask_gradient) {
            let mask_gradient = plus + minus + self.area_gradient(&mask);
            self.replay(&passes, &mask, &mask_gradient, &mut gradients);
        }

        // L23, of the reported losses; gradients were divided as they were computed.
        let batch = self.share.all as f64;
        let seen: usize = passes.iter().map(|pass| pass.share.all).sum();
        let localizer_passes = passes.iter().map(|pass| pass.active.len()).collect();
        let losses = Terms {
            localizer: localizer_loss / seen as f64,
            foreground: Some(foreground.sum / batch),
            background: Some(background.sum / batch),
        };
        Outcome { losses, gradients, mistakes, localizer_passes, mask }
    }

    /// L4 and L5: all masks are empty, all images intact.
    fn start(&self) -> Recursion {
        let images = each(&self.images);
        let empty = |image: &Tensor<4>| image.clone().slice([0..1, 0..1]).zeros_like();
        Recursion { masks: images.iter().map(empty).collect(), images }
    }

    /// L8: the localizer on the images of the batch that have not stopped.
    fn localize(&self, recursion: &Recursion, active: &[usize], pass: Pass) -> Response {
        let images = active.iter().map(|&i| recursion.images[i].clone()).collect();
        let keep = self.dropout.of_localizer(active, self.labels.len());
        let images = Tensor::cat(images, 0).autodiff();
        self.model.localize(images, pass, &self.rules(), keep.as_deref())
    }

    /// L10, L11 and L13: where Ψ ≠ 0, updates the accumulated mask and erases it from the image.
    fn accumulate_and_erase(
        &self,
        recursion: &mut Recursion,
        pass: &LocalizerPass,
        mask: Tensor<4>,
    ) {
        let intact = each(&self.images);
        for ((&i, &trust), mask) in pass.active.iter().zip(&pass.trust).zip(each(&mask)) {
            if trust == 0.0 {
                continue;
            }
            // Eq. 10
            let mask = recursion.masks[i].clone().max_pair(mask * trust);
            let image =
                if self.config.erase.from_intact { &intact[i] } else { &recursion.images[i] };
            let filling = fill(&intact[i], self.config.erase.fill, self.mean_colour);
            recursion.images[i] = erase(image.clone(), mask.clone(), filling);
            recursion.masks[i] = mask;
        }
    }

    /// H(p, p̂ˢ), Eq. 7, weighted: the sum over active samples divided by the size of the whole
    /// batch.
    fn localizer_loss(&self, response: &Response, labels: &[usize]) -> Tensor<1> {
        let share = self.config.loss.localizer / self.share.all as f64;
        cross_entropy(response.scores.clone(), labels).sum() * share
    }

    /// L18 to L21 for X⁺: H(p, p̂)⁺ of Eq. 3, and how many images are classified wrongly.
    fn foreground_loss(&self, mask: &Tensor<4>, sum: &mut GradientSum) -> (PartLoss, usize) {
        let pass = match self.config.model.statistics {
            Statistics::All => Pass::Train(Branch::Whole, self.share),
            Statistics::Separate => Pass::Train(Branch::Foreground, self.share),
            Statistics::Localizer => Pass::TrainOnly(self.share),
        };
        let (scores, mask) = self.classify(foreground, mask, pass);
        let predictions = sample_predictions(scores.clone(), self.labels);
        let counted = predictions.iter().take(self.share.mine);
        let mistakes = counted.filter(|prediction| !prediction.correct).count();
        let losses = cross_entropy(scores, self.labels);
        (self.backward(losses, self.config.loss.foreground, &mask, sum), mistakes)
    }

    /// L18 to L21 for X⁻: H(q, p̂)⁻ of Eq. 5.
    fn background_loss(&self, mask: &Tensor<4>, sum: &mut GradientSum) -> PartLoss {
        let pass = match self.config.model.statistics {
            Statistics::All => Pass::Train(Branch::Whole, self.share),
            // Backgrounds are never passed in prediction.
            Statistics::Localizer | Statistics::Separate => Pass::TrainOnly(self.share),
        };
        let (scores, mask) = self.classify(background, mask, pass);
        let losses = cross_entropy_to_uniform(scores);
        self.backward(losses, self.config.loss.background, &mask, sum)
    }

    /// L19: the scores of the classifier, and the mask as a leaf of their graph, so that its
    /// gradient can be read after the backward pass.
    fn classify(
        &self,
        part: fn(Tensor<4>, Tensor<4>) -> Tensor<4>,
        mask: &Tensor<4>,
        pass: Pass,
    ) -> (Tensor<2>, Tensor<4>) {
        let through = self.config.mask.gradient == MaskGradient::Through;
        let mask = mask.clone().autodiff().set_require_grad(through);
        let images = part(self.images.clone().autodiff(), mask.clone());
        let keep = self.dropout.classifier.as_deref();
        (self.model.classify(images, self.unless_frozen(pass), &self.rules(), keep).scores, mask)
    }

    /// L20 and L21: differentiates a loss of the classifier, given for each sample.
    fn backward(
        &self,
        losses: Tensor<1>,
        weight: f64,
        mask: &Tensor<4>,
        gradients: &mut GradientSum,
    ) -> PartLoss {
        let loss = losses.sum();
        let sum = if self.share.counts() { values(loss.clone().inner())[0] } else { 0.0 };
        let mut found = (loss * (weight / self.share.all as f64)).backward();
        let mask_gradient = mask.grad_remove(&mut found);
        accumulate(gradients, self.model, found, &self.share);
        PartLoss { sum: f64::from(sum), mask_gradient }
    }

    /// The gradient of the area terms (`loss.area` and `loss.size`) by the mask, `[B, 1, 1, 1]`:
    /// the same for every pixel of an image.
    fn area_gradient(&self, mask: &Tensor<4>) -> Tensor<4> {
        let [mine, _, height, width] = mask.dims();
        let (batch, pixels) = (self.share.all as f64, (height * width) as f64);
        let LossConfig { area, size, .. } = &self.config.loss;
        let shares = values(mask.clone().sum_dim(3).sum_dim(2)).into_iter();
        let slopes = shares.map(|sum| {
            let slope = area + size.weight * self.size.slope_of_share(f64::from(sum) / pixels);
            (slope / (batch * pixels)) as f32
        });
        tensor(slopes.collect(), [mine, 1, 1, 1], &mask.device())
    }

    /// Which running statistics a localizer pass updates.
    fn localizer_statistics(&self, t: usize, share: Share) -> Pass {
        self.unless_frozen(match self.config.model.statistics {
            Statistics::Localizer | Statistics::Separate if t > 0 => Pass::TrainOnly(share),
            _ => Pass::Train(Branch::Whole, share),
        })
    }

    /// The pass itself, or its frozen form while the backbone is frozen.
    fn unless_frozen(&self, pass: Pass) -> Pass {
        if self.frozen { pass.frozen() } else { pass }
    }

    fn labels_of(&self, active: &[usize]) -> Vec<usize> {
        active.iter().map(|&i| self.labels[i]).collect()
    }

    fn size(&self) -> [usize; 2] {
        let [_, _, height, width] = self.images.dims();
        [height, width]
    }

    fn rules(&self) -> Rules<'_> {
        Rules::new(self.config)
    }
}

/// The images that are passed through the localizer. If none is active on this rank, one that does
/// not count is passed, since other ranks may have active ones and batch norm needs every rank.
fn images_of_pass(active: &[usize]) -> Vec<usize> {
    if active.is_empty() { vec![0] } else { active.to_vec() }
}

/// The images of a batch, each with a batch axis of one.
fn each(batch: &Tensor<4>) -> Vec<Tensor<4>> {
    let [count, _, _, _] = batch.dims();
    (0..count).map(|i| batch.clone().slice_dim(0, i..i + 1)).collect()
}
