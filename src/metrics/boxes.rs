//! MaxBoxAcc and MaxBoxAccV2: the share of images with a correct box, at the best threshold.

use std::mem;

use serde::{Deserialize, Serialize};

use super::{ScoreMap, component::components, grid, growth::Growth, region::Region};
use crate::data::{PixelBox, mask::Mask};

/// Thresholds `k / 100` at which boxes are drawn.
const STEPS: u16 = 100;
const LEVELS: usize = STEPS as usize + 1;

/// Overlaps that [`BoxAccuracy`] counts as right; the middle one is MaxBoxAcc's.
const OVERLAPS: [f32; 3] = [0.3, 0.5, 0.7];

/// Most regions of the ground truth whose boxes count, the largest first: a speckled one could have
/// a region for every other pixel.
const MAX_TRUTH_BOXES: usize = 64;

/// How well the boxes of one image fit, at each threshold `k / 100`; overlaps are intersections over
/// unions.
#[derive(Debug, Clone, PartialEq)]
pub struct BoxSummary {
    /// Overlap of the largest region's box with the true box that it overlaps most.
    pub largest: Vec<f32>,
    /// The largest overlap of any region's box with any true box.
    pub best: Vec<f32>,
}

/// Counts images with a right box, at each threshold.
#[derive(Debug, Clone)]
pub(super) struct BoxAccuracy {
    images: u64,
    largest: Vec<u64>,
    best: [Vec<u64>; OVERLAPS.len()],
}

/// Share of images with a right box at each threshold, in percent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BoxAccuracyCurve {
    /// How many images have a true box.
    pub images: u64,
    /// The thresholds, from 0 to 1.
    pub thresholds: Vec<f32>,
    /// The largest region's box overlaps a true one by at least half.
    pub largest: Vec<f64>,
    /// Some region's box overlaps a true one by at least 0.3, 0.5, 0.7.
    pub best: [Vec<f64>; OVERLAPS.len()],
}

/// Intersection over union of two boxes; 0 if either is empty.
fn iou(a: &PixelBox, b: &PixelBox) -> f32 {
    let side = |low: f32, high: f32| (high - low).max(0.0);
    let area = |c: &PixelBox| side(c.x0, c.x1) * side(c.y0, c.y1);
    let shared = side(a.x0.max(b.x0), a.x1.min(b.x1)) * side(a.y0.max(b.y0), a.y1.min(b.y1));
    if shared > 0.0 { shared / (area(a) + area(b) - shared) } else { 0.0 }
}

/// The boxes of the truth's regions, the 64 largest at most.
pub fn truth_boxes(truth: &Mask) -> Vec<PixelBox> {
    let (inside, counts) = (|at: usize| truth.foreground[at], |at: usize| !truth.is_ignored(at));
    let regions = components(truth.width as usize, truth.height as usize, inside, counts);
    regions.iter().take(MAX_TRUTH_BOXES).map(|region| region.bounds).collect()
}

/// The largest overlap with any true box.
pub(super) fn best_overlap(candidate: &PixelBox, boxes: &[PixelBox]) -> f32 {
    boxes.iter().map(|truth| iou(candidate, truth)).fold(0.0, f32::max)
}

impl BoxSummary {
    /// Compares the regions of `map` at every threshold with the true `boxes`.
    ///
    /// Pixels that `truth` ignores connect regions but do not count in them: a box ends at the last
    /// pixel that counts. If they were removed first, an ignored ring around the object would
    /// separate it from its surroundings, and the ground truth would shape the box.
    pub fn of(map: &ScoreMap<'_>, truth: Option<&Mask>, boxes: &[PixelBox]) -> Self {
        let mut growth = Growth::new(map.width(), map.height());
        let mut summary = Self { largest: vec![0.0; LEVELS], best: vec![0.0; LEVELS] };
        let (pixels, ends) = by_level(map);
        for k in (0..LEVELS).rev() {
            let start = if k == 0 { 0 } else { ends[k - 1] };
            for &at in &pixels[start..ends[k]] {
                let counts = !truth.is_some_and(|truth| truth.is_ignored(at as usize));
                growth.add(at % map.width() as u32, at / map.width() as u32, counts);
            }
            (summary.largest[k], summary.best[k]) = overlaps(&mut growth, boxes);
        }
        summary
    }
}

/// All pixels sorted by the highest threshold they reach, and where those of each threshold end.
fn by_level(map: &ScoreMap<'_>) -> (Vec<u32>, [usize; LEVELS]) {
    assert!(u32::try_from(map.scores().len()).is_ok(), "an image has fewer than 2³² pixels");
    let levels = || map.scores().iter().map(|&score| grid::cell(score, STEPS)).zip(0..);
    let mut ends = [0; LEVELS];
    for (level, _) in levels() {
        ends[level] += 1;
    }
    let mut total = 0;
    for end in &mut ends {
        total += mem::replace(end, total);
    }
    let mut pixels = vec![0; total];
    for (level, at) in levels() {
        pixels[ends[level]] = at;
        ends[level] += 1;
    }
    (pixels, ends)
}

/// Overlap of the largest region and of the best one; 0 if there is none.
fn overlaps(growth: &mut Growth, boxes: &[PixelBox]) -> (f32, f32) {
    let mut largest = None;
    let mut best = 0.0_f32;
    growth.regions.for_each(|region: &mut Region| {
        let overlap = region.overlap.unwrap_or_else(|| best_overlap(&region.bounds(), boxes));
        region.overlap = Some(overlap);
        best = best.max(overlap);
        if largest.as_ref().is_none_or(|(rank, _)| region.rank() > *rank) {
            largest = Some((region.rank(), overlap));
        }
    });
    (largest.map_or(0.0, |(_, overlap)| overlap), best)
}

impl Default for BoxAccuracy {
    fn default() -> Self {
        let zeros = || vec![0; LEVELS];
        Self { images: 0, largest: zeros(), best: std::array::from_fn(|_| zeros()) }
    }
}

impl BoxAccuracy {
    /// Counts one image that has a true box.
    pub(super) fn accumulate(&mut self, image: &BoxSummary) {
        self.images += 1;
        for k in 0..LEVELS {
            self.largest[k] += u64::from(image.largest[k] >= 0.5);
            for (counts, overlap) in self.best.iter_mut().zip(OVERLAPS) {
                counts[k] += u64::from(image.best[k] >= overlap);
            }
        }
    }

    /// The share of images with a right box at each threshold; `None` before the first image.
    pub(super) fn compute(&self) -> Option<BoxAccuracyCurve> {
        let percent = |counts: &Vec<u64>| {
            counts.iter().map(|&count| 100.0 * count as f64 / self.images as f64).collect()
        };
        (self.images > 0).then(|| BoxAccuracyCurve {
            images: self.images,
            thresholds: (0..LEVELS).map(|k| grid::threshold(k, STEPS)).collect(),
            largest: percent(&self.largest),
            best: self.best.each_ref().map(percent),
        })
    }
}

impl BoxAccuracyCurve {
    /// MaxBoxAcc: the largest region's box at overlap 0.5, at the best threshold.
    pub fn max_box_acc(&self) -> f64 {
        highest(&self.largest)
    }

    /// MaxBoxAccV2: any region's box, the mean over overlaps 0.3, 0.5 and 0.7 of the best threshold's.
    pub fn max_box_acc_v2(&self) -> f64 {
        self.best.iter().map(|curve| highest(curve)).sum::<f64>() / OVERLAPS.len() as f64
    }
}

fn highest(curve: &[f64]) -> f64 {
    curve.iter().copied().fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::metrics::component::tests::flood;

    fn square(x0: f32, y0: f32, side: f32) -> PixelBox {
        PixelBox { x0, y0, x1: x0 + side, y1: y0 + side }
    }

    #[test]
    fn overlap_is_shared_area_over_joint_area() {
        assert_eq!(iou(&square(0.0, 0.0, 2.0), &square(1.0, 0.0, 2.0)), 1.0 / 3.0);
        assert_eq!(iou(&square(0.0, 0.0, 1.0), &square(1.0, 1.0, 1.0)), 0.0);
        assert_eq!(iou(&square(0.0, 0.0, 0.0), &square(0.0, 0.0, 0.0)), 0.0);
    }

    #[test]
    fn the_second_version_accepts_a_right_box_beside_a_larger_wrong_one() {
        // A wrong region of 3 pixels and a right one of 2.
        let scores = [0.8, 0.8, 0.8, 0.0, 0.8, 0.8];
        let map = ScoreMap::new(6, 1, &scores).unwrap();
        let truth = [PixelBox { x0: 4.0, y0: 0.0, x1: 6.0, y1: 1.0 }];
        let mut accuracy = BoxAccuracy::default();
        assert_eq!(accuracy.compute(), None);
        accuracy.accumulate(&BoxSummary::of(&map, None, &truth));
        let curve = accuracy.compute().unwrap();
        assert_eq!((curve.max_box_acc(), curve.max_box_acc_v2()), (0.0, 100.0));
        // At threshold 0 the whole image is one box, which overlaps by a third.
        assert_eq!(curve.best.each_ref().map(|curve| curve[0]), [100.0, 0.0, 0.0]);
    }

    #[test]
    fn an_ignored_ring_does_not_cut_the_object_out_of_a_map_that_knows_nothing() {
        // An object of 2×2 in an ignored ring, in 8×8 pixels that all score the same.
        let at = |x: usize, y: usize, low: usize, high: usize| {
            (low..=high).contains(&x) && (low..=high).contains(&y)
        };
        let cells = || (0..64).map(|i| (i % 8, i / 8));
        let foreground: Vec<bool> = cells().map(|(x, y)| at(x, y, 3, 4)).collect();
        let ring: Vec<bool> = cells().map(|(x, y)| at(x, y, 2, 5) && !at(x, y, 3, 4)).collect();
        let truth = Mask { width: 8, height: 8, foreground, ignored: Some(ring) };
        let boxes = truth_boxes(&truth);
        assert_eq!(boxes, [square(3.0, 3.0, 2.0)]);
        let scores = [0.5; 64];
        let map = ScoreMap::new(8, 8, &scores).unwrap();
        let summary = BoxSummary::of(&map, Some(&truth), &boxes);
        // The box of the whole image overlaps by 4 of 64.
        assert_eq!((summary.best[50], summary.largest[50]), (0.0625, 0.0625));

        // A mask that spills into the ring has the object's box: what is ignored costs nothing.
        let spilled: Vec<f32> = cells().map(|(x, y)| f32::from(u8::from(at(x, y, 2, 4)))).collect();
        let map = ScoreMap::new(8, 8, &spilled).unwrap();
        assert_eq!(BoxSummary::of(&map, Some(&truth), &boxes).best[50], 1.0);
    }

    #[test]
    fn truth_boxes_leave_out_ignored_pixels() {
        let truth = Mask {
            width: 4,
            height: 1,
            foreground: vec![true, true, true, false],
            ignored: Some(vec![false, false, true, false]),
        };
        assert_eq!(truth_boxes(&truth), [PixelBox { x0: 0.0, y0: 0.0, x1: 2.0, y1: 1.0 }]);
    }

    proptest! {
        #[test]
        fn growing_regions_agree_with_filling_them_anew_at_every_threshold(
            width in 1_usize..9,
            levels in prop::collection::vec(0_u8..8, 1..80),
            corner in (0_u8..6, 0_u8..6),
            side in 1_u8..5,
        ) {
            let height = levels.len().div_ceil(width);
            let mut scores: Vec<f32> = levels.iter().map(|&level| f32::from(level) / 7.0).collect();
            scores.resize(width * height, 0.0);
            let map = ScoreMap::new(width, height, &scores).unwrap();
            let truth = [
                square(corner.0.into(), corner.1.into(), side.into()),
                square(corner.1.into(), 0.0, 1.0),
            ];
            let summary = BoxSummary::of(&map, None, &truth);
            for k in 0..LEVELS {
                let threshold = grid::threshold(k, STEPS);
                let inside: Vec<bool> = scores.iter().map(|&score| score >= threshold).collect();
                let regions = flood(width, &inside);
                let overlap = |at: usize| regions.get(at).map_or(0.0, |r| best_overlap(&r.0, &truth));
                prop_assert_eq!(summary.largest[k], overlap(0));
                prop_assert_eq!(summary.best[k], (0..regions.len()).map(overlap).fold(0.0, f32::max));

                let listed = crate::metrics::boxes_at(&map, threshold);
                let listed: Vec<_> = listed.iter().map(|c| (c.bounds, c.pixels)).collect();
                prop_assert_eq!(listed, regions);
            }
        }
    }
}
