//! SGD and Adam, as PyTorch has them.

use std::collections::{BTreeMap, BTreeSet};

use burn::module::Module;
use rayon::prelude::*;

use crate::{
    config::{OptimizerConfig, Rule},
    method::GradientSum,
    model::{
        layers::{reuse, tensor, values},
        params::{self, Array},
    },
};

/// An optimizer with its state.
///
/// An update is one pass over host memory, where gradients are summed and checkpoints are made.
#[derive(Debug)]
pub struct Optimizer {
    config: OptimizerConfig,
    /// Updates made so far.
    steps: u64,
    /// Momentum of SGD, or Adam's mean of gradients.
    first: BTreeMap<String, Vec<f32>>,
    /// Adam's mean of squared gradients.
    second: BTreeMap<String, Vec<f32>>,
    /// For weights that were frozen at first: the number of updates before their first one.
    late: BTreeMap<String, u64>,
}

/// Weights that one thread updates at a time.
const BLOCK: usize = 16 * 1024;

impl Optimizer {
    /// An optimizer without state.
    pub fn new(config: OptimizerConfig) -> Self {
        let (first, second, late) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Self { config, steps: 0, first, second, late }
    }

    /// Updates the weights that have a gradient.
    ///
    /// `rate` is the learning rate of the heads; the backbone's is `backbone_rate` times that.
    pub fn update<M: Module>(&mut self, model: M, mut gradients: GradientSum, rate: f64) -> M {
        self.steps += 1;
        let factor = self.config.backbone_rate;
        let backbone = if factor == 1.0 { BTreeSet::new() } else { params::backbone(&model) };
        params::map(model, |name, _, weights| match gradients.remove(name) {
            None => weights,
            Some(gradient) => {
                let (device, shape) = (weights.device(), weights.dims());
                let rate = if backbone.contains(name) { rate * factor } else { rate };
                let mut moved = values(weights);
                self.step(name, &mut moved, &gradient, rate);
                reuse(gradient);
                tensor(moved, shape, &device)
            }
        })
    }

    fn step(&mut self, name: &str, weights: &mut [f32], gradient: &[f32], rate: f64) {
        match self.config.rule {
            Rule::Sgd => self.sgd(name, weights, gradient, rate as f32),
            Rule::Adam => self.adam(name, weights, gradient, rate),
        }
    }

    /// `v ← μ v + g`, starting at `g`; along `v`, or with Nesterov's step ahead along `g + μ v`.
    fn sgd(&mut self, name: &str, weights: &mut [f32], gradient: &[f32], rate: f32) {
        let OptimizerConfig { momentum, weight_decay, nesterov, .. } = self.config;
        let (momentum, decay) = (momentum as f32, weight_decay as f32);
        let velocity = memory(&mut self.first, name, weights.len());
        let blocks = weights.par_chunks_mut(BLOCK).zip(velocity.par_chunks_mut(BLOCK));
        blocks.zip(gradient.par_chunks(BLOCK)).for_each(|((weights, velocity), gradient)| {
            for ((weight, velocity), gradient) in weights.iter_mut().zip(velocity).zip(gradient) {
                let gradient = gradient + decay * *weight;
                *velocity = momentum * *velocity + gradient;
                let ahead = if nesterov { gradient + momentum * *velocity } else { *velocity };
                *weight -= rate * ahead;
            }
        });
    }

    /// `m̂ / (√v̂ + ε)` with the bias of the first steps corrected.
    fn adam(&mut self, name: &str, weights: &mut [f32], gradient: &[f32], rate: f64) {
        let OptimizerConfig { beta1, beta2, epsilon, weight_decay, .. } = self.config;
        if self.steps > 1 && !self.first.contains_key(name) {
            self.late.insert(name.to_owned(), self.steps - 1);
        }
        let steps = self.steps - self.late.get(name).copied().unwrap_or(0);
        let correction = |beta: f64| 1.0 - beta.powi(steps.min(i32::MAX as u64) as i32);
        let rate = (rate / correction(beta1)) as f32;
        let spread = (1.0 / correction(beta2).sqrt()) as f32;
        let (decay, epsilon) = (weight_decay as f32, epsilon as f32);
        let [(keep1, take1), (keep2, take2)] =
            [beta1, beta2].map(|beta| (beta as f32, (1.0 - beta) as f32));
        let mean = memory(&mut self.first, name, weights.len());
        let square = memory(&mut self.second, name, weights.len());
        let past = mean.par_chunks_mut(BLOCK).zip(square.par_chunks_mut(BLOCK));
        let blocks = weights.par_chunks_mut(BLOCK).zip(gradient.par_chunks(BLOCK));
        blocks.zip(past).for_each(|((weights, gradient), (mean, square))| {
            let past = mean.iter_mut().zip(square);
            for ((weight, gradient), (mean, square)) in weights.iter_mut().zip(gradient).zip(past) {
                let gradient = gradient + decay * *weight;
                *mean = keep1 * *mean + take1 * gradient;
                *square = keep2 * *square + take2 * gradient * gradient;
                *weight -= rate * *mean / (square.sqrt() * spread + epsilon);
            }
        });
    }

    /// The state that a checkpoint must have.
    pub fn state(&self) -> (u64, BTreeMap<String, Array>) {
        let memory = [("first", &self.first), ("second", &self.second)];
        let arrays = memory.into_iter().flat_map(|(kind, vectors)| {
            vectors.iter().map(move |(name, values)| {
                let array = Array { shape: vec![values.len()], values: values.clone() };
                (format!("{kind}.{name}"), array)
            })
        });
        // Split into two numbers, each of which a float holds exactly.
        let late = self.late.iter().map(|(name, &steps)| {
            let values = vec![(steps >> 24) as f32, (steps & 0xff_ffff) as f32];
            (format!("late.{name}"), Array { shape: vec![2], values })
        });
        (self.steps, arrays.chain(late).collect())
    }

    /// An optimizer with a [state](Self::state) that was saved.
    pub fn resume(config: OptimizerConfig, steps: u64, state: BTreeMap<String, Array>) -> Self {
        let mut optimizer = Self { steps, ..Self::new(config) };
        for (key, Array { values, .. }) in state {
            if let Some(name) = key.strip_prefix("first.") {
                optimizer.first.insert(name.to_owned(), values);
            } else if let Some(name) = key.strip_prefix("second.") {
                optimizer.second.insert(name.to_owned(), values);
            } else if let (Some(name), [high, low]) = (key.strip_prefix("late."), &values[..]) {
                optimizer.late.insert(name.to_owned(), ((*high as u64) << 24) + *low as u64);
            }
        }
        optimizer
    }

    /// Refuses a state that lacks one of these weights, all of which have been updated, or has
    /// another number of values for it; weights are given by name, with their number of values.
    pub fn require_memory_of(&self, weights: &BTreeMap<String, usize>) -> Result<(), String> {
        let kinds: &[&BTreeMap<String, Vec<f32>>] = match self.config.rule {
            Rule::Sgd => &[&self.first],
            Rule::Adam => &[&self.first, &self.second],
        };
        for (name, &length) in weights {
            for kind in kinds {
                let Some(found) = kind.get(name).map(Vec::len) else {
                    return Err(format!("it lacks the optimizer's memory of `{name}`"));
                };
                if found != length {
                    return Err(format!(
                        "the optimizer's memory of `{name}` has {found} numbers instead of {length}"
                    ));
                }
            }
        }
        Ok(())
    }
}

/// The state of a weight tensor, zero at first.
fn memory<'a>(
    all: &'a mut BTreeMap<String, Vec<f32>>,
    name: &str,
    length: usize,
) -> &'a mut Vec<f32> {
    let found = all.entry(name.to_owned()).or_default();
    found.resize(length, 0.0);
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        config::{Backbone, Config},
        device,
        model::cam::CamNetwork,
    };

    /// Where each gradient in turn moves a weight of 0, at a rate of 1 against the gradient.
    fn directions(config: OptimizerConfig, gradients: &[f32]) -> Vec<f32> {
        let mut optimizer = Optimizer::new(OptimizerConfig { weight_decay: 0.0, ..config });
        gradients
            .iter()
            .map(|&gradient| {
                optimizer.steps += 1;
                let mut weight = [0.0];
                optimizer.step("w", &mut weight, &[gradient], 1.0);
                -weight[0]
            })
            .collect()
    }

    fn close(found: &[f32], expected: &[f32]) -> bool {
        found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-5)
    }

    #[test]
    fn nesterov_momentum_starts_at_the_gradient_and_looks_ahead() {
        // v = 1, then 0.9·1 + 2 = 2.9; g + 0.9 v.
        let found = directions(OptimizerConfig::default(), &[1.0, 2.0]);
        assert!(close(&found, &[1.9, 2.0 + 0.9 * 2.9]), "{found:?}");
    }

    #[test]
    fn plain_momentum_follows_the_velocity() {
        let config = OptimizerConfig { nesterov: false, ..OptimizerConfig::default() };
        let found = directions(config, &[1.0, 2.0]);
        assert!(close(&found, &[1.0, 2.9]), "{found:?}");
    }

    #[test]
    fn adam_divides_by_the_spread_and_corrects_the_first_steps() {
        let config = OptimizerConfig { rule: Rule::Adam, ..OptimizerConfig::default() };
        let found = directions(config, &[2.0, -1.0]);
        // Second step by hand: m̂ = (0.9·0.2 − 0.1)/0.19, v̂ = (0.999·0.004 + 0.001)/0.001999.
        let (mean, square) = (0.08 / 0.19, 0.004_996 / 0.001_999);
        assert!(close(&found, &[1.0, (mean / f64::sqrt(square)) as f32]), "{found:?}");
    }

    #[test]
    fn weight_decay_adds_the_weight_to_its_gradient() {
        let config = OptimizerConfig { weight_decay: 0.5, ..OptimizerConfig::default() };
        let mut weight = [4.0];
        Optimizer::new(config).step("w", &mut weight, &[1.0], 0.1);
        // g = 1 + 0.5·4 = 3, and 4 − 0.1·(3 + 0.9·3).
        assert!(close(&weight, &[3.43]), "{weight:?}");
    }

    #[test]
    fn the_backbone_moves_by_its_share_of_the_rate() {
        let mut config = Config::default();
        config.model.backbone = Backbone::Tiny;
        let network = CamNetwork::new(&config, 2, &device::cpu().autodiff());
        let before = params::collect(&network);
        let of_batch_norm = |field: &str| field.starts_with("running_");
        let is_statistic = |name: &str| name.rsplit('.').next().is_some_and(of_batch_norm);
        let sum = before.iter().filter(|(name, _)| !is_statistic(name));
        let ones: GradientSum =
            sum.map(|(name, array)| (name.clone(), vec![1.0; array.values.len()])).collect();
        let plain = OptimizerConfig { weight_decay: 0.0, momentum: 0.0, ..config.optimizer };
        let slow = OptimizerConfig { backbone_rate: 0.25, nesterov: false, ..plain };
        let after = params::collect(&Optimizer::new(slow).update(network, ones, 0.5));
        for (name, found) in &after {
            let expected = match name {
                name if is_statistic(name) => 0.0,
                name if name.starts_with("localizer.") => 0.5,
                _ => 0.125,
            };
            let moved = before[name].values[0] - found.values[0];
            assert!((moved - expected).abs() < 1e-6, "{name} moved by {moved}");
        }
    }

    #[test]
    fn a_weight_that_was_frozen_starts_as_if_the_first_step_were_now() {
        let config = OptimizerConfig { rule: Rule::Adam, ..OptimizerConfig::default() };
        let mut optimizer = Optimizer::new(OptimizerConfig { weight_decay: 0.0, ..config.clone() });
        let moved = |optimizer: &mut Optimizer, name: &str, gradient: f32| {
            let mut weight = [0.0];
            optimizer.step(name, &mut weight, &[gradient], 1.0);
            -weight[0]
        };
        for _ in 0..5 {
            optimizer.steps += 1;
            moved(&mut optimizer, "head", 1.0);
        }
        optimizer.steps += 1;
        // Adam's first step is of length 1 whatever the gradient.
        assert!(close(&[moved(&mut optimizer, "backbone", 2.0)], &[1.0]));
        let (steps, state) = optimizer.state();
        let mut resumed = Optimizer::resume(optimizer.config.clone(), steps, state);
        (optimizer.steps, resumed.steps) = (7, 7);
        let next = [&mut optimizer, &mut resumed].map(|o| moved(o, "backbone", -1.0));
        let (mean, square) = (0.08 / 0.19, 0.004_996 / 0.001_999);
        let expected = (mean / f64::sqrt(square)) as f32;
        assert!(close(&next, &[expected, expected]), "{next:?}");
    }

    #[test]
    fn memory_that_is_missing_or_of_another_length_is_noticed() {
        let weights = BTreeMap::from([("a".to_owned(), 2), ("b".to_owned(), 1)]);
        for rule in [Rule::Sgd, Rule::Adam] {
            let config = OptimizerConfig { rule, ..OptimizerConfig::default() };
            let mut optimizer = Optimizer { steps: 1, ..Optimizer::new(config.clone()) };
            optimizer.step("a", &mut [0.0, 0.0], &[1.0, 2.0], 0.1);
            optimizer.step("b", &mut [0.0], &[1.0], 0.1);
            let (steps, state) = optimizer.state();
            let problem = |state: BTreeMap<String, Array>| {
                Optimizer::resume(config.clone(), steps, state).require_memory_of(&weights)
            };
            assert_eq!(problem(state.clone()), Ok(()));
            for key in state.keys() {
                let mut less = state.clone();
                less.remove(key);
                let name = key.rsplit('.').next().unwrap();
                let lacks = format!("it lacks the optimizer's memory of `{name}`");
                assert_eq!(problem(less), Err(lacks), "{key}");
                let mut longer = state.clone();
                longer.get_mut(key).unwrap().values.push(0.0);
                assert!(problem(longer).unwrap_err().contains("numbers instead of"), "{key}");
            }
        }
    }

    #[test]
    fn a_resumed_optimizer_goes_on_as_if_never_stopped() {
        for rule in [Rule::Sgd, Rule::Adam] {
            let config = OptimizerConfig { rule, ..OptimizerConfig::default() };
            let mut whole = Optimizer::new(config.clone());
            let mut weights = [1.0, -2.0];
            whole.steps = 1;
            whole.step("w", &mut weights, &[0.3, 0.1], 0.1);
            let (steps, state) = whole.state();
            let mut resumed = Optimizer::resume(config, steps, state);
            (whole.steps, resumed.steps) = (2, 2);
            let next = |optimizer: &mut Optimizer| {
                let mut weights = weights;
                optimizer.step("w", &mut weights, &[-0.7, 0.2], 0.1);
                weights
            };
            assert_eq!(next(&mut whole), next(&mut resumed));
        }
    }
}
