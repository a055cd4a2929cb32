//! Settings of recursive erasing and of the losses, and which semantics run.

use serde::{Deserialize, Serialize};

use super::{MaskConfig, MaskGradient, Problems};

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

settings! {
    ["erase."]
    /// Recursive erasing, see `docs/method.md` §4.
    pub struct EraseConfig {
        /// u: how often the image is erased per step; zero trains without erasing.
        pub rounds: usize = 4 => at_most(100),
        /// σ of the trust decay `exp(−t/σ)`, counted in rounds.
        pub sigma: f64 = 10.0 => positive(),
        /// First epoch, counted from 0, in which images are erased.
        pub first_epoch: usize = 1,
        /// What erased pixels become.
        pub fill: Fill = Fill::Zero,
        /// Whether each round erases from the intact image instead of the already erased one.
        pub from_intact: bool = false,
    }
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

settings! {
    ["loss."]
    /// Weights of the terms of the loss: three are 1 as published, and areas are left out.
    pub struct LossConfig {
        /// Cross-entropy of the localizer.
        pub localizer: f64 = 1.0 => at_least(0.0),
        /// Cross-entropy of the classifier on the foreground.
        pub foreground: f64 = 1.0 => at_least(0.0),
        /// Distance of the classifier from knowing nothing about the background.
        pub background: f64 = 1.0 => at_least(0.0),
        /// Share of the image that the mask covers; needs `mask.gradient = "through"`.
        pub area: f64 = 0.0 => at_least(0.0),
        /// Keeps foreground and background from vanishing; needs `mask.gradient = "through"`.
        pub size: SizeConfig,
    }
}

settings! {
    ["loss.size."]
    /// A log barrier that keeps foreground and background from vanishing, see `docs/method.md` §4:
    /// as the method's successor has it, but switched off.
    pub struct SizeConfig {
        /// Weight of the term; 0 leaves it out.
        pub weight: f64 = 0.0 => at_least(0.0),
        /// t in the first epoch: the higher, the closer to 0 an area may come unpunished.
        pub sharpness: f64 = 5.0 => positive(),
        /// t is multiplied by this every epoch…
        pub growth: f64 = 1.01 => at_least(1.0),
        /// …but never rises above this.
        pub max_sharpness: f64 = 10.0,
    }
}

impl LossConfig {
    pub(super) fn check(&self, mask: &MaskConfig, problems: &mut Problems) {
        let Self { localizer, area, ref size, .. } = *self;
        let reason = "must be positive, or no mask is learned";
        problems.require(localizer > 0.0, "loss.localizer", reason);
        for (weight, key) in [(area, "loss.area"), (size.weight, "loss.size.weight")] {
            problems.require(
                weight == 0.0 || mask.gradient == MaskGradient::Through,
                key,
                "moves nothing unless `mask.gradient` is \"through\"",
            );
        }
        problems.require(
            size.max_sharpness >= size.sharpness && size.max_sharpness.is_finite(),
            "loss.size.max_sharpness",
            "must not be below `loss.size.sharpness`",
        );
    }
}
