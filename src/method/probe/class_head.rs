//! The class head: a linear classifier on the backbone's descriptor of an image, or of its
//! foreground.

use std::ops::Range;

use nalgebra::DMatrix;

use super::heads::TESTED_IMAGES;
use crate::{
    config::ClassView,
    method::most_probable,
    stats::{HeldOut, LinearClassifier, cross_validated},
};

/// The values of C, the inverse strength of the penalty, that are tried.
const INVERSE_PENALTIES: [f64; 3] = [0.01, 0.1, 1.0];

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ClassHead {
    /// Takes the descriptor of all class stages.
    pub(crate) classifier: LinearClassifier,
    pub(crate) input: ClassInput,
}

/// What of an image a class head is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ClassInput {
    Image,
    /// The image through its mask.
    Foreground,
}

/// Descriptors of the training images.
#[derive(Debug, Clone)]
pub(crate) struct Descriptors {
    pub(crate) image: Vec<Vec<f32>>,
    /// Of the images through their masks; empty if no head is to be given those.
    pub(crate) foreground: Vec<Vec<f32>>,
    /// Index in a descriptor at which the last stage begins.
    pub(crate) last_stage: usize,
}

impl Descriptors {
    fn of(&self, input: ClassInput) -> &[Vec<f32>] {
        match input {
            ClassInput::Image => &self.image,
            ClassInput::Foreground => &self.foreground,
        }
    }
}

/// A class head that may be chosen, and its cross-validated score.
struct Candidate {
    input: ClassInput,
    features: Range<usize>,
    c: f64,
    held_out: Option<HeldOut>,
}

impl ClassHead {
    /// The head with the least cross-validated log-loss, and its cross-validated error in percent;
    /// no error if too few images have the same class to validate on.
    ///
    /// Candidates are given the image or its foreground (both are tried if the `view` leaves it
    /// open), the last stage or all class stages, and one of several penalties.
    pub(crate) fn train(
        descriptors: &Descriptors,
        labels: &[usize],
        classes: usize,
        view: ClassView,
        seed: u64,
    ) -> (Self, Option<f64>) {
        let width = descriptors.image.first().map_or(0, Vec::len);
        // With a single class stage, both choices are the same.
        let mut starts = vec![0, descriptors.last_stage];
        starts.dedup();
        let views: &[ClassInput] = match view {
            ClassView::Best => &[ClassInput::Image, ClassInput::Foreground],
            ClassView::Image => &[ClassInput::Image],
            ClassView::Foreground => &[ClassInput::Foreground],
        };
        let candidates = views.iter().flat_map(|&input| {
            let images = descriptors.of(input);
            starts
                .iter()
                .flat_map(move |&from| candidates(input, images, from..width, labels, seed))
        });
        let loss = |candidate: &Candidate| {
            candidate.held_out.map_or(f64::INFINITY, |found| found.log_loss)
        };
        let best = candidates.min_by(|a, b| loss(a).total_cmp(&loss(b)));
        let Candidate { input, features, c, held_out } =
            best.expect("there are several to choose from");
        let images = columns(descriptors.of(input), &features);
        let fitted = LinearClassifier::fit(&images, labels, classes, c);
        // Features that are left out have weight zero, so that every head takes a whole descriptor.
        let mut weights = DMatrix::zeros(classes, width);
        weights.columns_mut(features.start, features.len()).copy_from(&fitted.weights);
        let classifier = LinearClassifier { weights, ..fitted };
        (Self { classifier, input }, held_out.map(|found| found.error))
    }

    /// The probability of each class, from the descriptor of the head's [input](ClassInput).
    pub(crate) fn probabilities(&self, descriptor: &[f32]) -> Vec<f32> {
        let logarithms = self.classifier.log_probabilities(descriptor);
        logarithms.into_iter().map(|value| value.exp() as f32).collect()
    }

    /// Share of misclassified images, in percent.
    pub(crate) fn error(&self, descriptors: &Descriptors, labels: &[usize]) -> f64 {
        let named = descriptors.of(self.input).iter().map(|seen| self.probabilities(seen));
        let wrong = named.zip(labels).filter(|(found, label)| most_probable(found) != **label);
        100.0 * wrong.count() as f64 / labels.len() as f64
    }
}

/// One candidate for each penalty.
fn candidates(
    input: ClassInput,
    images: &[Vec<f32>],
    features: Range<usize>,
    labels: &[usize],
    seed: u64,
) -> Vec<Candidate> {
    let tested = images.len().min(TESTED_IMAGES);
    let images = columns(&images[..tested], &features);
    let found = cross_validated(&images, &labels[..tested], &INVERSE_PENALTIES, 1, seed);
    let candidate = |(index, c)| {
        let held_out = found.as_ref().map(|found| found[index]);
        Candidate { input, features: features.clone(), c, held_out }
    };
    INVERSE_PENALTIES.into_iter().enumerate().map(candidate).collect()
}

fn columns<'a>(images: &'a [Vec<f32>], features: &Range<usize>) -> Vec<&'a [f32]> {
    images.iter().map(|image| &image[features.clone()]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Purpose, Stream};

    /// Forty features, of which one of the last stage's two tells the class in one of the views.
    fn descriptors(telling: ClassInput) -> (Descriptors, Vec<usize>) {
        let mut stream = Stream::new(4, Purpose::Synthetic, 0, 0);
        let labels: Vec<usize> = (0..40).map(|image| image % 2).collect();
        let mut of = |input: ClassInput| -> Vec<Vec<f32>> {
            let mut image = |&label: &usize| {
                let mut seen: Vec<f32> = (0..40).map(|_| stream.normal() as f32).collect();
                if input == telling {
                    seen[38] += 6.0 * label as f32;
                }
                seen
            };
            labels.iter().map(&mut image).collect()
        };
        let (image, foreground) = (of(ClassInput::Image), of(ClassInput::Foreground));
        (Descriptors { image, foreground, last_stage: 38 }, labels)
    }

    #[test]
    fn the_head_sees_what_tells_held_out_images_best() {
        for telling in [ClassInput::Image, ClassInput::Foreground] {
            let (descriptors, labels) = descriptors(telling);
            let train = |view| ClassHead::train(&descriptors, &labels, 2, view, 1);
            let (head, error) = train(ClassView::Best);
            assert_eq!(head.input, telling);
            assert!(error.unwrap() < 10.0, "{error:?}");
            assert!(head.error(&descriptors, &labels) < 10.0);
            // The stage before has nothing to say here, and is left out.
            assert_eq!(head.classifier.weights[(0, 0)], 0.0);
            assert_eq!(train(ClassView::Image).0.input, ClassInput::Image);
            assert_eq!(train(ClassView::Foreground).0.input, ClassInput::Foreground);
        }
    }

    #[test]
    fn without_two_images_of_a_class_there_is_a_head_and_no_error() {
        let (descriptors, _) = descriptors(ClassInput::Image);
        let labels: Vec<usize> = (0..40).collect();
        let (head, error) = ClassHead::train(&descriptors, &labels, 40, ClassView::Best, 1);
        assert_eq!((head.input, error), (ClassInput::Image, None));
    }
}
