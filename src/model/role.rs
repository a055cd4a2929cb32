//! What each tensor of a network is, as its layer states it.

use super::{
    attention::Attention,
    layers::{BatchNorm, Conv},
    resnet::Resnet,
    wildcat::Head,
};

/// What a tensor is to its layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// What inputs are multiplied by.
    Weight,
    /// What is added to each output.
    Bias,
    /// γ of batch norm.
    NormScale,
    /// β of batch norm.
    NormShift,
    /// Running mean or variance of batch norm: moved by the data, not by gradients.
    Statistic,
    /// A statistic of foregrounds, which starts as the one of that name does for whole images.
    ForegroundStatistic(&'static str),
}

impl Role {
    /// Whether the tensor is moved by the data and not by gradients.
    pub fn is_statistic(self) -> bool {
        matches!(self, Self::Statistic | Self::ForegroundStatistic(_))
    }
}

/// What a part of a network is there for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Features of any image, which published weights may give.
    Backbone,
    /// The way from features to the classes of one dataset.
    Head,
}

/// What a layer states about itself.
pub(super) struct Layer {
    /// The name of its type.
    pub(super) name: &'static str,
    /// What it and all layers within it are part of, if it says so.
    pub(super) part: Option<Part>,
    /// The roles of its own tensors, by field.
    pub(super) roles: &'static [(&'static str, Role)],
}

const LAYERS: [Layer; 5] =
    [Conv::LAYER, BatchNorm::LAYER, Head::LAYER, Attention::LAYER, Resnet::LAYER];

/// What the layer of a type states; layers that only hold others state nothing.
pub(super) fn layer(name: &str) -> Option<&'static Layer> {
    LAYERS.iter().find(|layer| layer.name == name)
}
