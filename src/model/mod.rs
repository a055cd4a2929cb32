//! The network: one backbone, a localizer head and a classifier head.
//!
//! ```text
//! image ─▶ backbone ─▶ localizer ─▶ maps, scores ─▶ mask
//! image × mask ─▶ (half size) ─▶ backbone ─▶ classifier ─▶ scores
//! ```

pub mod attention;
pub mod cam;
mod composed;
pub mod footprint;
mod fused;
mod init;
pub mod known;
pub mod layers;
pub mod mask;
pub mod params;
mod pass;
pub mod pooling;
pub mod resnet;
pub mod role;
pub mod soft_mask;
pub mod unet;
pub mod weights;
pub mod wildcat;

use burn::{
    module::Module,
    tensor::{Device, Tensor},
};

pub use self::pass::{Branch, Pass};
use self::{
    mask::{MaskEquation, soft_mask},
    resnet::Resnet,
    wildcat::{Head, Pooling, pool},
};
use crate::config::{Config, Semantics};

/// The output of a head for a batch of images.
#[derive(Debug, Clone)]
pub struct Response {
    /// One score per class, `[B, C]`; softmax makes them probabilities.
    pub scores: Tensor<2>,
    /// One map per class, `[B, C, h, w]`.
    pub maps: Tensor<4>,
}

/// Localizer and classifier on one backbone.
#[derive(Module, Debug)]
pub struct Model {
    backbone: Resnet,
    localizer: Head,
    classifier: Head,
    #[module(skip)]
    classes: usize,
}

impl Model {
    /// A model for `classes` classes with weights drawn from the settings' seed.
    pub fn new(config: &Config, classes: usize, device: &Device) -> Self {
        let blank = Self::blank(config, classes, device);
        let features = blank.backbone.features();
        init::draw(blank, features, config.seed)
    }

    /// A model whose weights are all yet to be loaded.
    pub fn blank(config: &Config, classes: usize, device: &Device) -> Self {
        let backbone = Resnet::new(&config.model, device);
        let head = || Head::new(backbone.features(), classes, config.pool.maps_per_class, device);
        let (localizer, classifier) = (head(), head());
        Self { backbone, localizer, classifier, classes }
    }

    /// The number of classes.
    pub fn classes(&self) -> usize {
        self.classes
    }

    /// The localizer on images of the input size.
    ///
    /// `keep` is the factor of dropout for each sorted cell, `[B, C, cells]`; `None` for no
    /// dropout.
    pub fn localize(
        &self,
        images: Tensor<4>,
        pass: Pass,
        rules: &Rules<'_>,
        keep: Option<&[f32]>,
    ) -> Response {
        Response::of(self.localizer.maps(self.backbone.forward(images, pass)), rules, keep)
    }

    /// The classifier on foregrounds or backgrounds, which are resized to its input size first.
    pub fn classify(
        &self,
        images: Tensor<4>,
        pass: Pass,
        rules: &Rules<'_>,
        keep: Option<&[f32]>,
    ) -> Response {
        let [_, _, height, width] = images.dims();
        let images = mask::resize(images, rules.classifier_size([height, width]));
        Response::of(self.classifier_maps(images, pass), rules, keep)
    }

    /// The classifier's maps of images that already have the size of its input.
    pub fn classifier_maps(&self, images: Tensor<4>, pass: Pass) -> Tensor<4> {
        self.classifier.maps(self.backbone.forward(images, pass))
    }

    /// Cells of the localizer's and of the classifier's maps for images of one size.
    pub fn cells(&self, size: [usize; 2], rules: &Rules<'_>) -> [usize; 2] {
        let count = |size| self.backbone.grid(size).iter().product();
        [count(size), count(rules.classifier_size(size))]
    }
}

impl Response {
    fn of(maps: Tensor<4>, rules: &Rules<'_>, keep: Option<&[f32]>) -> Self {
        Self { scores: pool(maps.clone(), &rules.pooling(), keep), maps }
    }

    /// The soft mask of the maps, `[B, 1, H, W]`.
    pub fn mask(self, size: [usize; 2], rules: &Rules<'_>) -> Tensor<4> {
        soft_mask(self.scores, self.maps, size, &rules.mask())
    }

    /// The same values, as constants to the gradient.
    pub fn detached(&self) -> Self {
        Self { scores: self.scores.clone().inner(), maps: self.maps.clone().inner() }
    }
}

/// The settings by which the network's output is pooled and made a mask.
#[derive(Debug, Clone, Copy)]
pub struct Rules<'a> {
    config: &'a Config,
}

impl<'a> Rules<'a> {
    /// The rules of one run.
    pub fn new(config: &'a Config) -> Self {
        Self { config }
    }

    pub(crate) fn pooling(&self) -> Pooling<'a> {
        Pooling {
            config: &self.config.pool,
            counts_evidence_against: self.config.semantics != Semantics::Reference,
        }
    }

    pub(crate) fn mask(&self) -> MaskEquation<'a> {
        MaskEquation {
            config: &self.config.mask,
            evidence: self.config.evidence(),
            stride: self.config.model.output_stride,
            batch_wide: self.config.semantics == Semantics::Reference,
        }
    }

    pub(crate) fn classifier_size(&self, size: [usize; 2]) -> [usize; 2] {
        size.map(|side| ((side as f64 * self.config.model.classifier_scale) as usize).max(1))
    }
}
