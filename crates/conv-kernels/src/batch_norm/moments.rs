//! Mean and variance of each channel.

use rayon::prelude::*;

use super::{block_len, block_rows};
use crate::{
    scratch,
    simd::{Isa, Kernel, Simd},
};

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
        let len = block_len(values.len(), channels);
        let rows = values.len() / channels;
        let mut sums = scratch::floats(values.len().div_ceil(len) * 3 * channels);
        values
            .par_chunks(len)
            .zip(sums.par_chunks_exact_mut(3 * channels))
            .for_each(|(values, sums)| isa.run(BlockSums { values, channels, sums }));
        Self::merge(channels, rows, || {
            sums.chunks_exact(3 * channels).enumerate().map(|(index, sums)| {
                let count = block_rows(channels).min(rows - index * block_rows(channels));
                let (origin, rest) = sums.split_at(channels);
                let (sum, square) = rest.split_at(channels);
                (count, origin, sum, square)
            })
        })
    }

    /// Merges blocks of `(rows, origin, sum of differences from it, sum of their squares)`.
    pub(crate) fn merge<'a, I>(channels: usize, count: usize, blocks: impl Fn() -> I) -> Self
    where
        I: Iterator<Item = (usize, &'a [f32], &'a [f32], &'a [f32])>,
    {
        let wide = |x: f32| f64::from(x);
        let total = count.max(1) as f64;
        let mut mean = vec![0.0_f64; channels];
        for (rows, origin, sum, _) in blocks() {
            for (c, mean) in mean.iter_mut().enumerate() {
                *mean += (rows as f64 * wide(origin[c]) + wide(sum[c])) / total;
            }
        }
        let mut squares = vec![0.0_f64; channels];
        for (rows, origin, sum, square) in blocks() {
            for (c, squares) in squares.iter_mut().enumerate() {
                // Squares about the block's own mean, then moved to the common one.
                let shift = wide(sum[c]) / rows as f64;
                let distance = wide(origin[c]) + shift - mean[c];
                *squares +=
                    wide(square[c]) - shift * wide(sum[c]) + rows as f64 * distance * distance;
            }
        }
        Self {
            mean: mean.iter().map(|&mean| mean as f32).collect(),
            variance: squares.iter().map(|&square| (square / total).max(0.0) as f32).collect(),
            count,
        }
    }
}

/// Sums of a block: its first row, the differences from it, and their squares.
struct BlockSums<'a> {
    values: &'a [f32],
    channels: usize,
    sums: &'a mut [f32],
}

impl Kernel for BlockSums<'_> {
    type Output = ();

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
