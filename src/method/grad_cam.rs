//! Masks from gradients: how a class's score depends on the features of a stage.
//!
//! With features x and g = ∂s_k/∂x, both `[C, h, w]`, found by backpropagation
//! from the score to the chosen stage:
//!
//! ```text
//! Grad-CAM     relu(Σ_f w_f x_f),   w_f = mean over cells of g_f
//! Grad-CAM++   the same,            w_f = Σ over cells of α_f relu(g_f),
//!                                   α_f = g_f² / (2 g_f² + g_f³ Σ over cells of x_f)
//! LayerCAM     relu(Σ_f relu(g_f) x_f), cell by cell
//! ```
//!
//! Selvaraju et al., *Grad-CAM*, 2017; Chattopadhay et al., *Grad-CAM++*, 2018 (of
//! the exponential of the score, which only scales the map); Jiang et al.,
//! *LayerCAM*, 2021. The classifier is trained as CAM-Avg.

use burn::{
    module::Module as _,
    tensor::{Device, Tensor, activation::relu},
};

use super::{
    cam::Cam,
    classifier::{Classifier, DropoutKey, chosen},
    decision,
};
use crate::{
    config::Config,
    model::{Branch, Pass, cam::CamNetwork, pooling},
};

/// How gradients weigh features.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GradCam {
    /// One weight per channel: the mean gradient.
    Plain,
    /// One weight per channel: the sum of positive gradients, weighted by cell.
    PlusPlus,
    /// One weight per channel and cell: the positive gradient.
    Layer,
}

impl GradCam {
    /// The scores of one image, and the map of one of its classes at the settings' stage.
    ///
    /// Shapes: `[1, 3, H, W]` → `[1, C]`, `[1, 1, h, w]`.
    pub fn map(
        self,
        network: &CamNetwork,
        image: Tensor<4>,
        class: Option<usize>,
        config: &Config,
    ) -> (Tensor<2>, Tensor<4>) {
        let (stage, pass) = (config.grad_cam.stage.index(), Pass::Evaluate(Branch::Whole));
        let features = network.backbone.stages(image, pass)[stage].clone().inner();
        // Only the features need a gradient: the weights are constants here.
        let network = network.clone().no_grad().train();
        let leaf = features.clone().autodiff().require_grad();
        let scores = pooling::mean(network.maps_from(stage, leaf.clone(), pass));
        let class = chosen(&scores, class);
        let mut gradients = scores.clone().slice_dim(1, class..class + 1).sum().backward();
        let gradient = leaf.grad_remove(&mut gradients).expect("the score depends on the features");
        (scores.inner(), self.weigh(features, gradient))
    }

    /// Shapes: features and their gradient `[1, C, h, w]` → `[1, 1, h, w]`.
    pub fn weigh(self, features: Tensor<4>, gradient: Tensor<4>) -> Tensor<4> {
        let sum = |x: Tensor<4>| x.sum_dim(3).sum_dim(2);
        let weights = match self {
            Self::Plain => gradient.mean_dim(3).mean_dim(2),
            Self::PlusPlus => {
                let square = gradient.clone() * gradient.clone();
                let cube = square.clone() * gradient.clone();
                let below = square.clone() * 2.0 + cube * sum(features.clone());
                // Avoids 0/0 where the gradient is zero; the weight is zero there.
                let nothing = below.clone().equal_elem(0.0);
                let decisive = square / below.mask_fill(nothing, 1.0);
                sum(decisive * relu(gradient))
            }
            Self::Layer => relu(gradient),
        };
        relu((features * weights).sum_dim(1))
    }
}

impl Classifier for GradCam {
    type Network = CamNetwork;

    const TRAINED_AS: Option<&'static str> = Some("cam-avg");

    fn published(&self, config: &mut Config) {
        Classifier::published(&Cam::Average, config);
    }

    fn network(&self, config: &Config, classes: usize, device: &Device) -> CamNetwork {
        CamNetwork::new(config, classes, device)
    }

    fn scores(
        &self,
        network: &CamNetwork,
        images: Tensor<4>,
        pass: Pass,
        config: &Config,
        dropout: Option<DropoutKey<'_>>,
    ) -> Tensor<2> {
        Cam::Average.scores(network, images, pass, config, dropout)
    }

    fn scores_and_mask(
        &self,
        network: &CamNetwork,
        image: Tensor<4>,
        class: Option<usize>,
        config: &Config,
    ) -> (Tensor<2>, Tensor<4>) {
        let [_, _, height, width] = image.dims();
        let (scores, map) = self.map(network, image, class, config);
        // The stem divides by four, and each later stage by two until the output stride is reached.
        let stride = (4 << config.grad_cam.stage.index()).min(config.model.output_stride);
        (scores, decision::min_max(map, [height, width], stride, &config.mask))
    }

    fn mask_rule(&self, config: &Config) -> String {
        let stage = config.grad_cam.stage.index() + 1;
        format!("{}, at layer{stage}", decision::min_max_rule(&config.mask))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        config::{Backbone, Stage},
        device,
        model::layers::{tensor, values},
    };

    fn setup() -> (Config, CamNetwork, Tensor<4>) {
        let mut config = Config::default();
        config.model.backbone = Backbone::Tiny;
        config.model.output_stride = 8;
        config.pool.maps_per_class = 1;
        let network = CamNetwork::new(&config, 3, &device::cpu());
        let pixels = (0..3 * 32 * 40).map(|i| ((i * 37) % 101) as f32 / 50.0 - 1.0).collect();
        (config, network, tensor(pixels, [1, 3, 32, 40], &device::cpu()))
    }

    #[test]
    fn grad_cam_on_a_pooled_head_is_cam_up_to_scale_and_bias() {
        let (config, network, image) = setup();
        let pass = Pass::Evaluate(Branch::Whole);
        let maps = network.maps(image.clone(), pass);
        let zeros =
            Tensor::zeros(network.backbone.forward(image.clone(), pass).dims(), &device::cpu());
        let bias = network.maps_from(3, zeros, pass);
        let cam = maps.clone() - bias;
        for class in 0..3 {
            let (scores, map) = GradCam::Plain.map(&network, image.clone(), Some(class), &config);
            let found = values(map);
            let cells = found.len() as f32;
            let cam = values(cam.clone().slice_dim(1, class..class + 1));
            for (found, cam) in found.iter().zip(cam) {
                assert!((found * cells - cam.max(0.0)).abs() < 1e-4, "{found} {cam}");
            }
            let direct = values(pooling::mean(maps.clone()));
            let through = values(scores);
            assert!(direct.iter().zip(through).all(|(a, b)| (a - b).abs() < 1e-5));
        }
    }

    #[test]
    fn every_stage_gives_a_map_of_its_own_size() {
        let (mut config, network, image) = setup();
        for (stage, grid) in Stage::ALL.into_iter().zip([[8, 10], [4, 5], [4, 5], [4, 5]]) {
            config.grad_cam.stage = stage;
            for rule in [GradCam::Plain, GradCam::PlusPlus, GradCam::Layer] {
                let (_, map) = rule.map(&network, image.clone(), None, &config);
                assert_eq!(map.dims(), [1, 1, grid[0], grid[1]]);
                assert!(values(map).iter().all(|&value| value >= 0.0 && value.is_finite()));
            }
        }
    }

    #[test]
    fn the_three_weigh_by_hand() {
        let of = |cells: [f32; 4]| tensor(cells.to_vec(), [1, 2, 1, 2], &device::cpu());
        let (features, gradient) = (of([1.0, 2.0, 3.0, 0.0]), of([2.0, -1.0, 0.0, 1.0]));
        let map = |rule: GradCam| values(rule.weigh(features.clone(), gradient.clone()));
        // Means ½ and ½.
        assert_eq!(map(GradCam::Plain), [0.5 + 1.5, 1.0]);
        assert_eq!(map(GradCam::Layer), [2.0, 0.0]);
        // α = 4/(8 + 8·3) in the first cell, 0/0 → 0 in the third, 1/(2 + 3) in the fourth.
        let (first, second) = (4.0 / 32.0 * 2.0, 1.0 / 5.0);
        let expected = [first + 3.0 * second, 2.0 * first];
        let found = map(GradCam::PlusPlus);
        assert!(found.iter().zip(expected).all(|(a, b): (&f32, f32)| (a - b).abs() < 1e-6));
    }
}
