//! Class and mask of preprocessed images, by a trained network.

use burn::tensor::{Tensor, activation::softmax};

use crate::{
    config::Config,
    model::{Branch, Model, Pass, Rules, layers::values, mask::foreground},
};

/// What a network says about the images of a batch, image by image.
#[derive(Debug, Clone, PartialEq)]
pub struct BatchOutput {
    /// Probabilities of the classes, by the classifier on the foreground: `[B, C]`.
    pub classifier: Vec<f32>,
    /// Probabilities of the classes, by the localizer on the whole image: `[B, C]`.
    pub localizer: Vec<f32>,
    /// Soft masks, 1 is foreground: `[B, H, W]`.
    pub masks: Vec<f32>,
}

/// The localizer's masks of preprocessed images `[B, 3, H, W]`, and the classes of what they show.
pub fn localize_batch(model: &Model, config: &Config, images: Tensor<4>) -> BatchOutput {
    let rules = Rules::new(config);
    let [_, _, height, width] = images.dims();
    let response = model.localize(images.clone(), Pass::Evaluate(Branch::Whole), &rules, None);
    let localizer = values(softmax(response.scores.clone(), 1));
    let mask = response.mask([height, width], &rules);
    let foreground = foreground(images, mask.clone());
    let judged = model.classify(foreground, Pass::Evaluate(Branch::Foreground), &rules, None);
    BatchOutput { classifier: values(softmax(judged.scores, 1)), localizer, masks: values(mask) }
}
