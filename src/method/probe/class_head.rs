//! The class head: a linear classifier of what the backbone says about an image, or about its
//! foreground alone.

use std::ops::Range;

use nalgebra::DMatrix;

use super::heads::TESTED_IMAGES;
use crate::{
    config::ClassView,
    method::most_probable,
    stats::{HeldOut, LinearClassifier, cross_validated},
};

/// Weights of the images against the penalty, to be chosen from.
const WEIGHTS: [f64; 3] = [0.01, 0.1, 1.0];

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ClassHead {
    /// Of descriptors of all class stages.
    pub(crate) classifier: LinearClassifier,
    pub(crate) sees: Sees,
}

/// What a class head sees of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sees {
    Image,
    /// The image through its mask.
    Foreground,
}

/// Descriptors of the training images.
#[derive(Debug, Clone)]
pub(crate) struct Descriptors {
    pub(crate) image: Vec<Vec<f32>>,
    /// Of what their masks show; none if no head is to see that.
    pub(crate) foreground: Vec<Vec<f32>>,
    /// Where the last stage begins in each.
    pub(crate) last_stage: usize,
}

impl Descriptors {
    fn seen(&self, sees: Sees) -> &[Vec<f32>] {
        match sees {
            Sees::Image => &self.image,
            Sees::Foreground => &self.foreground,
        }
    }
}

/// A class head that may be chosen, and what it makes of images that it was not fitted to.
struct Choice {
    sees: Sees,
    features: Range<usize>,
    weight: f64,
    held_out: Option<HeldOut>,
}

impl ClassHead {
    /// The head that is best on training images that it was not fitted to, and its mistakes on
    /// these in percent; none if too few images have the same class.
    ///
    /// It sees the images or their foreground, whichever is better if the `view` leaves it open, by
    /// the last stage alone or by all of them, with one of several penalties.
    pub(crate) fn train(
        descriptors: &Descriptors,
        labels: &[usize],
        classes: usize,
        view: ClassView,
        seed: u64,
    ) -> (Self, Option<f64>) {
        let width = descriptors.image.first().map_or(0, Vec::len);
        // A single stage is all of them.
        let mut froms = vec![0, descriptors.last_stage];
        froms.dedup();
        let views: &[Sees] = match view {
            ClassView::Best => &[Sees::Image, Sees::Foreground],
            ClassView::Image => &[Sees::Image],
            ClassView::Foreground => &[Sees::Foreground],
        };
        let choices = views.iter().flat_map(|&sees| {
            let images = descriptors.seen(sees);
            froms.iter().flat_map(move |&from| choices(sees, images, from..width, labels, seed))
        });
        let loss = |choice: &Choice| choice.held_out.map_or(f64::INFINITY, |found| found.log_loss);
        let best = choices.min_by(|a, b| loss(a).total_cmp(&loss(b)));
        let Choice { sees, features, weight, held_out } =
            best.expect("there are several to choose from");
        let images = columns(descriptors.seen(sees), &features);
        let fitted = LinearClassifier::fit(&images, labels, classes, weight);
        // What is not seen has no weight, so that all heads take the whole descriptor.
        let mut weights = DMatrix::zeros(classes, width);
        weights.columns_mut(features.start, features.len()).copy_from(&fitted.weights);
        let classifier = LinearClassifier { weights, ..fitted };
        (Self { classifier, sees }, held_out.map(|found| found.error))
    }

    /// The probability of each class, by the descriptor of what the head sees.
    pub(crate) fn probabilities(&self, descriptor: &[f32]) -> Vec<f32> {
        let logarithms = self.classifier.log_probabilities(descriptor);
        logarithms.into_iter().map(|value| value.exp() as f32).collect()
    }

    /// Share of images that are named wrongly, in percent.
    pub(crate) fn error(&self, descriptors: &Descriptors, labels: &[usize]) -> f64 {
        let named = descriptors.seen(self.sees).iter().map(|seen| self.probabilities(seen));
        let wrong = named.zip(labels).filter(|(found, label)| most_probable(found) != **label);
        100.0 * wrong.count() as f64 / labels.len() as f64
    }
}

/// One choice for each penalty.
fn choices(
    sees: Sees,
    images: &[Vec<f32>],
    features: Range<usize>,
    labels: &[usize],
    seed: u64,
) -> Vec<Choice> {
    let tested = images.len().min(TESTED_IMAGES);
    let images = columns(&images[..tested], &features);
    let found = cross_validated(&images, &labels[..tested], &WEIGHTS, 1, seed);
    let choice = |(index, weight)| {
        let held_out = found.as_ref().map(|found| found[index]);
        Choice { sees, features: features.clone(), weight, held_out }
    };
    WEIGHTS.into_iter().enumerate().map(choice).collect()
}

fn columns<'a>(images: &'a [Vec<f32>], features: &Range<usize>) -> Vec<&'a [f32]> {
    images.iter().map(|image| &image[features.clone()]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Purpose, Stream};

    /// Forty features, of which one of the last stage's two tells the class in one of the views.
    fn descriptors(telling: Sees) -> (Descriptors, Vec<usize>) {
        let mut stream = Stream::new(4, Purpose::Synthetic, 0, 0);
        let labels: Vec<usize> = (0..40).map(|image| image % 2).collect();
        let mut of = |sees: Sees| -> Vec<Vec<f32>> {
            let mut image = |&label: &usize| {
                let mut seen: Vec<f32> = (0..40).map(|_| stream.normal() as f32).collect();
                if sees == telling {
                    seen[38] += 6.0 * label as f32;
                }
                seen
            };
            labels.iter().map(&mut image).collect()
        };
        let (image, foreground) = (of(Sees::Image), of(Sees::Foreground));
        (Descriptors { image, foreground, last_stage: 38 }, labels)
    }

    #[test]
    fn the_head_sees_what_tells_held_out_images_best() {
        for telling in [Sees::Image, Sees::Foreground] {
            let (descriptors, labels) = descriptors(telling);
            let train = |view| ClassHead::train(&descriptors, &labels, 2, view, 1);
            let (head, error) = train(ClassView::Best);
            assert_eq!(head.sees, telling);
            assert!(error.unwrap() < 10.0, "{error:?}");
            assert!(head.error(&descriptors, &labels) < 10.0);
            // The stage before has nothing to say here, and is left out.
            assert_eq!(head.classifier.weights[(0, 0)], 0.0);
            assert_eq!(train(ClassView::Image).0.sees, Sees::Image);
            assert_eq!(train(ClassView::Foreground).0.sees, Sees::Foreground);
        }
    }

    #[test]
    fn without_two_images_of_a_class_there_is_a_head_and_no_error() {
        let (descriptors, _) = descriptors(Sees::Image);
        let labels: Vec<usize> = (0..40).collect();
        let (head, error) = ClassHead::train(&descriptors, &labels, 40, ClassView::Best, 1);
        assert_eq!((head.sees, error), (Sees::Image, None));
    }
}
