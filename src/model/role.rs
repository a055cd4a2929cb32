//! What each tensor of a network is.

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

/// What the tensor in a field is to its layer, which is called by its type.
pub(super) fn role(layer: &str, field: &str) -> Option<Role> {
    Some(match (layer, field) {
        ("Conv" | "Head" | "Attention", "weight") => Role::Weight,
        ("Head" | "Attention", "bias") => Role::Bias,
        ("BatchNorm", "weight") => Role::NormScale,
        ("BatchNorm", "bias") => Role::NormShift,
        ("BatchNorm", "running_mean" | "running_var") => Role::Statistic,
        ("BatchNorm", "foreground_mean") => Role::ForegroundStatistic("running_mean"),
        ("BatchNorm", "foreground_var") => Role::ForegroundStatistic("running_var"),
        _ => return None,
    })
}

/// What a layer and all layers within it are part of, if that depends on none above.
pub(super) fn part(layer: &str) -> Option<Part> {
    match layer {
        "Resnet" => Some(Part::Backbone),
        "Head" | "Attention" => Some(Part::Head),
        _ => None,
    }
}
