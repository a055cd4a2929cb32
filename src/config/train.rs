//! Settings of the optimisation.

use serde::{Deserialize, Serialize};

use super::Problems;

settings! {
    ["train."]
    /// How long to learn and which epoch to keep, see `docs/method.md` §5.
    pub struct TrainConfig {
        /// Passes over the training set.
        pub epochs: usize = 400 => at_least_one(),
        /// Images per step.
        pub batch_size: usize = 8 => at_least_one(),
        /// Epochs without a better one after which training stops; 0 never stops early.
        pub patience: usize = 0,
        /// By what the best epoch is chosen.
        pub keep: Keep = Keep::LowestError,
        /// Which of several equally good epochs is kept.
        pub tie: Tie = Tie::Latest,
        /// Steps between two checkpoints within an epoch; 0 saves at the end of epochs only.
        pub checkpoint_steps: usize = 50,
    }
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

settings! {
    ["optimizer."]
    /// The optimizer and its schedule, see `docs/method.md` §5.
    pub struct OptimizerConfig {
        /// The update rule.
        pub rule: Rule = Rule::Sgd,
        /// Step size in the first epoch.
        pub learning_rate: f64 = 1e-3 => positive(),
        /// The learning rate is multiplied by this…
        pub decay: f64 = 0.1 => positive_share(),
        /// …every so many epochs…
        pub decay_every: usize = 40 => at_least_one(),
        /// …but never falls below this.
        pub min_learning_rate: f64 = 1e-7,
        /// The backbone's step size as a multiple of the heads'.
        pub backbone_rate: f64 = 1.0 => at_least(0.0),
        /// Epochs at the start in which the backbone stays as it is, its statistics included.
        pub frozen_epochs: usize = 0,
        /// Added to every gradient, times its weight (coupled L2).
        pub weight_decay: f64 = 1e-5 => at_least(0.0),
        /// Momentum of SGD.
        pub momentum: f64 = 0.9 => within(0.0..1.0),
        /// Whether SGD looks ahead along the momentum.
        pub nesterov: bool = true,
        /// Decay of Adam's first moment.
        pub beta1: f64 = 0.9 => within(0.0..1.0),
        /// Decay of Adam's second moment.
        pub beta2: f64 = 0.999 => within(0.0..1.0),
        /// Keeps Adam's division finite.
        pub epsilon: f64 = 1e-8 => positive(),
    }
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

impl OptimizerConfig {
    pub(super) fn check(&self, problems: &mut Problems) {
        problems.require(
            (0.0..=self.learning_rate).contains(&self.min_learning_rate),
            "optimizer.min_learning_rate",
            "must be between 0 and `optimizer.learning_rate`",
        );
        problems.require(
            !self.nesterov || self.rule == Rule::Adam || self.momentum > 0.0,
            "optimizer.nesterov",
            "needs a positive `optimizer.momentum`",
        );
    }
}
