//! Settings of the network and of what it predicts.

use serde::{Deserialize, Serialize};

use super::Problems;

settings! {
    ["model."]
    /// The backbone that both heads share, see `docs/method.md` §1.
    pub struct ModelConfig {
        /// Depth of the residual network.
        pub backbone: Backbone = Backbone::Resnet101,
        /// The first convolutions.
        pub stem: Stem = Stem::Deep,
        /// Pixels of input per cell of the last map: 32, or 16 and 8 by dilation.
        pub output_stride: usize = 32,
        /// Which passes move the running statistics of batch norm.
        pub statistics: Statistics = Statistics::All,
        /// Whether the statistics are measured afresh on the training set when training ends.
        pub recalibrate: bool = false,
        /// Side of the classifier's input as a fraction of the localizer's.
        pub classifier_scale: f64 = 0.5 => positive_share(),
        /// What computes the layers on the processor.
        pub kernels: Kernels = Kernels::Fused,
    }
}

/// Depth of the residual network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Backbone {
    /// One narrow block per stage, 0.3 million weights: for demonstrations and tests.
    Tiny,
    /// 2, 2, 2, 2 basic blocks.
    Resnet18,
    /// 3, 4, 6, 3 basic blocks.
    Resnet34,
    /// 3, 4, 6, 3 bottlenecks.
    Resnet50,
    /// 3, 4, 23, 3 bottlenecks: the published choice.
    Resnet101,
}

/// The first convolutions of the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stem {
    /// Three 3×3 convolutions to 128 channels: the published choice.
    Deep,
    /// One 7×7 convolution to 64 channels, as in torchvision.
    Classic,
}

/// Which passes of a training step move the running statistics of batch norm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Statistics {
    /// Every pass, erased and masked images included: the published behaviour.
    All,
    /// Only the localizer's pass over the intact image, which is what evaluation shows it first.
    Localizer,
    /// Whole images and foregrounds each move statistics of their own, so that evaluation
    /// normalizes both as training did.
    Separate,
}

/// What computes the layers on the processor; other devices always use their own operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kernels {
    /// Convolution, batch norm, shortcut and ReLU in one operation, by `conv-kernels`.
    Fused,
    /// The tensor framework's own operations, one by one: slower, to check against.
    Composed,
}

settings! {
    ["pool."]
    /// How class maps become scores, see `docs/method.md` §2.
    pub struct PoolConfig {
        /// Maps averaged into the map of each class.
        pub maps_per_class: usize = 5 => within(1..=10_000),
        /// Highest cells averaged into a class's score.
        pub top: Cells = Cells::Fraction(0.09),
        /// Lowest cells averaged as evidence against the class.
        pub bottom: Cells = Cells::Fraction(0.09),
        /// Weight of the evidence against; 0 leaves it out.
        pub bottom_weight: f64 = 0.0,
        /// r of log-sum-exp pooling: 0 tends to the mean, ∞ to the maximum.
        pub sharpness: f64 = 10.0 => positive(),
        /// Probability that a sorted cell is dropped in training.
        pub dropout: f64 = 0.75 => within(0.0..1.0),
    }
}

/// A number of cells: an integer counts them, a fraction is of the whole map.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Cells {
    /// This many.
    Count(usize),
    /// This share of the map.
    Fraction(f64),
}

settings! {
    ["mask."]
    /// How the localizer's maps become a mask, see `docs/method.md` §3.
    pub struct MaskConfig {
        /// What decides which pixels are foreground.
        pub rule: Decision = Decision::Method,
        /// What the maps of all classes together say of a place.
        pub evidence: Evidence = Evidence::Auto,
        /// σ′: the normalized score that becomes a mask value of one half.
        pub threshold: f64 = 0.5 => within(0.0..=1.0),
        /// ω: how sharply the mask turns from background to foreground.
        pub steepness: f64 = 8.0 => positive(),
        /// Percentile of the map that is brought to 0; 0 is the minimum.
        pub low_percentile: f64 = 0.0,
        /// Percentile of the map that is brought to 1; 100 is the maximum.
        pub high_percentile: f64 = 100.0,
        /// Where the cells of a map lie in the image.
        pub alignment: Alignment = Alignment::Corners,
        /// Whether the classifier's losses reach the localizer through the mask.
        pub gradient: MaskGradient = MaskGradient::Detached,
    }
}

/// What decides which pixels are foreground.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Decision {
    /// The method's own rule, see `docs/method.md` §7.
    Method,
    /// The class's map, brought to `[0, 1]` and cut at `mask.threshold`: one rule for all methods.
    MinMax,
}

/// What the maps A of all classes together say of a place, see `docs/method.md` §3.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Evidence {
    /// `Σ p_k A_k`: as published, with whatever all maps have in common.
    Weighted,
    /// `Σ p_k (A_k − mean_j A_j)`: without what all maps have in common.
    Centred,
    /// The standard deviation of A over the classes: how much is decided here, whatever the class.
    Spread,
    /// What measured best: spread, or centred if there are only two classes.
    Auto,
}

/// Where the cells of a map lie in the image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Alignment {
    /// The first and last cells on the first and last pixels, as published.
    Corners,
    /// Each cell on the pixel its receptive field is centred on: cell i at `i · output_stride`.
    Centres,
}

/// Whether the classifier's losses reach the localizer through the mask.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MaskGradient {
    /// No: the mask is a constant to the classifier, as published.
    Detached,
    /// Yes, at the cost of one more forward pass per round.
    Through,
}

impl Backbone {
    /// As settings name it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tiny => "tiny",
            Self::Resnet18 => "resnet18",
            Self::Resnet34 => "resnet34",
            Self::Resnet50 => "resnet50",
            Self::Resnet101 => "resnet101",
        }
    }
}

impl Evidence {
    /// What is meant for so many classes; a single one has nothing in common with others.
    pub fn of(self, classes: usize) -> Self {
        match (self, classes) {
            (_, ..=1) => Self::Weighted,
            (Self::Auto, 2) => Self::Centred,
            (Self::Auto, _) => Self::Spread,
            (kind, _) => kind,
        }
    }

    /// What is taken from the belief in each class to weigh its map.
    ///
    /// As `Σ p = 1`, centred evidence is `Σ (p_k − 1/C) A_k`.
    pub fn common(self, classes: usize) -> f32 {
        if self == Self::Centred { 1.0 / classes as f32 } else { 0.0 }
    }
}

impl Cells {
    /// How many of `n` cells are meant: halves round to even, and at least one is taken.
    pub fn of(self, n: usize) -> usize {
        let count = match self {
            Self::Count(count) => count,
            Self::Fraction(share) => (share * n as f64).round_ties_even() as usize,
        };
        count.clamp(1, n)
    }
}

impl ModelConfig {
    pub(super) fn check(&self, problems: &mut Problems) {
        let possible = [8, 16, 32].contains(&self.output_stride);
        problems.require(possible, "model.output_stride", "must be 8, 16 or 32");
    }
}

impl PoolConfig {
    pub(super) fn check(&self, problems: &mut Problems) {
        for (cells, key) in [(self.top, "pool.top"), (self.bottom, "pool.bottom")] {
            let possible = match cells {
                Cells::Count(count) => count > 0,
                Cells::Fraction(share) => share > 0.0 && share <= 1.0,
            };
            problems.require(possible, key, "must be a positive count, or a fraction in (0, 1]");
        }
        problems.require(self.bottom_weight.is_finite(), "pool.bottom_weight", "must be a number");
    }
}

impl MaskConfig {
    pub(super) fn check(&self, problems: &mut Problems) {
        let Self { low_percentile: low, high_percentile: high, .. } = *self;
        problems.require(
            0.0 <= low && low < high && high <= 100.0,
            "mask.low_percentile",
            "must be at least 0 and below `mask.high_percentile`, which is at most 100",
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fraction_of_the_cells_rounds_halves_to_even_and_is_never_zero() {
        let share = Cells::Fraction(0.09);
        let counts = [225, 64, 425, 117, 16, 4, 50].map(|n| share.of(n));
        assert_eq!(counts, [20, 6, 38, 11, 1, 1, 4]);
    }

    #[test]
    fn an_integer_counts_cells_and_a_fraction_is_of_the_map() {
        let parse = |text: &str| toml::from_str::<PoolConfig>(text).unwrap().top;
        assert_eq!(parse("top = 1"), Cells::Count(1));
        assert_eq!(parse("top = 1.0"), Cells::Fraction(1.0));
        assert_eq!((Cells::Count(1).of(9), Cells::Fraction(1.0).of(9)), (1, 9));
        assert_eq!(Cells::Count(100).of(9), 9);
    }
}
