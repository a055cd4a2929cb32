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

    /// Adds the first `rows` rows of a register tile; `start` begins the block's sums.
    #[inline(always)]
    pub(super) fn add_tile<S: Simd, const R: usize, const V: usize>(
        &self,
        simd: S,
        block: usize,
        first_channel: usize,
        rows: usize,
        start: bool,
        acc: &[[S::Vector; V]; R],
    ) {
        for j in 0..V {
            let channel = first_channel + j * S::LANES;
            let mut column = self.column(simd, block, channel, start.then_some(acc[0][j]));
            for i in 0..R {
                if i < rows {
                    column.add(simd, acc[i][j]);
                }
            }
            column.store(simd);
        }
    }

    /// Adds the first rows and columns of a square of results of one vector of channels.
    #[inline(always)]
    pub(super) fn add_square<S: Simd, const N: usize>(
        &self,
        simd: S,
        block: usize,
        channel: usize,
        (rows, columns): (usize, usize),
        start: bool,
        values: &[[S::Vector; N]; N],
    ) {
        let mut column = self.column(simd, block, channel, start.then_some(values[0][0]));
        for i in 0..N {
            for j in 0..N {
                if i < rows && j < columns {
                    column.add(simd, values[i][j]);
                }
            }
        }
        column.store(simd);
    }

    /// The sums of one vector of channels, begun about `origin` where it is given.
    #[inline(always)]
    fn column<S: Simd>(
        &self,
        simd: S,
        block: usize,
        channel: usize,
        origin: Option<S::Vector>,
    ) -> Column<'_, S> {
        let at = block * ROWS * self.padded + channel;
        // SAFETY: the channels of a vector in one block are summed by one task only.
        let memory = unsafe {
            [
                self.sums.part(at, S::LANES),
                self.sums.part(at + self.padded, S::LANES),
                self.sums.part(at + 2 * self.padded, S::LANES),
            ]
        };
        let (origin, sum, square) = match origin {
            Some(origin) => {
                simd.store(memory[0], origin);
                (origin, simd.zero(), simd.zero())
            }
            None => (simd.load(memory[0]), simd.load(memory[1]), simd.load(memory[2])),
        };
        Column { memory, origin, sum, square }
    }
}

/// Running sums of one vector of channels.
struct Column<'a, S: Simd> {
    memory: [&'a mut [f32]; ROWS],
    origin: S::Vector,
    sum: S::Vector,
    square: S::Vector,
}

impl<S: Simd> Column<'_, S> {
    #[inline(always)]
    fn add(&mut self, simd: S, value: S::Vector) {
        let difference = simd.sub(value, self.origin);
        self.sum = simd.add(self.sum, difference);
        self.square = simd.mul_add(difference, difference, self.square);
    }

    #[inline(always)]
    fn store(self, simd: S) {
        let [_, sum, square] = self.memory;
        simd.store(sum, self.sum);
        simd.store(square, self.square);
    }
}

/// Merges blocks that wrote `block_pixels` each into the moments of all `pixels`.
pub(super) fn merge(
    sums: &[f32],
    channels: usize,
    padded: usize,
    pixels: usize,
    block_pixels: &[usize],
) -> Moments {
    Moments::merge(channels, pixels, || {
        sums.chunks_exact(ROWS * padded).zip(block_pixels).map(move |(sums, &count)| {
            let (origin, rest) = sums.split_at(padded);
            let (sum, square) = rest.split_at(padded);
            (count, origin, sum, square)
        })
    })
}
