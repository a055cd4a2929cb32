//! Class maps on a backbone, and nothing else.

use burn::{
    module::Module,
    tensor::{Device, Tensor},
};

use super::{Pass, init, resnet::Resnet, wildcat::Head};
use crate::config::Config;

/// A backbone with one head that gives a map per class.
#[derive(Module, Debug)]
pub struct CamNetwork {
    /// Public, because Grad-CAM cuts it in two.
    pub backbone: Resnet,
    localizer: Head,
}

impl CamNetwork {
    /// A network for `classes` classes with weights drawn from the settings' seed.
    pub fn new(config: &Config, classes: usize, device: &Device) -> Self {
        let backbone = Resnet::new(&config.model, device);
        let features = backbone.features();
        let localizer = Head::new(features, classes, config.pool.maps_per_class, device);
        init::draw(Self { backbone, localizer }, features, config.seed)
    }

    /// Shapes: `[B, 3, H, W]` → `[B, C, h, w]`.
    pub fn maps(&self, images: Tensor<4>, pass: Pass) -> Tensor<4> {
        self.localizer.maps(self.backbone.forward(images, pass))
    }

    /// The maps that follow from what a stage of the backbone, counted from 0, has given.
    pub fn maps_from(&self, stage: usize, x: Tensor<4>, pass: Pass) -> Tensor<4> {
        self.localizer.maps(self.backbone.from_stage(stage, x, pass))
    }
}
