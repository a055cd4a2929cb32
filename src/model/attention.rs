//! Attention over the cells of a map, one distribution per class.
//!
//! Ilse, Tomczak and Welling, *Attention-based deep multiple instance learning*,
//! 2018, for several classes:
//!
//! ```text
//! h   = tanh(V x)  [⊙ sigmoid(U x), gated]    of each cell's features x
//! a_k = softmax over cells of (W h)_k          one distribution per class
//! s_k = w_k · Σ a_k x + b_k                    the score of what it attends to
//! ```

use burn::{
    module::{Module, Param},
    tensor::{
        Device, Tensor,
        activation::{sigmoid, softmax, tanh},
    },
};

use super::{Pass, Response, init, resnet::Resnet, wildcat::Head};
use crate::config::Config;

/// A backbone whose features are gathered by attention.
#[derive(Module, Debug)]
pub struct AttentionNetwork {
    backbone: Resnet,
    localizer: Attention,
}

/// From features to attention and scores.
#[derive(Module, Debug)]
pub struct Attention {
    hidden: Head,
    gate: Option<Head>,
    attend: Head,
    /// `[classes, features]`
    weight: Param<Tensor<2>>,
    /// `[classes]`
    bias: Param<Tensor<1>>,
}

impl AttentionNetwork {
    /// A network for `classes` classes with weights drawn from the settings' seed.
    pub fn new(config: &Config, classes: usize, device: &Device) -> Self {
        let backbone = Resnet::new(&config.model, device);
        let features = backbone.features();
        let localizer = Attention::new(config, features, classes, device);
        init::draw(Self { backbone, localizer }, features, config.seed)
    }

    /// Scores `[B, C]`, and attention `[B, C, h, w]` as maps.
    pub fn attend(&self, images: Tensor<4>, pass: Pass) -> Response {
        self.localizer.forward(self.backbone.forward(images, pass))
    }
}

impl Attention {
    /// A head whose weights are yet to be drawn or loaded.
    pub fn new(config: &Config, features: usize, classes: usize, device: &Device) -> Self {
        let width = config.deep_mil.width;
        // A 1×1 convolution with bias is a head with one map per output.
        let unit = |inputs, outputs| Head::new(inputs, outputs, 1, device);
        Self {
            hidden: unit(features, width),
            gate: config.deep_mil.gated.then(|| unit(features, width)),
            attend: unit(width, classes),
            weight: Param::from_tensor(Tensor::zeros([classes, features], device)),
            bias: Param::from_tensor(Tensor::zeros([classes], device)),
        }
    }

    /// Shapes: `[B, features, h, w]` → `[B, C]` and `[B, C, h, w]`.
    pub fn forward(&self, features: Tensor<4>) -> Response {
        let mut hidden = tanh(self.hidden.maps(features.clone()));
        if let Some(gate) = &self.gate {
            hidden = hidden * sigmoid(gate.maps(features.clone()));
        }
        let logits = self.attend.maps(hidden);
        let shape = logits.dims();
        let attention = softmax(logits.flatten::<3>(2, 3), 2);
        // [B, C, n] × [B, n, F]: what each class attends to.
        let gathered = attention.clone().matmul(features.flatten::<3>(2, 3).swap_dims(1, 2));
        let scores = (gathered * self.weight.val().unsqueeze::<3>()).sum_dim(2);
        let scores = scores.squeeze_dim::<2>(2) + self.bias.val().unsqueeze::<2>();
        Response { scores, maps: attention.reshape(shape) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        config::Backbone,
        device,
        model::{
            Branch,
            layers::{tensor, values},
            params,
        },
    };

    fn network(gated: bool) -> AttentionNetwork {
        let mut config = Config::default();
        config.model.backbone = Backbone::Tiny;
        config.model.output_stride = 8;
        config.deep_mil.gated = gated;
        AttentionNetwork::new(&config, 3, &device::cpu())
    }

    #[test]
    fn attention_sums_to_one_for_each_class() {
        let pixels = (0..2 * 3 * 32 * 40).map(|i| ((i * 37) % 101) as f32 / 50.0 - 1.0).collect();
        let images = tensor(pixels, [2, 3, 32, 40], &device::cpu());
        for gated in [false, true] {
            let seen = network(gated).attend(images.clone(), Pass::Evaluate(Branch::Whole));
            assert_eq!(seen.maps.dims(), [2, 3, 4, 5]);
            for map in values(seen.maps).chunks_exact(20) {
                assert!((map.iter().sum::<f32>() - 1.0).abs() < 1e-5, "{map:?}");
                assert!(map.iter().all(|&a| a > 0.0));
            }
        }
    }

    #[test]
    fn uniform_attention_scores_the_mean_of_the_features() {
        let mut config = Config::default();
        config.deep_mil.width = 2;
        let head = Attention::new(&config, 2, 1, &device::cpu());
        // Attention of zero weights is uniform; the score weighs the features by 3 and −1, plus ½.
        let head = params::map(head, |name, _, old| match name {
            "weight" => tensor(vec![3.0, -1.0], [2], &device::cpu()),
            "bias" => tensor(vec![0.5], [1], &device::cpu()),
            _ => old,
        });
        let features = tensor(vec![1.0, 3.0, 10.0, 20.0], [1, 2, 1, 2], &device::cpu());
        let seen = head.forward(features);
        assert_eq!(values(seen.maps), [0.5, 0.5]);
        assert_eq!(values(seen.scores), [3.0 * 2.0 - 15.0 + 0.5]);
    }

    #[test]
    fn the_gate_has_weights_of_its_own() {
        let gate =
            |gated| params::collect(&network(gated)).keys().any(|name| name.contains("gate"));
        assert!(gate(true) && !gate(false));
    }
}
