//! Settings that only some of the baselines have.

use serde::{Deserialize, Serialize};

use super::Require;

/// Attention of Deep MIL, see `docs/method.md` §7.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DeepMilConfig {
    /// Hidden units that attention is computed from.
    pub width: usize,
    /// Whether a sigmoid gate multiplies the hidden units.
    pub gated: bool,
    /// From how much attention on a pixel is foreground.
    pub cut: AttentionCut,
}

/// From how much attention on a pixel is foreground.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AttentionCut {
    /// More than its share, `1/n` of a map of n cells.
    Uniform,
    /// `1/(c·n)` with c classes: the published code, which marks nearly everything.
    Legacy,
}

/// Which layer Grad-CAM, Grad-CAM++ and LayerCAM read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GradCamConfig {
    /// The stage of the backbone whose features are weighed.
    pub stage: Stage,
}

/// A stage of the backbone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "named as torchvision names them")]
pub enum Stage {
    Layer1,
    Layer2,
    Layer3,
    Layer4,
}

/// The network of full supervision, see `docs/method.md` §7.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct UnetConfig {
    /// Channels at full resolution; each halving of the resolution doubles them.
    pub width: usize,
    /// How often the resolution is halved.
    pub depth: usize,
}

impl Stage {
    /// All stages, in the order of the network.
    pub const ALL: [Self; 4] = [Self::Layer1, Self::Layer2, Self::Layer3, Self::Layer4];

    /// Which stage, counted from 0.
    pub fn index(self) -> usize {
        self as usize
    }
}

impl DeepMilConfig {
    pub(super) fn check(&self, require: &mut Require<'_>) {
        require((1..=4096).contains(&self.width), "deep_mil.width", "must be in [1, 4096]");
    }
}

impl UnetConfig {
    pub(super) fn check(&self, require: &mut Require<'_>) {
        require((1..=256).contains(&self.width), "unet.width", "must be in [1, 256]");
        require((1..=5).contains(&self.depth), "unet.depth", "must be in [1, 5]");
    }
}

impl Default for DeepMilConfig {
    fn default() -> Self {
        Self { width: 128, gated: false, cut: AttentionCut::Uniform }
    }
}

impl Default for GradCamConfig {
    fn default() -> Self {
        Self { stage: Stage::Layer4 }
    }
}

impl Default for UnetConfig {
    fn default() -> Self {
        Self { width: 16, depth: 5 }
    }
}
