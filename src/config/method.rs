//! Settings of recursive erasing and of the losses, and which semantics run.

use serde::{Deserialize, Serialize};

use super::{MaskConfig, MaskGradient, Require};

/// Whose reading of the method runs, see the table in `docs/method.md` §6.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Semantics {
    /// The paper, with the fixes listed in `docs/method.md`.
    #[default]
    Pinpoint,
    /// What the published code does; needed to reproduce published numbers.
    Reference,
}

/// Recursive erasing, see `docs/method.md` §4.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EraseConfig {
    /// u: how often the image is erased per step; zero trains without erasing.
    pub rounds: usize,
    /// σ of the trust decay `exp(−t/σ)`, counted in rounds.
    pub sigma: f64,
    /// First epoch, counted from 0, in which images are erased.
    pub first_epoch: usize,
    /// What erased pixels become.
    pub fill: Fill,
    /// Whether each round erases from the intact image instead of the already erased one.
    pub from_intact: bool,
}

/// What erased pixels become.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Fill {
    /// Zero of the normalized image: mid-grey under the published normalization.
    Zero,
    /// The mean colour of the training images.
    Mean,
    /// The image itself, blurred beyond recognition.
    Blur,
}

/// Weights of the terms of the loss: three are 1 as published, and areas are left out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LossConfig {
    /// Cross-entropy of the localizer.
    pub localizer: f64,
    /// Cross-entropy of the classifier on the foreground.
    pub foreground: f64,
    /// Distance of the classifier from knowing nothing about the background.
    pub background: f64,
    /// Share of the image that the mask covers; needs `mask.gradient = "through"`.
    pub area: f64,
    /// Keeps foreground and background from vanishing; needs `mask.gradient = "through"`.
    pub size: SizeConfig,
}

/// A log barrier that keeps foreground and background from vanishing, see `docs/method.md` §4.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SizeConfig {
    /// Weight of the term; 0 leaves it out.
    pub weight: f64,
    /// t in the first epoch: the higher, the closer to 0 an area may come unpunished.
    pub sharpness: f64,
    /// t is multiplied by this every epoch…
    pub growth: f64,
    /// …but never rises above this.
    pub max_sharpness: f64,
}

impl EraseConfig {
    pub(super) fn check(&self, require: &mut Require<'_>) {
        require(self.sigma > 0.0 && self.sigma.is_finite(), "erase.sigma", "must be positive");
        require(self.rounds <= 100, "erase.rounds", "must be at most 100");
    }
}

impl LossConfig {
    pub(super) fn check(&self, mask: &MaskConfig, require: &mut Require<'_>) {
        let terms = [
            (self.localizer, "loss.localizer"),
            (self.foreground, "loss.foreground"),
            (self.background, "loss.background"),
            (self.area, "loss.area"),
            (self.size.weight, "loss.size.weight"),
        ];
        for (weight, key) in terms {
            require(weight >= 0.0 && weight.is_finite(), key, "must be at least 0");
        }
        require(self.localizer > 0.0, "loss.localizer", "must be positive, or no mask is learned");
        for (weight, key) in [(self.area, "loss.area"), (self.size.weight, "loss.size.weight")] {
            require(
                weight == 0.0 || mask.gradient == MaskGradient::Through,
                key,
                "moves nothing unless `mask.gradient` is \"through\"",
            );
        }
        let SizeConfig { sharpness, growth, max_sharpness, .. } = self.size;
        require(sharpness > 0.0, "loss.size.sharpness", "must be positive");
        require(growth >= 1.0 && growth.is_finite(), "loss.size.growth", "must be at least 1");
        require(
            max_sharpness >= sharpness && max_sharpness.is_finite(),
            "loss.size.max_sharpness",
            "must not be below `loss.size.sharpness`",
        );
    }
}

impl Default for EraseConfig {
    fn default() -> Self {
        Self { rounds: 4, sigma: 10.0, first_epoch: 1, fill: Fill::Zero, from_intact: false }
    }
}

impl Default for LossConfig {
    fn default() -> Self {
        Self {
            localizer: 1.0,
            foreground: 1.0,
            background: 1.0,
            area: 0.0,
            size: SizeConfig::default(),
        }
    }
}

/// As the method's successor has it, but switched off.
impl Default for SizeConfig {
    fn default() -> Self {
        Self { weight: 0.0, sharpness: 5.0, growth: 1.01, max_sharpness: 10.0 }
    }
}
