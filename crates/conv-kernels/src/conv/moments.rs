//! Mean and variance of each channel, collected while the results of a convolution are in registers.
//!
//! Each block of pixels sums differences from one of its own values, so that nothing cancels;
//! blocks are merged in their order in double precision.

use crate::{batch_norm::Moments, shared::Shared, simd::Simd};

/// Rows per block: the value differences are taken from, their sum, the sum of their squares.
const ROWS: usize = 3;

/// Sums by block and channel, filled by concurrent tiles.
pub(super) struct MomentSink<'a> {
    sums: Shared<'a>,
    /// Channels filled up to whole panels.
    padded: usize,
}

impl<'a> MomentSink<'a> {
    pub(super) fn len(blocks: usize, padded: usize) -> usize {
        blocks * ROWS * padded
    }

    pub(super) fn new(sums: &'a mut [f32], padded: usize) -> Self {
        Self { sums: Shared::new(sums), padded }
    }

    /// Adds the first `rows` rows of a tile; the first tile of a block sets the block's sums.
    #[inline(always)]
    pub(super) fn add_tile<S: Simd, const R: usize, const V: usize>(
        &self,
        simd: S,
        block: usize,
        first_channel: usize,
        rows: usize,
        first_tile: bool,
        acc: &[[S::Vector; V]; R],
    ) {
        for j in 0..V {
            let at = block * ROWS * self.padded + first_channel + j * S::LANES;
            // SAFETY: the channels of a panel in one block are summed by one task only.
            let (origin, sum, square) = unsafe {
                (
                    self.sums.part(at, S::LANES),
                    self.sums.part(at + self.padded, S::LANES),
                    self.sums.part(at + 2 * self.padded, S::LANES),
                )
            };
            let (shift, mut s, mut q) = if first_tile {
                simd.store(origin, acc[0][j]);
                (acc[0][j], simd.zero(), simd.zero())
            } else {
                (simd.load(origin), simd.load(sum), simd.load(square))
            };
            for i in 0..R {
                if i < rows {
                    let difference = simd.sub(acc[i][j], shift);
                    s = simd.add(s, difference);
                    q = simd.mul_add(difference, difference, q);
                }
            }
            simd.store(sum, s);
            simd.store(square, q);
        }
    }
}

/// Merges blocks of `block` pixels (the last may be shorter) into the moments of all `pixels`.
pub(super) fn merge(
    sums: &[f32],
    channels: usize,
    padded: usize,
    pixels: usize,
    block: usize,
) -> Moments {
    Moments::merge(channels, pixels, || {
        sums.chunks_exact(ROWS * padded).enumerate().map(move |(index, sums)| {
            let count = block.min(pixels - index * block);
            let (origin, rest) = sums.split_at(padded);
            let (sum, square) = rest.split_at(padded);
            (count, origin, sum, square)
        })
    })
}
