//! One step of training, without the optimizer: this is the method.
//!
//! ```text
//! look       localize ─▶ mask ─▶ trust ─▶ max ─▶ erase     up to u + 1 times, each
//!                                                          loss goes backward at once
//! judge      image × mask, image × (1 − mask) ─▶ classify  two more backward passes
//! ```
//!
//! One backward pass at a time keeps the memory of a step independent of the
//! number of rounds.

use std::collections::{BTreeMap, btree_map::Entry};

use burn::tensor::{Gradients, Tensor};
use rayon::prelude::*;

use super::{
    dropout::Dropout,
    erase::Trust,
    fill::{erase, fill},
    losses::{Losses, cross_entropy, cross_entropy_to_uniform, sample_predictions},
    size::Barrier,
};
use crate::{
    config::{Config, LossConfig, MaskGradient, Statistics},
    model::{
        Branch, Model, Pass, Response, Rules,
        layers::{reuse, tensor, values},
        mask::split,
        params,
    },
};

/// The gradient of a batch's loss, by weight.
pub type GradientSum = BTreeMap<String, Vec<f32>>;

/// Floats that one thread adds at a time.
const BLOCK: usize = 16 * 1024;

/// A step of training on one batch.
#[derive(Debug)]
pub struct Step<'a> {
    /// Settings of the run.
    pub config: &'a Config,
    /// The network, on a device that differentiates.
    pub model: &'a Model,
    /// `[B, 3, H, W]`, not differentiated.
    pub images: Tensor<4>,
    /// One class index per image.
    pub labels: &'a [usize],
    /// What is dropped of the sorted cells.
    pub dropout: &'a Dropout,
    /// u of this epoch; 0 before erasing starts.
    pub rounds: usize,
    /// Decides how far each look counts.
    pub trust: Trust,
    /// Mean colour of the normalized training images, for [`Fill::Mean`](crate::config::Fill).
    pub mean_colour: [f32; 3],
    /// The size constraint of this epoch.
    pub size: Barrier,
    /// Whether the backbone is not to learn yet, its statistics included.
    pub frozen: bool,
}

/// What a step found out.
#[derive(Debug)]
pub struct Outcome {
    /// The loss of the batch.
    pub losses: Losses,
    /// Gradient of the weighted loss, batch mean.
    pub gradients: GradientSum,
    /// How many images the classifier named wrongly on their foreground.
    pub mistakes: usize,
    /// How many images each look was given.
    pub localizer_passes: Vec<usize>,
    /// The accumulated masks, `[B, 1, H, W]`.
    pub mask: Tensor<4>,
}

/// How the images of a batch stand after some rounds; `[1, …]` tensors, one per image.
struct Looked {
    erased: Vec<Tensor<4>>,
    masks: Vec<Tensor<4>>,
}

/// One look of the localizer at some images of the batch.
struct Look {
    active: Vec<usize>,
    weights: Vec<f32>,
}

impl Step<'_> {
    /// Computes the loss of the batch and its gradient.
    pub fn run(mut self) -> Outcome {
        let mut gradients = GradientSum::new();
        let detached = self.config.mask.gradient == MaskGradient::Detached;

        let mut looked = self.unseen();
        let (mut localizer_passes, mut localizer_loss) = (Vec::new(), 0.0);
        for round in 0..Trust::passes(self.rounds, self.config.semantics) {
            let active = self.trust.active();
            if active.is_empty() {
                break;
            }
            let labels: Vec<usize> = active.iter().map(|&i| self.labels[i]).collect();
            let response = self.localize(&looked, &active, self.look_pass(round));
            let sample_predictions = sample_predictions(response.scores.clone(), &labels);
            let weights = if self.rounds == 0 {
                // Without erasing there is nothing to trust: the mask counts as it is.
                vec![1.0; active.len()]
            } else {
                self.trust.weigh(&active, &sample_predictions)
            };
            localizer_loss += sample_predictions.iter().map(|v| f64::from(v.loss)).sum::<f64>();
            let look = Look { active, weights };
            let mask = response.detached().mask(self.size(), &self.rules());
            self.remember(&mut looked, &look, mask);
            if detached {
                self.add(&mut gradients, self.localizer_loss(&response, &labels).backward());
            }
            localizer_passes.push(look);
        }

        let mask = Tensor::cat(looked.masks, 0);
        let judged = self.judge(&mask, &mut gradients);
        if let Some(through) = judged.mask_gradient {
            self.look_again(&localizer_passes, &mask, &through, &mut gradients);
        }

        let batch = self.labels.len() as f64;
        let seen: usize = localizer_passes.iter().map(|look| look.active.len()).sum();
        let losses = Losses {
            localizer: localizer_loss / seen as f64,
            foreground: judged.losses.foreground / batch,
            background: judged.losses.background / batch,
        };
        let localizer_passes = localizer_passes.iter().map(|look| look.active.len()).collect();
        Outcome { losses, gradients, mistakes: judged.mistakes, localizer_passes, mask }
    }

    /// Every image intact, every mask empty.
    fn unseen(&self) -> Looked {
        let images = each(&self.images);
        let empty = |image: &Tensor<4>| image.clone().slice([0..1, 0..1]).zeros_like();
        Looked { masks: images.iter().map(empty).collect(), erased: images }
    }

    fn localize(&self, looked: &Looked, active: &[usize], pass: Pass) -> Response {
        let images = active.iter().map(|&i| looked.erased[i].clone()).collect();
        let keep = self.dropout.of_localizer(active, self.labels.len());
        let images = Tensor::cat(images, 0).autodiff();
        self.model.localize(images, pass, &self.rules(), keep.as_deref())
    }

    /// Adds a look to the masks, and hides from the images what they show by now.
    fn remember(&self, looked: &mut Looked, look: &Look, mask: Tensor<4>) {
        let intact = each(&self.images);
        for ((&i, &weight), mask) in look.active.iter().zip(&look.weights).zip(each(&mask)) {
            if weight == 0.0 {
                continue;
            }
            let grown = looked.masks[i].clone().max_pair(mask * weight);
            let base = if self.config.erase.from_intact { &intact[i] } else { &looked.erased[i] };
            let filling = fill(&intact[i], self.config.erase.fill, self.mean_colour);
            looked.erased[i] = erase(base.clone(), grown.clone(), filling);
            looked.masks[i] = grown;
        }
    }

    /// The localizer's share of the loss: the mean over the *batch*, stopped samples included.
    fn localizer_loss(&self, response: &Response, labels: &[usize]) -> Tensor<1> {
        let share = self.config.loss.localizer / self.labels.len() as f64;
        cross_entropy(response.scores.clone(), labels).sum() * share
    }

    /// Splits the images by their masks and asks the classifier about both halves.
    fn judge(&self, mask: &Tensor<4>, gradients: &mut GradientSum) -> Judged {
        let batch = self.labels.len() as f64;
        let through = self.config.mask.gradient == MaskGradient::Through;
        let mut judged = Judged::default();
        for half in 0..2 {
            // A leaf of its own for each half, since each half's graph is consumed at once.
            let leaf = mask.clone().autodiff().set_require_grad(through);
            let images = split(self.images.clone().autodiff(), leaf.clone())[half].clone();
            let keep = self.dropout.classifier.as_deref();
            let pass = self.judge_pass(half);
            let scores = self.model.classify(images, pass, &self.rules(), keep).scores;
            let (losses, weight) = if half == 0 {
                judged.mistakes = sample_predictions(scores.clone(), self.labels)
                    .iter()
                    .filter(|prediction| !prediction.correct)
                    .count();
                (cross_entropy(scores, self.labels), self.config.loss.foreground)
            } else {
                (cross_entropy_to_uniform(scores), self.config.loss.background)
            };
            let sum = losses.sum();
            let total = f64::from(values(sum.clone().inner())[0]);
            if half == 0 {
                judged.losses.foreground = total;
            } else {
                judged.losses.background = total;
            }
            let mut found = (sum * (weight / batch)).backward();
            if let Some(gradient) = leaf.grad_remove(&mut found) {
                judged.mask_gradient = Some(match judged.mask_gradient.take() {
                    Some(sum) => sum + gradient,
                    None => gradient,
                });
            }
            self.add(gradients, found);
        }
        judged.mask_gradient = judged.mask_gradient.map(|gradient| gradient + self.of_sizes(mask));
        judged
    }

    /// The gradient of what masks cost by their size, `[B, 1, 1, 1]`: the same for every pixel, as
    /// the share of the image that is covered grows by as much with each.
    fn of_sizes(&self, mask: &Tensor<4>) -> Tensor<4> {
        let [batch, _, height, width] = mask.dims();
        let pixels = (height * width) as f64;
        let LossConfig { area, size, .. } = &self.config.loss;
        let shares = values(mask.clone().sum_dim(3).sum_dim(2)).into_iter();
        let slopes = shares.map(|sum| {
            let slope = area + size.weight * self.size.slope_of_share(f64::from(sum) / pixels);
            (slope / (batch as f64 * pixels)) as f32
        });
        tensor(slopes.collect(), [batch, 1, 1, 1], &mask.device())
    }

    /// Takes the same passes once more, now to bring the mask's gradient back to the localizer.
    ///
    /// A mask's gradient is only known after the last look, and keeping every
    /// look's graph until then would make memory grow with the number of rounds.
    fn look_again(
        &self,
        localizer_passes: &[Look],
        final_mask: &Tensor<4>,
        through: &Tensor<4>,
        gradients: &mut GradientSum,
    ) {
        let mut looked = self.unseen();
        let (final_masks, through) = (each(final_mask), each(through));
        for look in localizer_passes {
            let labels: Vec<usize> = look.active.iter().map(|&i| self.labels[i]).collect();
            let response = self.localize(&looked, &look.active, self.pass(Pass::TrainOnly));
            let mut loss = self.localizer_loss(&response, &labels);
            let constant = response.detached().mask(self.size(), &self.rules());

            // Only where this look decided the accumulated mask does the gradient reach it.
            let shares = look.active.iter().zip(&look.weights).zip(each(&constant)).map(
                |((&i, &weight), mask)| {
                    let decided = (mask * weight).equal(final_masks[i].clone()).float();
                    through[i].clone() * decided * weight
                },
            );
            let shares = Tensor::cat(shares.collect(), 0).autodiff();
            loss = loss + (response.mask(self.size(), &self.rules()) * shares).sum();
            self.remember(&mut looked, look, constant);
            self.add(gradients, loss.backward());
        }
    }

    /// Whether a look moves the running statistics.
    fn look_pass(&self, round: usize) -> Pass {
        self.pass(match self.config.model.statistics {
            Statistics::Localizer | Statistics::Separate if round > 0 => Pass::TrainOnly,
            _ => Pass::Train(Branch::Whole),
        })
    }

    /// Whether the classifier's pass over one half moves the running statistics, and which.
    fn judge_pass(&self, half: usize) -> Pass {
        self.pass(match self.config.model.statistics {
            Statistics::All => Pass::Train(Branch::Whole),
            // Nobody is ever asked about a background again.
            Statistics::Separate if half == 0 => Pass::Train(Branch::Foreground),
            Statistics::Localizer | Statistics::Separate => Pass::TrainOnly,
        })
    }

    fn pass(&self, pass: Pass) -> Pass {
        if self.frozen { pass.frozen() } else { pass }
    }

    fn add(&self, sum: &mut GradientSum, gradients: Gradients) {
        for (name, gradient) in params::gradients(self.model, gradients) {
            match sum.entry(name) {
                Entry::Vacant(first) => {
                    first.insert(gradient);
                }
                Entry::Occupied(mut total) => {
                    add(total.get_mut(), &gradient);
                    reuse(gradient);
                }
            }
        }
    }

    fn size(&self) -> [usize; 2] {
        let [_, _, height, width] = self.images.dims();
        [height, width]
    }

    fn rules(&self) -> Rules<'_> {
        Rules::new(self.config)
    }
}

#[derive(Default)]
struct Judged {
    /// Sums over the batch.
    losses: Losses,
    mistakes: usize,
    mask_gradient: Option<Tensor<4>>,
}

fn add(total: &mut [f32], more: &[f32]) {
    let blocks = total.par_chunks_mut(BLOCK).zip(more.par_chunks(BLOCK));
    blocks.for_each(|(total, more)| total.iter_mut().zip(more).for_each(|(t, m)| *t += m));
}

/// The images of a batch, each with a batch axis of one.
fn each(batch: &Tensor<4>) -> Vec<Tensor<4>> {
    let [count, _, _, _] = batch.dims();
    (0..count).map(|i| batch.clone().slice_dim(0, i..i + 1)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        config::{Backbone, Evidence, Fill},
        device,
        rng::{Purpose, Stream},
    };

    const SIDE: usize = 32;
    const LABELS: [usize; 2] = [0, 1];

    fn config(rounds: usize) -> Config {
        let mut config = Config::default();
        config.model.backbone = Backbone::Tiny;
        config.model.output_stride = 8;
        config.erase.rounds = rounds;
        config
    }

    /// A step on two noisy images, every look trusted.
    fn outcome(config: &Config) -> Outcome {
        let model = Model::new(config, 2, &device::cpu().autodiff());
        step(config, &model, config.erase.rounds).run()
    }

    fn step<'a>(config: &'a Config, model: &'a Model, rounds: usize) -> Step<'a> {
        static NOTHING_DROPPED: Dropout = Dropout { localizer: None, classifier: None };
        let mut stream = Stream::new(5, Purpose::Synthetic, 0, 0);
        let shape = [2, 3, SIDE, SIDE];
        let noise = (0..shape.iter().product()).map(|_| stream.between(-1.0, 1.0) as f32);
        Step {
            config,
            model,
            images: tensor(noise.collect(), shape, &device::cpu()),
            labels: &LABELS,
            dropout: &NOTHING_DROPPED,
            rounds,
            trust: Trust::blind(2, config.erase.sigma),
            mean_colour: [0.25; 3],
            size: Barrier::at(&config.loss.size, 0),
            frozen: false,
        }
    }

    #[test]
    fn the_mask_never_shrinks_from_round_to_round() {
        let masks = [1, 2, 4].map(|rounds| values(outcome(&config(rounds)).mask));
        for pair in masks.windows(2) {
            assert!(pair[0].iter().zip(&pair[1]).all(|(before, after)| before <= after));
        }
        assert!(masks[0] != masks[2], "later passes must find something");
    }

    #[test]
    fn without_erasing_the_mask_is_the_localizer_s_own_whatever_it_is_trusted() {
        let config = config(0);
        let model = Model::new(&config, 2, &device::cpu().autodiff());
        let mut unsure = step(&config, &model, 0);
        // Nobody's first class is right twice: trust would be zero for at least one of them.
        unsure.trust = Trust::new(2, config.erase.sigma, config.semantics);
        let mask = values(unsure.run().mask);
        let largest = mask.iter().copied().fold(0.0, f32::max);
        assert!((largest - 0.982_013_8).abs() < 1e-5, "{largest}");
    }

    #[test]
    fn each_way_of_erasing_shows_the_localizer_something_else() {
        let mut found = Vec::new();
        for fill in [Fill::Zero, Fill::Mean, Fill::Blur] {
            for from_intact in [false, true] {
                let mut config = config(2);
                (config.erase.fill, config.erase.from_intact) = (fill, from_intact);
                found.push(outcome(&config).losses.localizer);
            }
        }
        for (i, a) in found.iter().enumerate() {
            assert!(found[i + 1..].iter().all(|b| a != b), "{found:?}");
        }
    }

    #[test]
    fn weights_of_the_terms_scale_their_gradients() {
        let gradient = |localizer: f64, foreground: f64, background: f64| {
            let mut config = config(1);
            config.loss.localizer = localizer;
            config.loss.foreground = foreground;
            config.loss.background = background;
            let mut gradients = outcome(&config).gradients;
            let of = |name: &str, all: &mut GradientSum| all.remove(name).unwrap()[0];
            (of("localizer.bias", &mut gradients), of("classifier.bias", &mut gradients))
        };
        let (localizer, classifier) = gradient(1.0, 1.0, 1.0);
        let (doubled, same) = gradient(2.0, 1.0, 1.0);
        assert!((doubled - 2.0 * localizer).abs() < 1e-6 && same == classifier);
        let (_, foreground) = gradient(1.0, 1.0, 0.0);
        let (_, background) = gradient(1.0, 0.0, 1.0);
        assert!((foreground + background - classifier).abs() < 1e-6);
    }

    /// Without erasing the loss is smooth in the localizer's weights, so a step of known
    /// length along their gradient must change it by the gradient's length.
    #[test]
    fn the_gradient_through_the_mask_is_that_of_finite_differences() {
        for evidence in [Evidence::Weighted, Evidence::Centred, Evidence::Spread] {
            let mut config = config(0);
            config.mask.evidence = evidence;
            config.mask.gradient = MaskGradient::Through;
            config.loss.area = 3.0;
            config.loss.size.weight = 2.0;
            let (slope, length) = slope_along_the_gradient(&config);
            let off = (slope / length - 1.0).abs();
            assert!(off < 0.03, "{evidence:?}: slope {slope}, gradient {length}");
        }
    }

    /// How steep the loss is along the gradient of the localizer's weights: by differences, and
    /// by the gradient's length.
    fn slope_along_the_gradient(config: &Config) -> (f64, f64) {
        let model = Model::new(config, 2, &device::cpu().autodiff());
        let gradients = step(config, &model, 0).run().gradients;
        let gradient = gradients["localizer.weight"].clone();
        let length = gradient.iter().map(|&g| f64::from(g).powi(2)).sum::<f64>().sqrt();

        // Short, because every unit that switches on or off on the way bends the loss: the slope
        // is 45 % off at 1e-2, 4 % at 1e-4 and 2 % at 3e-5.
        const REACH: f64 = 1e-5;
        let loss_at = |reach: f64| {
            let moved = params::map(model.clone(), |name, _, weights| match name {
                "localizer.weight" => {
                    let along = tensor(gradient.clone(), [gradient.len()], &weights.device());
                    weights + along * (reach / length)
                }
                _ => weights,
            });
            let Outcome { losses, mask, .. } = step(config, &moved, 0).run();
            let shares = values(mask);
            let shares = shares.chunks_exact(SIDE * SIDE).map(|mask| {
                mask.iter().copied().map(f64::from).sum::<f64>() / (SIDE * SIDE) as f64
            });
            let (barrier, LossConfig { area, size, .. }) =
                (Barrier::at(&config.loss.size, 0), &config.loss);
            let of_sizes = shares.map(|share| area * share + size.weight * barrier.of_share(share));
            losses.total() + of_sizes.sum::<f64>() / LABELS.len() as f64
        };
        ((loss_at(REACH) - loss_at(-REACH)) / (2.0 * REACH), length)
    }

    #[test]
    fn a_frozen_step_moves_no_statistics_and_gives_the_backbone_no_gradient() {
        for statistics in [Statistics::All, Statistics::Localizer, Statistics::Separate] {
            let mut config = config(1);
            config.model.statistics = statistics;
            config.mask.gradient = MaskGradient::Through;
            let model = Model::new(&config, 2, &device::cpu().autodiff());
            let model = params::let_backbone_learn(model, false);
            let before = params::collect(&model);
            let mut frozen = step(&config, &model, 1);
            frozen.frozen = true;
            let gradients = frozen.run().gradients;
            assert_eq!(params::collect(&model), before);
            let names: Vec<&str> = gradients.keys().map(String::as_str).collect();
            let heads =
                ["classifier.bias", "classifier.weight", "localizer.bias", "localizer.weight"];
            assert_eq!(names, heads);
        }
    }

    #[test]
    fn statistics_of_the_localizer_only_ignore_the_masked_images() {
        let moved = |statistics: Statistics, rounds: usize| {
            let mut config = config(rounds);
            config.model.statistics = statistics;
            let model = Model::new(&config, 2, &device::cpu().autodiff());
            step(&config, &model, rounds).run();
            params::collect(&model)["bn1.running_mean"].values.clone()
        };
        assert_eq!(moved(Statistics::Localizer, 1), moved(Statistics::Localizer, 3));
        assert_ne!(moved(Statistics::Localizer, 1), moved(Statistics::All, 1));
    }
}
