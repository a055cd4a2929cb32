//! Class and mask of preprocessed images, by a trained network.

use burn::tensor::{Tensor, activation::softmax};

use crate::{
    config::Config,
    method::ModelOutput,
    model::{Branch, Model, Pass, Rules, layers::values, mask::foreground},
};

/// The localizer's mask and classes of images `[B, 3, H, W]`, and the classifier's of what the mask
/// shows; of several images, one after the other.
pub fn localize(model: &Model, config: &Config, images: Tensor<4>) -> ModelOutput {
    let rules = Rules::new(config);
    let [_, _, height, width] = images.dims();
    let response = model.localize(images.clone(), Pass::Evaluate(Branch::Whole), &rules, None);
    let localizer = values(softmax(response.scores.clone(), 1));
    let mask = response.mask([height, width], &rules);
    let foreground = foreground(images, mask.clone());
    let classified = model.classify(foreground, Pass::Evaluate(Branch::Foreground), &rules, None);
    ModelOutput {
        classifier: Some(values(softmax(classified.scores, 1))),
        localizer: Some(localizer),
        scores: values(mask),
    }
}
