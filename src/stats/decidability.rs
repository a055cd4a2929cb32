//! Decidability: how well the class is predicted from the foreground of a map, and from its
//! background. A score that needs no masks.
//!
//! A map splits each image into foreground and background. Features are averaged over either, and a
//! classifier of those averages is tested on images that it was not fitted to. Where the map is
//! right, the class is predicted from the foreground and not from the background.

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::logistic::{Prepared, renumber};
use crate::rng::{Purpose, Stream};

/// Folds of the cross-validation.
const FOLDS: usize = 5;
/// How often the images are divided into folds.
const REPETITIONS: usize = 3;
/// Inverse strength of the penalty, which is strong, as there are few images.
const C: f64 = 0.03;

/// The score of a classifier on images that it was not fitted to.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct HeldOut {
    /// Mean of −log p(true class), in nats.
    pub log_loss: f64,
    /// Misclassified images, in percent.
    pub error: f64,
}

/// How well the class is predicted from either side of the maps.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Decidability {
    /// From the foreground of the maps.
    pub foreground: HeldOut,
    /// From the background of the maps.
    pub background: HeldOut,
    /// Log-loss of the background less that of the foreground: above 0 if the foreground is more
    /// telling of the class, below 0 if foreground and background are swapped.
    pub difference: f64,
    /// Number of images that were tested.
    pub images: u64,
    /// Number of classes.
    pub classes: u64,
}

impl Decidability {
    /// Tests the features of each image averaged over foreground and background.
    ///
    /// `None` if there are fewer than two classes, if no class has two images, or if features are
    /// not finite.
    pub fn of(
        foreground: &[Vec<f32>],
        background: &[Vec<f32>],
        labels: &[usize],
        seed: u64,
    ) -> Option<Self> {
        let (labels, classes) = renumber(labels);
        let tested = count(&labels, classes.len()).iter().filter(|&&n| n > 1).sum::<usize>();
        let (foreground, background) =
            (held_out(foreground, &labels, seed)?, held_out(background, &labels, seed)?);
        Some(Self {
            foreground,
            background,
            difference: background.log_loss - foreground.log_loss,
            images: tested as u64,
            classes: classes.len() as u64,
        })
    }
}

/// Cross-validated loss and error of a logistic regression of the labels on the features.
///
/// Five folds, stratified by class, drawn three times; features are standardized on the images that
/// are fitted. The only image of a class is always fitted and never tested. Equal arguments give
/// equal bytes on any number of threads.
fn held_out(features: &[Vec<f32>], labels: &[usize], seed: u64) -> Option<HeldOut> {
    let features: Vec<&[f32]> = features.iter().map(Vec::as_slice).collect();
    cross_validated(&features, labels, &[C], REPETITIONS, seed)?.pop()
}

/// The same for several values of C, the inverse strength of the penalty, with one result for each;
/// the images are divided into folds `repetitions` times.
pub fn cross_validated(
    features: &[&[f32]],
    labels: &[usize],
    cs: &[f64],
    repetitions: usize,
    seed: u64,
) -> Option<Vec<HeldOut>> {
    assert_eq!(features.len(), labels.len(), "every image has a label");
    let width = features.first()?.len();
    assert!(features.iter().all(|row| row.len() == width), "all images have the same features");
    let (labels, classes) = renumber(labels);
    let classes = classes.len();
    let is_known = count(&labels, classes).iter().any(|&images| images > 1);
    if classes < 2
        || !is_known
        || !features.iter().copied().flatten().all(|value| value.is_finite())
    {
        return None;
    }
    let parts: Vec<Vec<Option<usize>>> =
        (0..repetitions).map(|turn| folds(&labels, classes, seed, turn as u64)).collect();
    let turns = (0..repetitions).flat_map(|turn| (0..FOLDS).map(move |fold| (turn, fold)));
    let sums: Vec<Vec<Sum>> = turns
        .collect::<Vec<_>>()
        .into_par_iter()
        .map(|(turn, fold)| test_fold(features, &labels, classes, cs, &parts[turn], fold))
        .collect();
    let images = parts.iter().flatten().flatten().count() as f64;
    let found = (0..cs.len()).map(|index| {
        let (loss, wrong) = add_up(sums.iter().map(|sums| sums[index]));
        HeldOut { log_loss: loss / images, error: 100.0 * wrong as f64 / images }
    });
    Some(found.collect())
}

/// The loss of several images together, and how many of them are given a wrong class.
type Sum = (f64, u64);

fn add_up(sums: impl Iterator<Item = Sum>) -> Sum {
    sums.fold((0.0, 0), |(loss, wrong), (more, others)| (loss + more, wrong + others))
}

/// Fits all images but those of `fold`, with each C, and tests those.
fn test_fold(
    features: &[&[f32]],
    labels: &[usize],
    classes: usize,
    cs: &[f64],
    folds: &[Option<usize>],
    fold: usize,
) -> Vec<Sum> {
    let (held, fitted): (Vec<usize>, Vec<usize>) =
        (0..labels.len()).partition(|&image| folds[image] == Some(fold));
    if held.is_empty() {
        return vec![(0.0, 0); cs.len()];
    }
    let rows: Vec<&[f32]> = fitted.iter().map(|&image| features[image]).collect();
    let known: Vec<usize> = fitted.iter().map(|&image| labels[image]).collect();
    let prepared = Prepared::new(&rows, &known, classes);
    let with = |&c: &f64| {
        let classifier = prepared.fit(c);
        add_up(held.iter().map(|&image| {
            let found = classifier.log_probabilities(features[image]);
            let label = labels[image];
            // A tie counts as wrong.
            let is_right = (0..classes).all(|class| class == label || found[class] < found[label]);
            (-found[label], u64::from(!is_right))
        }))
    };
    cs.iter().map(with).collect()
}

fn count(labels: &[usize], classes: usize) -> Vec<usize> {
    let mut images = vec![0; classes];
    labels.iter().for_each(|&label| images[label] += 1);
    images
}

/// The fold in which each image is held out; none for the only image of a class.
///
/// The images of each class are dealt out to the folds in turn, going on where the class before
/// ended. So no fold has all images of a class, and every class is in every fit.
fn folds(labels: &[usize], classes: usize, seed: u64, turn: u64) -> Vec<Option<usize>> {
    let mut members = vec![Vec::new(); classes];
    for (image, &label) in labels.iter().enumerate() {
        members[label].push(image);
    }
    let mut stream = Stream::new(seed, Purpose::CrossValidation, turn, 0);
    let (mut folds, mut next) = (vec![None; labels.len()], 0);
    for class in members.iter_mut().filter(|class| class.len() > 1) {
        stream.shuffle(class);
        for &image in class.iter() {
            folds[image] = Some(next % FOLDS);
            next += 1;
        }
    }
    folds
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Images of `classes` classes whose first feature is the class, `apart` times.
    fn drawn(
        images: usize,
        width: usize,
        classes: usize,
        apart: f64,
    ) -> (Vec<Vec<f32>>, Vec<usize>) {
        let mut stream = Stream::new(11, Purpose::Synthetic, 0, 0);
        let labels: Vec<usize> = (0..images).map(|image| image % classes).collect();
        let features = labels.iter().map(|&label| {
            (0..width)
                .map(|at| {
                    let own = at % classes == label;
                    (stream.normal() + if own { apart } else { 0.0 }) as f32
                })
                .collect()
        });
        (features.collect(), labels)
    }

    #[test]
    fn every_class_is_dealt_out_evenly_and_known_to_every_fit() {
        let labels = [vec![0; 11], vec![1; 2], vec![2], vec![3; 5]].concat();
        let folds = folds(&labels, 4, 7, 0);
        let of = |class: usize, fold| {
            labels.iter().zip(&folds).filter(|&(&l, &f)| l == class && f == Some(fold)).count()
        };
        for fold in 0..FOLDS {
            assert!((2..=3).contains(&of(0, fold)) && of(1, fold) <= 1 && of(3, fold) == 1);
            // 18 images that are held out somewhere.
            assert!((3..=4).contains(&folds.iter().filter(|&&f| f == Some(fold)).count()));
        }
        assert_eq!(folds.iter().filter(|fold| fold.is_none()).count(), 1);
    }

    #[test]
    fn one_feature_of_four_images_by_hand() {
        // Each image is held out once. At ±1, the other three have (for a held-out image of
        // the side that is then alone at +1) features −1, −1, 1: mean −1/3, deviation √8/3.
        let features = [-1.0, -1.0, 1.0, 1.0_f32].map(|value| vec![value]).to_vec();
        let found = held_out(&features, &[0, 0, 1, 1], 0).unwrap();
        let deviation = 8_f64.sqrt() / 3.0;
        let (many, one) = ((-1.0 + 1.0 / 3.0) / deviation, (1.0 + 1.0 / 3.0) / deviation);
        // The difference of scores is v·x + b; both derivatives of the penalized loss are zero.
        let sigmoid = |score: f64| 1.0 / (1.0 + (-score).exp());
        let (mut v, mut b) = (0.0, 0.0);
        for _ in 0..200_000 {
            let (p, q) = (sigmoid(v * many + b), sigmoid(v * one + b) - 1.0);
            v -= 0.02 * (2.0 * p * many + q * one + v / C);
            b -= 0.02 * (2.0 * p + q);
        }
        let expected = -sigmoid(v * one + b).ln();
        assert!((found.log_loss - expected).abs() < 1e-6, "{found:?} {expected}");
        // So strong a penalty leaves the class of which more are known ahead.
        assert_eq!(found.error, 100.0);
    }

    #[test]
    fn what_is_far_apart_is_told_and_what_is_alike_is_not() {
        let (features, labels) = drawn(400, 64, 4, 40.0);
        let far = held_out(&features, &labels, 0).unwrap();
        assert!(far.log_loss < 0.05 && far.error == 0.0, "{far:?}");
        let (features, labels) = drawn(200, 8, 4, 0.0);
        let alike = held_out(&features, &labels, 0).unwrap();
        assert!(alike.log_loss > 4_f64.ln() - 0.02 && alike.error > 60.0, "{alike:?}");
    }

    #[test]
    fn sides_that_swap_swap_the_outcome() {
        let (tell, labels) = drawn(60, 6, 3, 3.0);
        let (silent, _) = drawn(60, 6, 3, 0.2);
        let right = Decidability::of(&tell, &silent, &labels, 5).unwrap();
        let wrong = Decidability::of(&silent, &tell, &labels, 5).unwrap();
        assert_eq!((right.foreground, right.background), (wrong.background, wrong.foreground));
        assert_eq!(right.difference, -wrong.difference);
        assert!(right.difference > 0.3, "{right:?}");
        assert_eq!((right.images, right.classes), (60, 3));
    }

    #[test]
    fn constant_features_tell_the_shares_of_the_classes() {
        let labels: Vec<usize> = (0..50).map(|image| usize::from(image % 5 == 0)).collect();
        let found = held_out(&vec![vec![0.1, -3.0]; 50], &labels, 0).unwrap();
        // 40 and 10 images, 32 and 8 of them in each fit.
        let expected = -(0.8 * 0.8_f64.ln() + 0.2 * 0.2_f64.ln());
        assert!((found.log_loss - expected).abs() < 1e-9, "{found:?}");
        assert_eq!(found.error, 20.0);
        assert_eq!(held_out(&vec![vec![]; 50], &labels, 0), Some(found));
    }

    #[test]
    fn a_constant_feature_changes_nothing() {
        let (mut features, labels) = drawn(40, 5, 2, 1.0);
        let before = held_out(&features, &labels, 1);
        features.iter_mut().for_each(|row| row.insert(2, 0.7));
        assert_eq!(held_out(&features, &labels, 1), before);
    }

    #[test]
    fn what_cannot_be_told_has_no_score() {
        let three = vec![vec![0.0], vec![1.0], vec![2.0]];
        assert_eq!(held_out(&[], &[], 0), None);
        assert_eq!(held_out(&three, &[4, 4, 4], 0), None);
        assert_eq!(held_out(&three, &[0, 1, 2], 0), None);
        assert_eq!(held_out(&[vec![f32::NAN], vec![0.0], vec![1.0]], &[0, 0, 1], 0), None);
        // The only image of class 9 helps to tell the others, and is not tested itself.
        let found = Decidability::of(&three, &three, &[2, 2, 9], 0).unwrap();
        assert_eq!((found.images, found.classes, found.difference), (2, 2, 0.0));
    }

    #[test]
    fn many_classes_are_told_on_any_number_of_threads_alike() {
        let (features, labels) = drawn(400, 24, 40, 3.0);
        let on = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| held_out(&features, &labels, 2).unwrap())
        };
        let (one, four) = (on(1), on(4));
        assert_eq!(one.log_loss.to_bits(), four.log_loss.to_bits());
        assert!(one.error == four.error && one.log_loss < 40_f64.ln(), "{one:?}");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16))]

        /// Which number a class has and in which unit a feature is measured mean nothing.
        #[test]
        fn names_and_units_do_not_matter(scale in 0.01_f32..100.0, shift in -1.0_f32..1.0) {
            let (features, labels) = drawn(30, 3, 3, 1.0);
            let moved: Vec<Vec<f32>> = features
                .iter()
                .map(|row| row.iter().map(|value| value * scale + shift).collect())
                .collect();
            let renamed: Vec<usize> = labels.iter().map(|label| 10 + 3 * label).collect();
            let (one, two) = (
                held_out(&features, &labels, 0).unwrap(),
                held_out(&moved, &renamed, 0).unwrap(),
            );
            prop_assert!((one.log_loss - two.log_loss).abs() < 1e-3, "{one:?} {two:?}");
        }
    }
}
