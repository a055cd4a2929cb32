//! What a trained network makes of preprocessed images.

use burn::tensor::{Device, Tensor, activation::softmax};

use crate::{
    config::Config,
    model::{
        Branch, Model, Pass, Rules,
        layers::{tensor, values},
        mask::foreground,
    },
};

/// Class and place, as the network sees them.
#[derive(Debug, Clone, PartialEq)]
pub struct Examination {
    /// Probability of each class, by the classifier on the foreground.
    pub classifier: Vec<f32>,
    /// Probability of each class, by the localizer on the whole image.
    pub localizer: Vec<f32>,
    /// Soft mask of the network's input, row by row, 1 is foreground.
    pub mask: Vec<f32>,
}

impl Examination {
    /// The class that is reported: the classifier's most probable one.
    pub fn class(&self) -> usize {
        most_probable(&self.classifier)
    }
}

/// Examines one preprocessed image of `[3, height, width]`.
pub fn examine(
    model: &Model,
    config: &Config,
    input: Vec<f32>,
    size: [usize; 2],
    device: &Device,
) -> Examination {
    let mut found = examine_batch(model, config, tensor(input, [1, 3, size[0], size[1]], device));
    found.pop().expect("one image gives one examination")
}

/// Examines preprocessed images of one size, `[B, 3, H, W]`.
///
/// The localizer gives the mask, the classifier the class on what the mask shows.
pub fn examine_batch(model: &Model, config: &Config, images: Tensor<4>) -> Vec<Examination> {
    let rules = Rules::new(config);
    let [_, _, height, width] = images.dims();
    let response = model.localize(images.clone(), Pass::Evaluate(Branch::Whole), &rules, None);
    let localizer = values(softmax(response.scores.clone(), 1));
    let mask = response.mask([height, width], &rules);
    let foreground = foreground(images, mask.clone());
    let judged = model.classify(foreground, Pass::Evaluate(Branch::Foreground), &rules, None);
    let classifier = values(softmax(judged.scores, 1));

    let classes = model.classes();
    let probabilities = classifier.chunks_exact(classes).zip(localizer.chunks_exact(classes));
    probabilities
        .zip(values(mask).chunks_exact(height * width))
        .map(|((classifier, localizer), mask)| Examination {
            classifier: classifier.to_vec(),
            localizer: localizer.to_vec(),
            mask: mask.to_vec(),
        })
        .collect()
}

/// The index of the largest value, the first of equals.
pub fn most_probable(probabilities: &[f32]) -> usize {
    let larger = |best: usize, next: usize| {
        if probabilities[next] > probabilities[best] { next } else { best }
    };
    (0..probabilities.len()).reduce(larger).unwrap_or(0)
}
