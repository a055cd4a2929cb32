//! Mean and variance of each channel.

use rayon::prelude::*;

use super::block_len;
use crate::{
    scratch,
    simd::{Isa, Kernel, Simd},
};

/// Sums of each channel in a block of rows: the first value, differences from it, their squares.
pub(crate) const SUMS: usize = 3;

/// Mean and variance of each channel over a batch.
#[derive(Debug, Clone, PartialEq)]
pub struct Moments {
    /// Mean.
    pub mean: Vec<f32>,
    /// Mean squared distance from the mean.
    pub variance: Vec<f32>,
    /// Pixels they were taken from.
    pub count: usize,
}

impl Moments {
    /// Measures rows of `channels` values.
    pub fn measure(isa: Isa, values: &[f32], channels: usize) -> Self {
        let blocks = values.par_chunks(block_len(values.len(), channels));
        let rows: Vec<usize> = blocks.clone().map(|values| values.len() / channels).collect();
        let mut sums = scratch::floats(rows.len() * SUMS * channels);
        blocks
            .zip(sums.par_chunks_exact_mut(SUMS * channels))
            .for_each(|(values, sums)| isa.run(BlockSums { values, channels, sums }));
        Self::merge(&sums, channels, channels, &rows)
    }

    /// Merges the sums of blocks, each [`SUMS`] times `width` floats of which the first `channels`
    /// count; `rows` has the number of rows of each block.
    pub(crate) fn merge(sums: &[f32], width: usize, channels: usize, rows: &[usize]) -> Self {
        let count = rows.iter().sum();
        let total = usize::max(count, 1) as f64;
        // A block without rows has no sums.
        let filled = sums.chunks_exact(SUMS * width).zip(rows).filter(|(_, rows)| **rows > 0);
        let blocks = || filled.clone().map(|(sums, &rows)| (sums, rows as f64));
        let of = |sums: &[f32], c: usize| [0, 1, 2].map(|sum| f64::from(sums[sum * width + c]));
        let mut mean = vec![0.0; channels];
        for (sums, rows) in blocks() {
            for (c, mean) in mean.iter_mut().enumerate() {
                let [origin, sum, _] = of(sums, c);
                *mean += (rows * origin + sum) / total;
            }
        }
        let mut squares = vec![0.0; channels];
        for (sums, rows) in blocks() {
            for (c, squares) in squares.iter_mut().enumerate() {
                // Squares about the block's own mean, then moved to the common one.
                let [origin, sum, square] = of(sums, c);
                let shift = sum / rows;
                let distance = origin + shift - mean[c];
                *squares += square - shift * sum + rows * distance * distance;
            }
        }
        Self {
            mean: mean.iter().map(|&mean| mean as f32).collect(),
            variance: squares.iter().map(|&square| (square / total).max(0.0) as f32).collect(),
            count,
        }
    }
}

/// The sums of one block.
struct BlockSums<'a> {
    values: &'a [f32],
    channels: usize,
    sums: &'a mut [f32],
}

impl Kernel for BlockSums<'_> {
    #[inline(always)]
    fn run<S: Simd, const R: usize, const V: usize>(self, simd: S) {
        let channels = self.channels;
        let (origin, rest) = self.sums.split_at_mut(channels);
        let (sum, square) = rest.split_at_mut(channels);
        let square = &mut square[..channels];
        origin.copy_from_slice(&self.values[..channels]);
        sum.fill(0.0);
        square.fill(0.0);
        for row in self.values.chunks_exact(channels) {
            for c in (0..channels).step_by(S::LANES) {
                let difference = simd.sub(simd.load_at(row, c), simd.load_at(origin, c));
                let s = simd.add(simd.load_at(sum, c), difference);
                let q = simd.mul_add(difference, difference, simd.load_at(square, c));
                simd.store_at(sum, c, s);
                simd.store_at(square, c, q);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_of_two_rows_by_hand() {
        let moments = Moments::measure(Isa::detect(), &[1.0, 10.0, 3.0, 30.0], 2);
        assert_eq!(moments.mean, [2.0, 20.0]);
        assert_eq!(moments.variance, [1.0, 100.0]);
    }

    #[test]
    fn a_large_mean_does_not_swallow_a_small_variance() {
        let values: Vec<f32> = (0..40_000).map(|i| 1000.0 + (i % 2) as f32 / 64.0).collect();
        for isa in Isa::available() {
            let moments = Moments::measure(isa, &values, 1);
            assert_eq!(moments.variance, [1.0 / 128.0 / 128.0], "{isa:?}");
        }
    }
}
