//! Precision-recall and ROC curves, exact for each image and averaged over images.
//!
//! Scores are ranked once per image and the curve is walked in whole numbers of
//! pixels; fractions are formed only where a grid point is passed, so an image
//! costs one sort, however fine its scores.

use serde::{Deserialize, Serialize};

use super::ScoreMap;
use crate::data::mask::Mask;

/// Steps of the grid, 1e-3 apart, on which curves of different images are averaged.
const STEPS: usize = 1000;

/// One image's curves on the common grid; `None` where the image has no such curve.
#[derive(Debug, Clone, PartialEq)]
pub struct ImageCurves {
    /// Precision of the foreground at each recall; needs foreground.
    pub foreground: Option<Vec<f64>>,
    /// Precision of the background at each recall, scores reversed; needs background.
    pub background: Option<Vec<f64>>,
    /// True positive rate at each false positive rate; needs both.
    pub roc: Option<Vec<f64>>,
    /// The exact area under the image's ROC curve, in `[0, 1]`; needs both.
    pub roc_auc: Option<f64>,
}

/// Adds up the curves of a split.
#[derive(Debug, Clone, Default)]
pub(super) struct AveragedCurve {
    images: u64,
    sums: Vec<f64>,
}

/// A curve averaged over images.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Curve {
    /// How many images have this curve.
    pub images: u64,
    /// Area under it by trapezoids, in percent.
    pub auc: f64,
    /// The common grid: recall, or false positive rate.
    pub x: Vec<f64>,
    /// Mean precision, or mean true positive rate.
    pub y: Vec<f64>,
}

/// The averaged curves of a split; `None` where no image has one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Curves {
    /// Precision against recall of the foreground.
    pub precision_recall_foreground: Option<Curve>,
    /// Precision against recall of the background.
    pub precision_recall_background: Option<Curve>,
    /// True against false positive rate of the foreground.
    pub roc: Option<Curve>,
}

/// Pixels of equal score.
#[derive(Debug, Clone, Copy)]
struct Tie {
    foreground: u32,
    background: u32,
}

/// A point of a curve, in pixels: `x` of the total, and the ratio `y`.
#[derive(Debug, Clone, Copy)]
struct Point {
    x: u64,
    y: (u64, u64),
}

impl ImageCurves {
    /// Walks the scored pixels of one image from the highest score to the lowest.
    pub fn of(map: &ScoreMap<'_>, truth: &Mask) -> Self {
        let ties = ties(&sorted_keys(map, truth));
        let foreground: u64 = ties.iter().map(|tie| u64::from(tie.foreground)).sum();
        let background: u64 = ties.iter().map(|tie| u64::from(tie.background)).sum();
        let both = foreground > 0 && background > 0;
        let swap = |tie: &Tie| Tie { foreground: tie.background, background: tie.foreground };
        let falling = || ties.iter().rev().copied();
        Self {
            foreground: (foreground > 0).then(|| precision_recall(falling(), foreground)),
            background: (background > 0)
                .then(|| precision_recall(ties.iter().map(swap), background)),
            roc: both.then(|| roc(falling(), foreground, background)),
            roc_auc: both.then(|| roc_auc(falling(), foreground, background)),
        }
    }
}

/// Precision at each recall of the grid, for ties from the highest score to the lowest.
///
/// From (recall 0, precision 1) through a point per distinct score to the first
/// full recall.
fn precision_recall(ties: impl Iterator<Item = Tie>, total: u64) -> Vec<f64> {
    let (mut found, mut marked) = (0, 0);
    let points = ties.map_while(|tie| {
        let complete = found == total;
        found += u64::from(tie.foreground);
        marked += u64::from(tie.foreground) + u64::from(tie.background);
        (!complete).then_some(Point { x: found, y: (found, marked) })
    });
    interpolate(Point { x: 0, y: (1, 1) }, points, total)
}

/// True positive rate at each false positive rate of the grid.
fn roc(ties: impl Iterator<Item = Tie>, foreground: u64, background: u64) -> Vec<f64> {
    let (mut found, mut wrong) = (0, 0);
    let points = ties.map(|tie| {
        found += u64::from(tie.foreground);
        wrong += u64::from(tie.background);
        Point { x: wrong, y: (found, foreground) }
    });
    interpolate(Point { x: 0, y: (0, foreground) }, points, background)
}

/// The share of (foreground, background) pairs ranked the right way round; ties count half.
fn roc_auc(ties: impl Iterator<Item = Tie>, foreground: u64, background: u64) -> f64 {
    let (mut found, mut twice_right) = (0_u64, 0_u128);
    for tie in ties {
        twice_right +=
            u128::from(tie.background) * u128::from(2 * found + u64::from(tie.foreground));
        found += u64::from(tie.foreground);
    }
    twice_right as f64 / (2.0 * foreground as f64 * background as f64)
}

/// The values on the grid of the line through `points`, whose last `x` is `total`.
///
/// Of points with equal `x` the last one holds, as in NumPy's `interp`.
fn interpolate(start: Point, points: impl Iterator<Item = Point>, total: u64) -> Vec<f64> {
    let mut values = Vec::with_capacity(STEPS + 1);
    let mut last = start;
    for point in points {
        // Whole numbers decide which side of a grid point we are on: k/STEPS < x/total.
        while values.len() as u64 * total < STEPS as u64 * point.x {
            values.push(between(last, point, total, values.len()));
        }
        last = point;
    }
    values.resize(STEPS + 1, last.value());
    values
}

fn between(from: Point, to: Point, total: u64, k: usize) -> f64 {
    let share = |x: u64| x as f64 / total as f64;
    let slope = (to.value() - from.value()) / (share(to.x) - share(from.x));
    slope * (grid_point(k) - share(from.x)) + from.value()
}

fn grid_point(k: usize) -> f64 {
    k as f64 / STEPS as f64
}

impl Point {
    fn value(self) -> f64 {
        self.y.0 as f64 / self.y.1 as f64
    }
}

/// Groups pixels by score, from the lowest score to the highest.
fn ties(sorted: &[u32]) -> Vec<Tie> {
    let tie = |equal: &[u32]| {
        let foreground = equal.iter().map(|key| key & 1).sum();
        Tie { foreground, background: equal.len() as u32 - foreground }
    };
    sorted.chunk_by(|a, b| a >> 1 == b >> 1).map(tie).collect()
}

/// The scored pixels as numbers that sort by score; the last bit is the truth.
fn sorted_keys(map: &ScoreMap<'_>, truth: &Mask) -> Vec<u32> {
    // From 0 to 1 floats sort as their bits do, of which the upper two are 0; adding 0 turns −0
    // into 0.
    let key = |(score, foreground)| (f32::to_bits(score + 0.0) << 1) | u32::from(foreground);
    let mut keys: Vec<u32> = map.scored(truth).map(key).collect();
    keys.sort_unstable();
    keys
}

impl AveragedCurve {
    pub(super) fn accumulate(&mut self, values: &[f64]) {
        self.images += 1;
        self.sums.resize(values.len(), 0.0);
        for (sum, value) in self.sums.iter_mut().zip(values) {
            *sum += value;
        }
    }

    /// The mean over images; `None` before the first one.
    pub(super) fn compute(&self) -> Option<Curve> {
        let y: Vec<f64> = self.sums.iter().map(|sum| sum / self.images as f64).collect();
        let trapezoids: f64 = y.windows(2).map(|pair| (pair[0] + pair[1]) / 2.0).sum();
        let auc = 100.0 * trapezoids / STEPS as f64;
        let x = (0..=STEPS).map(grid_point).collect();
        (self.images > 0).then_some(Curve { images: self.images, auc, x, y })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn curves(pixels: &[(f32, bool)]) -> ImageCurves {
        let scores: Vec<f32> = pixels.iter().map(|pixel| pixel.0).collect();
        let foreground = pixels.iter().map(|pixel| pixel.1).collect();
        let truth = Mask { width: scores.len() as u32, height: 1, foreground, ignored: None };
        ImageCurves::of(&ScoreMap::new(scores.len(), 1, &scores).unwrap(), &truth)
    }

    #[test]
    fn precision_falls_in_a_line_between_two_scores() {
        // Found, wrong, found: (0, 1), (½, 1), (½, ½), (1, ⅔).
        let curve = curves(&[(0.9, true), (0.6, false), (0.3, true)]).foreground.unwrap();
        assert_eq!([curve[0], curve[499], curve[500], curve[1000]], [1.0, 1.0, 0.5, 2.0 / 3.0]);
        assert!((curve[750] - (0.5 + 2.0 / 3.0) / 2.0).abs() < 1e-12);
    }

    #[test]
    fn the_curve_stops_at_the_first_full_recall() {
        let curve = curves(&[(0.9, true), (0.6, false), (0.3, false)]).foreground.unwrap();
        assert!(curve.iter().all(|&precision| precision == 1.0));
    }

    #[test]
    fn a_constant_map_joins_certainty_to_the_share_of_foreground() {
        let image = curves(&[(0.5, true), (0.5, false), (0.5, false), (0.5, false)]);
        let foreground = image.foreground.unwrap();
        assert_eq!([foreground[0], foreground[1000]], [1.0, 0.25]);
        assert_eq!(image.roc_auc, Some(0.5));
        assert!((image.roc.unwrap()[250] - 0.25).abs() < 1e-12);
    }

    #[test]
    fn an_image_without_foreground_has_only_a_background_curve_and_the_reverse() {
        let empty = curves(&[(0.2, false), (0.9, false)]);
        assert_eq!((empty.foreground, empty.roc, empty.roc_auc), (None, None, None));
        assert!(empty.background.unwrap().iter().all(|&precision| precision == 1.0));
        let full = curves(&[(0.2, true), (0.9, true)]);
        assert_eq!((full.background, full.roc), (None, None));
        assert!(full.foreground.is_some());
    }

    #[test]
    fn both_zeros_are_one_score() {
        assert_eq!(curves(&[(0.0, true), (-0.0, false)]).roc_auc, Some(0.5));
    }

    #[test]
    fn averaging_is_over_the_images_that_have_the_curve() {
        let mut average = AveragedCurve::default();
        assert_eq!(average.compute(), None);
        average.accumulate(&[1.0; STEPS + 1]);
        average.accumulate(&[0.5; STEPS + 1]);
        let curve = average.compute().unwrap();
        assert_eq!((curve.images, curve.y[17]), (2, 0.75));
        assert!((curve.auc - 75.0).abs() < 1e-9);
    }

    proptest! {
        #[test]
        fn curves_keep_their_laws(
            pixels in prop::collection::vec(((0_u8..20), any::<bool>()), 2..60)
        ) {
            let pixels: Vec<(f32, bool)> =
                pixels.iter().map(|&(score, truth)| (f32::from(score) / 19.0, truth)).collect();
            let image = curves(&pixels);
            for values in [&image.foreground, &image.background, &image.roc].into_iter().flatten() {
                prop_assert_eq!(values.len(), STEPS + 1);
                prop_assert!(values.iter().all(|value| (-1e-12..=1.0 + 1e-12).contains(value)));
            }
            if let (Some(roc), Some(auc)) = (&image.roc, image.roc_auc) {
                prop_assert!(roc.windows(2).all(|pair| pair[0] <= pair[1] + 1e-12));
                prop_assert_eq!(roc[STEPS], 1.0);
                let wins: f64 = pairs(&pixels);
                prop_assert!((auc - wins).abs() < 1e-12);
            }
            // Exchanging foreground and background exchanges their curves.
            let flipped: Vec<(f32, bool)> =
                pixels.iter().map(|&(score, truth)| (1.0 - score, !truth)).collect();
            prop_assert_eq!(&curves(&flipped).foreground, &image.background);
        }
    }

    /// The area under the ROC curve by its definition: pairs ranked the right way round.
    fn pairs(pixels: &[(f32, bool)]) -> f64 {
        let side = |truth| pixels.iter().filter(move |pixel| pixel.1 == truth).map(|pixel| pixel.0);
        let mut wins = Vec::new();
        for found in side(true) {
            for wrong in side(false) {
                wins.push(f64::from(u8::from(found >= wrong)) + f64::from(u8::from(found > wrong)));
            }
        }
        wins.iter().sum::<f64>() / (2.0 * wins.len() as f64)
    }
}
