//! The soft mask of evidence: equation 9 of the paper, and the range that comes before it.
//!
//! Whole images and tiles share it; only where a gradient is wanted are the same operations
//! tensors, in `mask.rs`.

use rayon::prelude::*;

use super::mask::{MaskEquation, taps};
use crate::{
    bilinear::{Tap, half_pixel, read_line},
    config::MaskConfig,
};

/// The soft mask of an image, computed row by row wherever it is asked for.
#[derive(Debug)]
pub struct SoftMask {
    evidence: Enlarged,
    equation: Equation,
}

impl SoftMask {
    /// Takes `evidence` in cells of a `grid`, for an image of `size`; both are rows, columns.
    pub fn new(
        evidence: Vec<f32>,
        grid: [usize; 2],
        size: [usize; 2],
        rule: &MaskEquation<'_>,
    ) -> Self {
        let mut masks = Self::batch(evidence, grid, size, rule);
        masks.pop().expect("evidence of one image gives one mask")
    }

    /// The masks of several images, whose `evidence` lies one after the other.
    pub(super) fn batch(
        evidence: Vec<f32>,
        grid: [usize; 2],
        size: [usize; 2],
        rule: &MaskEquation<'_>,
    ) -> Vec<Self> {
        let [rows, columns] = taps(rule.config.alignment, rule.stride, size, grid);
        let images: Vec<Enlarged> = evidence
            .chunks_exact(grid[0] * grid[1])
            .map(|cells| Enlarged::new(cells.to_vec(), grid, rows.clone(), columns.clone()))
            .collect();
        let shared = rule.batch_wide.then(|| Equation::of(&images, rule.config));
        let mask = |evidence: Enlarged| {
            let one = || Equation::of(std::slice::from_ref(&evidence), rule.config);
            Self { equation: shared.unwrap_or_else(one), evidence }
        };
        images.into_iter().map(mask).collect()
    }

    /// The mask `sigmoid(evidence − cut)` of evidence whose cells each stand for their middle.
    pub fn cut_at(evidence: Vec<f32>, grid: [usize; 2], size: [usize; 2], cut: f32) -> Self {
        let [rows, columns] = [0, 1].map(|axis| half_pixel(size[axis], grid[axis]));
        Self {
            evidence: Enlarged::new(evidence, grid, rows, columns),
            equation: Equation {
                low: 0.0,
                high: 1.0,
                clamps: false,
                threshold: cut,
                steepness: 1.0,
            },
        }
    }

    /// Height and width of the image.
    pub fn size(&self) -> [usize; 2] {
        [self.evidence.rows.len(), self.evidence.columns.len()]
    }

    /// Writes the mask of one row, from column `left` on.
    pub fn fill(&self, row: usize, left: usize, line: &mut [f32]) {
        self.evidence.read(row, left, line);
        line.iter_mut().for_each(|value| *value = self.equation.mask(*value));
    }

    /// Writes the whole mask, row by row.
    pub(crate) fn fill_all(&self, pixels: &mut [f32]) {
        let lines = pixels.par_chunks_exact_mut(self.evidence.columns.len());
        lines.enumerate().for_each(|(row, line)| self.fill(row, 0, line));
    }
}

/// T↑: the evidence of an image at any of its pixels.
#[derive(Debug)]
struct Enlarged {
    /// T, one row of cells after the other.
    cells: Vec<f32>,
    /// Cells in a row.
    width: usize,
    rows: Vec<Tap>,
    columns: Vec<Tap>,
}

impl Enlarged {
    fn new(cells: Vec<f32>, grid: [usize; 2], rows: Vec<Tap>, columns: Vec<Tap>) -> Self {
        assert_eq!(cells.len(), grid[0] * grid[1], "one number per cell");
        Self { cells, width: grid[1], rows, columns }
    }

    /// Writes the evidence of one row, from column `left` on.
    fn read(&self, row: usize, left: usize, line: &mut [f32]) {
        read_line(&self.cells, self.width, self.rows[row], &self.columns[left..], line);
    }
}

/// From evidence to mask, pixel by pixel.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Equation {
    /// The evidence that becomes 0.
    low: f32,
    /// The evidence that becomes 1.
    high: f32,
    /// Whether evidence may lie beyond.
    clamps: bool,
    /// σ′
    threshold: f32,
    /// ω
    steepness: f32,
}

impl Equation {
    /// The equation of images that share their range.
    fn of(images: &[Enlarged], config: &MaskConfig) -> Self {
        let MaskConfig { threshold, steepness, low_percentile, high_percentile, .. } = *config;
        let whole_range = low_percentile == 0.0 && high_percentile == 100.0;
        let (low, high) = if whole_range {
            extremes(images)
        } else {
            (percentile(images, low_percentile), percentile(images, high_percentile))
        };
        let (threshold, steepness) = (threshold as f32, steepness as f32);
        Self { low, high, clamps: !whole_range, threshold, steepness }
    }

    #[inline]
    fn mask(&self, evidence: f32) -> f32 {
        if self.high <= self.low {
            // A constant map says nothing, so it lands on the threshold.
            return 0.5;
        }
        let mut normalized = (evidence - self.low) / (self.high - self.low);
        if self.clamps {
            normalized = normalized.clamp(0.0, 1.0);
        }
        sigmoid((normalized - self.threshold) * self.steepness)
    }
}

/// 1 / (1 + exp(−x)), rounded as the tensor framework does.
#[inline]
fn sigmoid(x: f32) -> f32 {
    if x >= 0.0 {
        return 1.0 / (1.0 + (-x).exp());
    }
    let e = x.exp();
    e / (1.0 + e)
}

/// The evidence of every row of images, in any order.
fn every_row(images: &[Enlarged]) -> impl ParallelIterator<Item = Vec<f32>> {
    images.par_iter().flat_map(|image| {
        (0..image.rows.len()).into_par_iter().map(|row| {
            let mut line = vec![0.0; image.columns.len()];
            image.read(row, 0, &mut line);
            line
        })
    })
}

/// The smallest and the largest evidence; both are NaN where any is.
fn extremes(images: &[Enlarged]) -> (f32, f32) {
    let none = || (f32::INFINITY, f32::NEG_INFINITY);
    let wider = |(low, high): (f32, f32), (a, b): (f32, f32)| {
        let smaller = if a < low || a.is_nan() { a } else { low };
        (smaller, if b > high || b.is_nan() { b } else { high })
    };
    let of_line = |line: Vec<f32>| line.iter().fold(none(), |range, &v| wider(range, (v, v)));
    every_row(images).map(of_line).reduce(none, wider)
}

/// A percentile of the evidence by the nearest rank, in memory that does not grow with the image.
///
/// A radix selection: the upper 16 bits of all values are counted first, then the lower 16 bits
/// of those values that share the upper bits of the one sought.
fn percentile(images: &[Enlarged], percent: f64) -> f32 {
    let pixels: usize = images.iter().map(|image| image.rows.len() * image.columns.len()).sum();
    let rank = (percent / 100.0 * (pixels - 1) as f64).round() as u64;
    let upper = count(images, |key| Some((key >> 16) as u16));
    let (upper, before) = find(&upper, rank);
    let lower = count(images, |key| (key >> 16 == upper).then_some(key as u16));
    let (lower, _) = find(&lower, rank - before);
    f32::from_bits(unordered(upper << 16 | lower))
}

/// How often each number is made of a pixel's key.
fn count(images: &[Enlarged], number: impl Fn(u32) -> Option<u16> + Sync) -> Vec<u64> {
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
    every_row(images).fold(none, add).reduce(none, join)
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
        config::{Alignment, Evidence},
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

    /// The mask as the network gives it, and the same computed row by row.
    fn both(cells: &[f32], size: [usize; 2], rule: &MaskEquation<'_>) -> [Vec<f32>; 2] {
        let maps = tensor(cells.to_vec(), [1, 1, 3, 4], &device::cpu());
        let at_once = soft_mask(Tensor::zeros([1, 1], &device::cpu()), maps, size, rule);
        [values(at_once), whole(&SoftMask::new(cells.to_vec(), [3, 4], size, rule))]
    }

    proptest! {
        #[test]
        fn a_mask_is_the_same_to_the_bit_whole_in_rows_and_in_pieces_of_rows(
            cells in prop::collection::vec(-9.0_f32..9.0, 12),
            size in (3_usize..40, 4_usize..40),
            left in 0_usize..4,
            centres: bool,
            percentiles: bool,
        ) {
            let size = [size.0, size.1];
            let config = settings(centres, percentiles);
            let evidence = Evidence::Weighted;
            let rule = MaskEquation { config: &config, evidence, stride: 8, batch_wide: false };
            let [at_once, rows] = both(&cells, size, &rule);
            prop_assert_eq!(&at_once, &rows);
            let mask = SoftMask::new(cells, [3, 4], size, &rule);
            let mut piece = vec![0.0; size[1] - left];
            mask.fill(size[0] - 1, left, &mut piece);
            prop_assert_eq!(&piece[..], &at_once[(size[0] - 1) * size[1] + left..]);
        }

        #[test]
        fn a_mask_with_a_gradient_has_the_same_values(
            cells in prop::collection::vec(-9.0_f32..9.0, 12),
            size in (3_usize..40, 4_usize..40),
            centres: bool,
            percentiles: bool,
        ) {
            let size = [size.0, size.1];
            let config = settings(centres, percentiles);
            let evidence = Evidence::Weighted;
            let rule = MaskEquation { config: &config, evidence, stride: 8, batch_wide: false };
            let maps = tensor(cells.clone(), [1, 1, 3, 4], &device::cpu()).autodiff();
            let scores = Tensor::zeros([1, 1], &device::cpu()).autodiff();
            let recorded = values(soft_mask(scores, maps, size, &rule).inner());
            // Processors without fused multiplication round the matrix product differently.
            for (found, expected) in both(&cells, size, &rule)[1].iter().zip(recorded) {
                prop_assert!((found - expected).abs() < 1e-5, "{found} {expected}");
            }
        }
    }
}
