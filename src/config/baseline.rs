//! Settings that only some of the baselines have.

use serde::{Deserialize, Serialize};

use super::Problems;

settings! {
    ["deep_mil."]
    /// Attention of Deep MIL, see `docs/method.md` §7.
    pub struct DeepMilConfig {
        /// Hidden units that attention is computed from.
        pub width: usize = 128 => within(1..=4096),
        /// Whether a sigmoid gate multiplies the hidden units.
        pub gated: bool = false,
        /// From how much attention on a pixel is foreground.
        pub cut: AttentionCut = AttentionCut::Uniform,
    }
}

/// From how much attention on a pixel is foreground.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AttentionCut {
    /// At least its share, `1/n` of a map of n cells.
    Uniform,
    /// `1/(c·n)` with c classes: the published code, which marks nearly everything.
    Legacy,
}

settings! {
    ["grad_cam."]
    /// Which layer Grad-CAM, Grad-CAM++ and LayerCAM read.
    pub struct GradCamConfig {
        /// The stage of the backbone whose features are weighed.
        pub stage: Stage = Stage::Layer4,
    }
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

settings! {
    ["unet."]
    /// The network of full supervision, see `docs/method.md` §7.
    pub struct UnetConfig {
        /// Channels at full resolution; each halving of the resolution doubles them.
        pub width: usize = 16 => within(1..=256),
        /// How often the resolution is halved.
        pub depth: usize = 5 => within(1..=5),
    }
}

impl Stage {
    /// All stages, in the order of the network.
    pub const ALL: [Self; 4] = [Self::Layer1, Self::Layer2, Self::Layer3, Self::Layer4];

    /// Which stage, counted from 0.
    pub fn index(self) -> usize {
        self as usize
    }
}
