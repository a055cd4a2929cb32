//! Settings of the optimisation.

use serde::{Deserialize, Serialize};

use super::Require;

/// How long to learn and which epoch to keep, see `docs/method.md` §5.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TrainConfig {
    /// Passes over the training set.
    pub epochs: usize,
    /// Images per step.
    pub batch_size: usize,
    /// Epochs without a better one after which training stops; 0 never stops early.
    pub patience: usize,
    /// By what the best epoch is chosen.
    pub keep: Keep,
    /// Which of several equally good epochs is kept.
    pub tie: Tie,
    /// Steps between two checkpoints within an epoch; 0 saves at the end of epochs only.
    pub checkpoint_steps: usize,
}

/// By what the best epoch is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Keep {
    /// Lowest validation error: how our method was published.
    LowestError,
    /// Lowest validation loss: how the baselines were.
    LowestLoss,
}

/// Which of several equally good epochs is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tie {
    /// The last of them, as published.
    Latest,
    /// The one with the lowest validation loss, and the earlier of two equals.
    LowerLoss,
}

/// The optimizer and its schedule, see `docs/method.md` §5.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OptimizerConfig {
    /// The update rule.
    pub rule: Rule,
    /// Step size in the first epoch.
    pub learning_rate: f64,
    /// The learning rate is multiplied by this…
    pub decay: f64,
    /// …every so many epochs…
    pub decay_every: usize,
    /// …but never falls below this.
    pub min_learning_rate: f64,
    /// The backbone's step size as a multiple of the heads'.
    pub backbone_rate: f64,
    /// Epochs at the start in which the backbone stays as it is, its statistics included.
    pub frozen_epochs: usize,
    /// Added to every gradient, times its weight (coupled L2).
    pub weight_decay: f64,
    /// Momentum of SGD.
    pub momentum: f64,
    /// Whether SGD looks ahead along the momentum.
    pub nesterov: bool,
    /// Decay of Adam's first moment.
    pub beta1: f64,
    /// Decay of Adam's second moment.
    pub beta2: f64,
    /// Keeps Adam's division finite.
    pub epsilon: f64,
}

/// The update rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Rule {
    /// Stochastic gradient descent with momentum.
    Sgd,
    /// Adam.
    Adam,
}

impl TrainConfig {
    pub(super) fn check(&self, require: &mut Require<'_>) {
        require(self.epochs > 0, "train.epochs", "must be at least 1");
        require(self.batch_size > 0, "train.batch_size", "must be at least 1");
    }
}

impl OptimizerConfig {
    pub(super) fn check(&self, require: &mut Require<'_>) {
        let rate = self.learning_rate;
        require(rate > 0.0 && rate.is_finite(), "optimizer.learning_rate", "must be positive");
        require(self.decay > 0.0 && self.decay <= 1.0, "optimizer.decay", "must be in (0, 1]");
        require(self.decay_every > 0, "optimizer.decay_every", "must be at least 1");
        require(
            (0.0..=rate).contains(&self.min_learning_rate),
            "optimizer.min_learning_rate",
            "must be between 0 and `optimizer.learning_rate`",
        );
        let factor = self.backbone_rate;
        require(
            factor >= 0.0 && factor.is_finite(),
            "optimizer.backbone_rate",
            "must be at least 0",
        );
        let weight_decay = self.weight_decay;
        require(
            weight_decay >= 0.0 && weight_decay.is_finite(),
            "optimizer.weight_decay",
            "must be at least 0",
        );
        require((0.0..1.0).contains(&self.momentum), "optimizer.momentum", "must be in [0, 1)");
        require(
            !self.nesterov || self.rule == Rule::Adam || self.momentum > 0.0,
            "optimizer.nesterov",
            "needs a positive `optimizer.momentum`",
        );
        require((0.0..1.0).contains(&self.beta1), "optimizer.beta1", "must be in [0, 1)");
        require((0.0..1.0).contains(&self.beta2), "optimizer.beta2", "must be in [0, 1)");
        require(self.epsilon > 0.0, "optimizer.epsilon", "must be positive");
    }
}

impl Default for TrainConfig {
    fn default() -> Self {
        Self {
            epochs: 400,
            batch_size: 8,
            patience: 0,
            keep: Keep::LowestError,
            tie: Tie::Latest,
            checkpoint_steps: 50,
        }
    }
}

impl Default for OptimizerConfig {
    fn default() -> Self {
        Self {
            rule: Rule::Sgd,
            learning_rate: 1e-3,
            decay: 0.1,
            decay_every: 40,
            min_learning_rate: 1e-7,
            backbone_rate: 1.0,
            frozen_epochs: 0,
            weight_decay: 1e-5,
            momentum: 0.9,
            nesterov: true,
            beta1: 0.9,
            beta2: 0.999,
            epsilon: 1e-8,
        }
    }
}
