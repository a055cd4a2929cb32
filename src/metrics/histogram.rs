//! Scores counted on a grid of thresholds: every threshold at once, in constant memory.

use super::{PixelCounts, ScoreMap, grid};
use crate::data::mask::Mask;

/// How many pixels of an image, or of several, have which score, foreground and background apart.
///
/// Thresholds are `k / 1000`; a pixel is counted at the largest one it reaches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ScoreHistogram {
    /// Background and foreground at each threshold.
    counts: Vec<[u64; 2]>,
}

impl Default for ScoreHistogram {
    fn default() -> Self {
        Self { counts: vec![[0; 2]; Self::CELLS] }
    }
}

impl ScoreHistogram {
    /// The number of steps between the thresholds 0 and 1.
    pub(super) const STEPS: u16 = 1000;

    pub(super) const CELLS: usize = Self::STEPS as usize + 1;

    pub(super) fn threshold(k: usize) -> f32 {
        grid::threshold(k, Self::STEPS)
    }

    /// Counts the scored pixels of one image.
    pub(super) fn of(map: &ScoreMap<'_>, truth: &Mask) -> Self {
        let mut histogram = Self::default();
        for (score, foreground) in map.scored(truth) {
            // Indexing by the ground truth needs no branch.
            histogram.counts[grid::cell(score, Self::STEPS)][usize::from(foreground)] += 1;
        }
        histogram
    }

    pub(super) fn accumulate(&mut self, image: &Self) {
        for (sums, counts) in self.counts.iter_mut().zip(&image.counts) {
            *sums = [sums[0] + counts[0], sums[1] + counts[1]];
        }
    }

    /// The counts of the image cut at each threshold, from the highest to 0.
    pub(super) fn cuts(&self) -> impl Iterator<Item = (usize, PixelCounts)> + '_ {
        let total = |side: usize| self.counts.iter().map(|sides| sides[side]).sum();
        let mut counts = PixelCounts {
            false_negative: total(1),
            true_negative: total(0),
            ..PixelCounts::default()
        };
        self.counts.iter().enumerate().rev().map(move |(k, &[wrong, found])| {
            counts.true_positive += found;
            counts.false_negative -= found;
            counts.false_positive += wrong;
            counts.true_negative -= wrong;
            (k, counts)
        })
    }

    /// PxAP: the area `Σ P·ΔR` under the precision-recall steps, in percent.
    ///
    /// `None` if no image has foreground.
    pub(super) fn average_precision(&self) -> Option<f64> {
        let total: u64 = self.counts.iter().map(|[_, right]| right).sum();
        let (mut found, mut marked, mut area) = (0_u64, 0_u64, 0.0);
        for &[wrong, right] in self.counts.iter().rev() {
            found += right;
            marked += right + wrong;
            if right > 0 {
                area += found as f64 / marked as f64 * (right as f64 / total as f64);
            }
        }
        (total > 0).then_some(100.0 * area)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn pxap(images: &[(&[f32], &[bool])]) -> Option<f64> {
        let mut pool = ScoreHistogram::default();
        for (scores, foreground) in images {
            let map = ScoreMap::new(scores.len(), 1, scores).unwrap();
            pool.accumulate(&ScoreHistogram::of(&map, &Mask::row(foreground)));
        }
        pool.average_precision()
    }

    #[test]
    fn pxap_pools_the_pixels_of_all_images() {
        // Ranked: right, wrong, right. P·ΔR = 1·½ + ⅔·½.
        let found = pxap(&[(&[0.9, 0.1], &[true, true]), (&[0.5], &[false])]).unwrap();
        assert!((found - 100.0 * (0.5 + 1.0 / 3.0)).abs() < 1e-12, "{found}");
    }

    #[test]
    fn pxap_of_a_constant_map_is_the_share_of_foreground() {
        assert_eq!(pxap(&[(&[1.0; 4], &[true, false, false, false])]), Some(25.0));
        assert_eq!(pxap(&[(&[0.0; 4], &[true, false, false, false])]), Some(25.0));
    }

    #[test]
    fn pxap_does_not_exist_without_foreground() {
        assert_eq!(pxap(&[(&[0.3, 0.7], &[false, false])]), None);
        assert_eq!(pxap(&[]), None);
    }

    proptest! {
        #[test]
        fn every_cut_counts_what_binarizing_at_its_threshold_counts(
            pixels in prop::collection::vec(((0_u16..=1000), any::<bool>()), 1..40)
        ) {
            let scores: Vec<f32> = pixels.iter().map(|&(k, _)| f32::from(k) / 1000.0).collect();
            let truth = Mask::row(&pixels.iter().map(|&(_, foreground)| foreground).collect::<Vec<_>>());
            let map = ScoreMap::new(scores.len(), 1, &scores).unwrap();
            for (k, counts) in ScoreHistogram::of(&map, &truth).cuts() {
                let direct = PixelCounts::of(&map, &truth, ScoreHistogram::threshold(k));
                prop_assert_eq!(counts, direct);
            }
        }
    }
}
