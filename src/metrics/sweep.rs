//! Dice as a function of the threshold, over a whole split.

use serde::{Deserialize, Serialize};

use super::{EmptyRule, ScoreHistogram};

/// Adds up the Dice of every image at every threshold.
#[derive(Debug, Clone)]
pub(super) struct Sweep {
    images: u64,
    /// Of foreground and background.
    sums: Vec<[f64; 2]>,
}

/// Mean Dice over images at each threshold, in percent; `None` where it does not exist.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SweepCurve {
    /// The thresholds, from 0 to 1.
    pub thresholds: Vec<f32>,
    /// F1⁺ at each threshold.
    pub f1_foreground: Vec<Option<f64>>,
    /// F1⁻ at each threshold.
    pub f1_background: Vec<Option<f64>>,
    /// The mean of the two, which [`SweepCurve::best`] is the highest of.
    pub f1_mean: Vec<Option<f64>>,
}

impl Default for Sweep {
    fn default() -> Self {
        Self { images: 0, sums: vec![[0.0; 2]; ScoreHistogram::CELLS] }
    }
}

impl Sweep {
    pub(super) fn accumulate(&mut self, image: &ScoreHistogram, empty: EmptyRule) {
        self.images += 1;
        for (k, counts) in image.cuts() {
            self.sums[k][0] += counts.dice(empty);
            self.sums[k][1] += counts.complement().dice(empty);
        }
    }

    /// The mean Dice at every threshold.
    pub(super) fn compute(&self) -> SweepCurve {
        let mean = |sum: f64| Some(100.0 * sum / self.images as f64).filter(|m| m.is_finite());
        let [f1_foreground, f1_background] =
            [0, 1].map(|side| self.sums.iter().map(|sums| mean(sums[side])).collect::<Vec<_>>());
        let both = f1_foreground.iter().zip(&f1_background);
        let f1_mean = both.map(|(&f, &b)| f.zip(b).map(|(f, b)| (f + b) / 2.0)).collect();
        let thresholds = (0..ScoreHistogram::CELLS).map(ScoreHistogram::threshold).collect();
        SweepCurve { thresholds, f1_foreground, f1_background, f1_mean }
    }
}

impl SweepCurve {
    /// The threshold with the highest mean of F1⁺ and F1⁻; of equals, the one nearest 0.5.
    ///
    /// Both count because marking everything already gives a high F1⁺ wherever
    /// objects are large. `None` if no image was seen.
    pub fn best(&self) -> Option<f32> {
        let middle_first = middle_first(self.thresholds.len());
        let scored = middle_first.filter_map(|k| Some((self.f1_mean[k]?, self.thresholds[k])));
        let best = scored.reduce(|best, next| if next.0 > best.0 { next } else { best });
        best.map(|(_, threshold)| threshold)
    }
}

/// The indices of a list of odd length, from its middle outwards, the lower of two first.
fn middle_first(length: usize) -> impl Iterator<Item = usize> {
    let middle = length / 2;
    (0..length).map(move |i| if i % 2 == 1 { middle - i.div_ceil(2) } else { middle + i / 2 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        data::mask::Mask,
        metrics::{PixelCounts, PixelScores, ScoreMap},
    };

    fn sweep(images: &[(&[f32], &[bool])], empty: EmptyRule) -> SweepCurve {
        let mut sweep = Sweep::default();
        for (scores, foreground) in images {
            sweep.accumulate(&ScoreHistogram::of(&map(scores), &Mask::row(foreground)), empty);
        }
        sweep.compute()
    }

    fn map(scores: &[f32]) -> ScoreMap<'_> {
        ScoreMap::new(scores.len(), 1, scores).unwrap()
    }

    #[test]
    fn the_best_threshold_separates_the_images_and_lies_nearest_the_middle() {
        let images: [(&[f32], &[bool]); 2] =
            [(&[0.1, 0.3], &[false, true]), (&[0.2, 0.9], &[false, true])];
        let curve = sweep(&images, EmptyRule::One);
        assert_eq!(curve.best(), Some(0.3));
        assert_eq!(
            (curve.f1_foreground[300], curve.f1_background[300]),
            (Some(100.0), Some(100.0))
        );
    }

    #[test]
    fn the_curve_at_a_threshold_is_the_mean_of_the_masks_cut_there() {
        let images: [(&[f32], &[bool]); 2] =
            [(&[0.1, 0.3, 0.7], &[false, true, true]), (&[0.2, 0.7, 0.9], &[true, false, true])];
        let curve = sweep(&images, EmptyRule::One);
        let cut = images.map(|(scores, truth)| {
            PixelScores::of(&PixelCounts::of(&map(scores), &Mask::row(truth), 0.7), EmptyRule::One)
        });
        let direct = PixelScores::mean(&cut);
        assert_eq!(curve.thresholds[700], 0.7);
        assert!((curve.f1_foreground[700].unwrap() - direct.f1_foreground.unwrap()).abs() < 1e-12);
        assert!((curve.f1_background[700].unwrap() - direct.f1_background.unwrap()).abs() < 1e-12);
    }

    #[test]
    fn a_constant_map_keeps_the_paper_threshold() {
        assert_eq!(sweep(&[(&[0.5; 2], &[true, true])], EmptyRule::One).best(), Some(0.5));
    }

    #[test]
    fn undefined_dice_is_never_best_and_no_image_has_no_best() {
        let curve = sweep(&[(&[0.2, 0.6], &[false, false])], EmptyRule::Nan);
        assert_eq!((curve.f1_foreground[700], curve.f1_background[700]), (None, Some(100.0)));
        // At 0.601 and above nothing is marked, so F1⁺ is undefined.
        assert!(curve.best().unwrap() <= 0.6);
        assert_eq!(sweep(&[], EmptyRule::One).best(), None);
    }

    #[test]
    fn the_middle_comes_first_and_every_index_once() {
        assert_eq!(middle_first(5).collect::<Vec<_>>(), [2, 1, 3, 0, 4]);
    }
}
