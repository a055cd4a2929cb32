//! The soft mask of an image of any size, row by row.

use rayon::prelude::*;

use super::blend::{Blend, aligned, blends, half_pixel};
use crate::{
    config::{Alignment, MaskConfig},
    model::mask::MaskEquation,
};

/// The soft mask that evidence amounts to, computed wherever it is asked for.
///
/// The same as [`soft_mask`](crate::model::mask::soft_mask), which holds every pixel at once,
/// but for rounding.
#[derive(Debug)]
pub struct SoftMask {
    /// The class maps, weighted by what the scores believe: one row of cells after the other.
    evidence: Vec<f32>,
    /// Cells in a row.
    width: usize,
    rows: Vec<Blend>,
    columns: Vec<Blend>,
    range: Range,
    threshold: f32,
    steepness: f32,
}

/// The evidence that becomes 0 and 1.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Range {
    low: f32,
    high: f32,
    /// Whether evidence may lie beyond.
    clamps: bool,
}

impl SoftMask {
    /// Takes `evidence` in cells of a `grid`, for an image of `size`; both are rows, columns.
    pub fn new(
        evidence: Vec<f32>,
        grid: [usize; 2],
        size: [usize; 2],
        rule: &MaskEquation<'_>,
    ) -> Self {
        assert_eq!(evidence.len(), grid[0] * grid[1], "one number per cell");
        let line = |axis: usize| match rule.config.alignment {
            Alignment::Corners => aligned(size[axis], grid[axis]),
            Alignment::Centres => blends(size[axis], grid[axis], 1.0 / rule.stride as f64),
        };
        let MaskConfig { threshold, steepness, low_percentile, high_percentile, .. } = *rule.config;
        let mut mask = Self {
            evidence,
            width: grid[1],
            rows: line(0),
            columns: line(1),
            range: Range { low: 0.0, high: 0.0, clamps: false },
            threshold: threshold as f32,
            steepness: steepness as f32,
        };
        mask.range = if low_percentile == 0.0 && high_percentile == 100.0 {
            mask.extremes()
        } else {
            let [low, high] = [low_percentile, high_percentile].map(|p| mask.percentile(p));
            Range { low, high, clamps: true }
        };
        mask
    }

    /// The mask `sigmoid(evidence − cut)` of evidence whose cells each stand for their middle.
    pub fn cut_at(evidence: Vec<f32>, grid: [usize; 2], size: [usize; 2], cut: f32) -> Self {
        assert_eq!(evidence.len(), grid[0] * grid[1], "one number per cell");
        Self {
            evidence,
            width: grid[1],
            rows: half_pixel(size[0], grid[0]),
            columns: half_pixel(size[1], grid[1]),
            range: Range { low: 0.0, high: 1.0, clamps: false },
            threshold: cut,
            steepness: 1.0,
        }
    }

    /// Height and width of the image.
    pub fn size(&self) -> [usize; 2] {
        [self.rows.len(), self.columns.len()]
    }

    /// Writes the mask of one row, from column `left` on.
    pub fn fill(&self, row: usize, left: usize, line: &mut [f32]) {
        let Range { low, high, clamps } = self.range;
        if high <= low {
            // A constant map says nothing, so it lands on the threshold.
            line.fill(0.5);
            return;
        }
        self.interpolate(row, left, line);
        for value in line {
            let mut normalized = (*value - low) / (high - low);
            if clamps {
                normalized = normalized.clamp(0.0, 1.0);
            }
            *value = 1.0 / (1.0 + (-(normalized - self.threshold) * self.steepness).exp());
        }
    }

    /// Writes the evidence of one row, from column `left` on.
    fn interpolate(&self, row: usize, left: usize, line: &mut [f32]) {
        let blend = self.rows[row];
        let cells = |row: usize| &self.evidence[row * self.width..][..self.width];
        let pairs = cells(blend.near).iter().zip(cells(blend.far));
        let between: Vec<f32> = pairs.map(|(&near, &far)| blend.mix(near, far)).collect();
        for (value, column) in line.iter_mut().zip(&self.columns[left..]) {
            *value = column.mix(between[column.near], between[column.far]);
        }
    }

    /// The evidence of every row, in any order.
    fn every_row(&self) -> impl ParallelIterator<Item = Vec<f32>> {
        (0..self.rows.len()).into_par_iter().map(|row| {
            let mut line = vec![0.0; self.columns.len()];
            self.interpolate(row, 0, &mut line);
            line
        })
    }

    fn extremes(&self) -> Range {
        let of_line = |line: Vec<f32>| {
            let ends = (f32::INFINITY, f32::NEG_INFINITY);
            line.iter().fold(ends, |(low, high), &value| (low.min(value), high.max(value)))
        };
        let wider = |a: (f32, f32), b: (f32, f32)| (a.0.min(b.0), a.1.max(b.1));
        let (low, high) =
            self.every_row().map(of_line).reduce(|| (f32::INFINITY, f32::NEG_INFINITY), wider);
        Range { low, high, clamps: false }
    }

    /// A percentile of the evidence by the nearest rank, without holding all of it.
    ///
    /// The upper halves of the numbers are counted first, then the lower halves of those that
    /// share the upper half of the one sought.
    fn percentile(&self, percent: f64) -> f32 {
        let pixels = self.rows.len() * self.columns.len();
        let rank = (percent / 100.0 * (pixels - 1) as f64).round() as u64;
        let upper = self.count(|key| Some((key >> 16) as u16));
        let (upper, before) = find(&upper, rank);
        let lower = self.count(|key| (key >> 16 == upper).then_some(key as u16));
        let (lower, _) = find(&lower, rank - before);
        f32::from_bits(unordered(upper << 16 | lower))
    }

    /// How often each number is made of a pixel's key.
    fn count(&self, number: impl Fn(u32) -> Option<u16> + Sync) -> Vec<u64> {
        let none = || vec![0; 1 << 16];
        let add = |mut counts: Vec<u64>, line: Vec<f32>| {
            let keys = line.iter().map(|value| ordered(value.to_bits()));
            keys.filter_map(&number).for_each(|number| counts[usize::from(number)] += 1);
            counts
        };
        let join = |mut all: Vec<u64>, more: Vec<u64>| {
            all.iter_mut().zip(more).for_each(|(all, more)| *all += more);
            all
        };
        self.every_row().fold(none, add).reduce(none, join)
    }
}

/// The first number whose count reaches beyond `rank`, and the count of all before it.
fn find(counts: &[u64], rank: u64) -> (u32, u64) {
    let mut before = 0;
    for (number, count) in (0..).zip(counts) {
        if before + count > rank {
            return (number, before);
        }
        before += count;
    }
    panic!("a rank is below the number of pixels");
}

/// The bits of a float as a key that sorts like [`f32::total_cmp`].
fn ordered(bits: u32) -> u32 {
    if bits >> 31 == 1 { !bits } else { bits | 1 << 31 }
}

/// The bits that have this key.
fn unordered(key: u32) -> u32 {
    if key >> 31 == 1 { key & !(1 << 31) } else { !key }
}

#[cfg(test)]
mod tests {
    use burn::tensor::Tensor;
    use proptest::prelude::*;

    use super::*;
    use crate::{
        config::Evidence,
        device,
        model::{
            layers::{tensor, values},
            mask::soft_mask,
        },
    };

    fn whole(mask: &SoftMask) -> Vec<f32> {
        let [height, width] = mask.size();
        let mut pixels = vec![0.0; height * width];
        pixels.chunks_exact_mut(width).enumerate().for_each(|(row, line)| mask.fill(row, 0, line));
        pixels
    }

    fn settings(centres: bool, percentiles: bool) -> MaskConfig {
        let mut config = MaskConfig::default();
        if centres {
            config.alignment = Alignment::Centres;
        }
        if percentiles {
            (config.low_percentile, config.high_percentile) = (10.0, 85.0);
        }
        config
    }

    #[test]
    fn a_constant_map_gives_one_half_everywhere() {
        let rule = MaskEquation {
            config: &MaskConfig::default(),
            evidence: Evidence::Weighted,
            stride: 4,
            batch_wide: false,
        };
        let mask = SoftMask::new(vec![3.0; 6], [2, 3], [7, 11], &rule);
        assert_eq!(whole(&mask), [0.5; 77]);
    }

    #[test]
    fn evidence_at_the_cut_is_one_half_and_cells_stand_for_their_middle() {
        let mask = SoftMask::cut_at(vec![-1.0, 3.0], [1, 2], [1, 4], 1.0);
        let sigmoid = |x: f32| 1.0 / (1.0 + (-x).exp());
        assert_eq!(whole(&mask), [-2.0, -1.0, 1.0, 2.0].map(sigmoid));
    }

    #[test]
    fn keys_sort_like_the_numbers_they_stand_for() {
        let numbers = [f32::NEG_INFINITY, -2.0, -1e-40, -0.0, 0.0, 1e-40, 3.0, f32::INFINITY];
        let keys = numbers.map(|number| ordered(number.to_bits()));
        assert!(keys.is_sorted());
        assert_eq!(keys.map(unordered), numbers.map(f32::to_bits));
    }

    proptest! {
        #[test]
        fn rows_are_those_of_the_mask_computed_at_once(
            cells in prop::collection::vec(-9.0_f32..9.0, 12),
            size in (3_usize..40, 4_usize..40),
            centres: bool,
            percentiles: bool,
        ) {
            let (device, grid, size) = (device::cpu(), [3, 4], [size.0, size.1]);
            let config = settings(centres, percentiles);
            let evidence = Evidence::Weighted;
            let rule = MaskEquation { config: &config, evidence, stride: 8, batch_wide: false };
            let maps = tensor(cells.clone(), [1, 1, 3, 4], &device);
            let expected = values(soft_mask(Tensor::zeros([1, 1], &device), maps, size, &rule));
            let found = whole(&SoftMask::new(cells, grid, size, &rule));
            for (found, expected) in found.iter().zip(expected) {
                prop_assert!((found - expected).abs() < 1e-5, "{found} {expected}");
            }
        }
    }
}
