//! Weight updates, as PyTorch's optimizers make them.

use std::collections::BTreeMap;

use burn::{
    module::Module,
    tensor::{Device, Tensor},
};

use crate::{
    config::{OptimizerConfig, Rule},
    method::GradientSum,
    model::{
        layers::{tensor, values},
        params::{self, Array},
    },
};

/// What is remembered of past gradients, and how it moves the weights.
#[derive(Debug)]
pub struct Optimizer {
    config: OptimizerConfig,
    /// Updates made so far.
    steps: u64,
    /// Momentum of SGD, or Adam's mean of gradients.
    first: BTreeMap<String, Tensor<1>>,
    /// Adam's mean of squared gradients.
    second: BTreeMap<String, Tensor<1>>,
}

impl Optimizer {
    /// Starts without a past.
    pub fn new(config: OptimizerConfig) -> Self {
        Self { config, steps: 0, first: BTreeMap::new(), second: BTreeMap::new() }
    }

    /// Moves the weights against their gradient; those without a gradient stay.
    pub fn update<M: Module>(&mut self, model: M, gradients: GradientSum, rate: f64) -> M {
        self.steps += 1;
        let mut gradients = gradients;
        params::map(model, |name, _, weights| match gradients.remove(name) {
            None => weights,
            Some(gradient) => {
                let gradient = gradient + weights.clone() * self.config.weight_decay;
                weights - self.direction(name, gradient) * rate
            }
        })
    }

    fn direction(&mut self, name: &str, gradient: Tensor<1>) -> Tensor<1> {
        match self.config.rule {
            Rule::Sgd => self.sgd(name, gradient),
            Rule::Adam => self.adam(name, gradient),
        }
    }

    /// `v ← μ v + g`, starting at `g`; along `v`, or with a look ahead along `g + μ v`.
    fn sgd(&mut self, name: &str, gradient: Tensor<1>) -> Tensor<1> {
        let momentum = self.config.momentum;
        if momentum == 0.0 {
            return gradient;
        }
        let velocity = match self.first.remove(name) {
            Some(velocity) => velocity * momentum + gradient.clone(),
            None => gradient.clone(),
        };
        self.first.insert(name.to_owned(), velocity.clone());
        if self.config.nesterov { gradient + velocity * momentum } else { velocity }
    }

    /// `m̂ / (√v̂ + ε)` with the bias of the first steps corrected.
    fn adam(&mut self, name: &str, gradient: Tensor<1>) -> Tensor<1> {
        let OptimizerConfig { beta1, beta2, epsilon, .. } = self.config;
        let moved = |past: Option<Tensor<1>>, now: Tensor<1>, beta: f64| match past {
            Some(past) => past * beta + now * (1.0 - beta),
            None => now * (1.0 - beta),
        };
        let mean = moved(self.first.remove(name), gradient.clone(), beta1);
        let square = moved(self.second.remove(name), gradient.clone() * gradient, beta2);
        self.first.insert(name.to_owned(), mean.clone());
        self.second.insert(name.to_owned(), square.clone());
        let correction = |beta: f64| 1.0 - beta.powi(self.steps.min(i32::MAX as u64) as i32);
        let spread = square.sqrt() / correction(beta2).sqrt() + epsilon;
        mean / correction(beta1) / spread
    }

    /// What must be saved to go on later.
    pub fn state(&self) -> (u64, BTreeMap<String, Array>) {
        let memory = [("first", &self.first), ("second", &self.second)];
        let arrays = memory.into_iter().flat_map(|(kind, tensors)| {
            tensors.iter().map(move |(name, tensor)| {
                let shape = tensor.dims().to_vec();
                (format!("{kind}.{name}"), Array { shape, values: values(tensor.clone()) })
            })
        });
        (self.steps, arrays.collect())
    }

    /// Goes on from what [`Self::state`] said.
    pub fn resume(
        config: OptimizerConfig,
        steps: u64,
        state: BTreeMap<String, Array>,
        device: &Device,
    ) -> Self {
        let mut optimizer = Self { steps, ..Self::new(config) };
        for (key, Array { values, .. }) in state {
            let length = values.len();
            let memory = tensor(values, [length], device);
            if let Some(name) = key.strip_prefix("first.") {
                optimizer.first.insert(name.to_owned(), memory);
            } else if let Some(name) = key.strip_prefix("second.") {
                optimizer.second.insert(name.to_owned(), memory);
            }
        }
        optimizer
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device;

    fn directions(config: OptimizerConfig, gradients: &[f32]) -> Vec<f32> {
        let mut optimizer = Optimizer::new(config);
        let device = device::cpu();
        gradients
            .iter()
            .map(|&gradient| {
                optimizer.steps += 1;
                values(optimizer.direction("w", tensor(vec![gradient], [1], &device)))[0]
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
    fn a_resumed_optimizer_goes_on_as_if_never_stopped() {
        let config = OptimizerConfig { rule: Rule::Adam, ..OptimizerConfig::default() };
        let device = device::cpu();
        let gradient = |value| tensor(vec![value], [1], &device);
        let mut whole = Optimizer::new(config.clone());
        whole.steps = 1;
        whole.direction("w", gradient(0.3));
        let (steps, state) = whole.state();
        let mut resumed = Optimizer::resume(config, steps, state, &device);
        (whole.steps, resumed.steps) = (2, 2);
        let next = |optimizer: &mut Optimizer| values(optimizer.direction("w", gradient(-0.7)));
        assert_eq!(next(&mut whole), next(&mut resumed));
    }
}
