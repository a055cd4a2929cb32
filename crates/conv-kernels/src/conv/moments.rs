//! Sums for the mean and variance of each channel, taken while results are in registers.
//!
//! Each block of pixels sums differences from one of its own values, so that nothing cancels;
//! `Moments::merge` adds the blocks in their order in double precision.

use crate::{batch_norm::SUMS, shared::Shared, simd::Simd};

/// Sums by block and channel, filled by concurrent tiles.
pub(super) struct MomentSink<'a> {
    sums: Shared<'a>,
    padded: usize,
}

impl<'a> MomentSink<'a> {
    /// `sums` has [`SUMS`] floats for each block and channel, channels `padded` to whole panels.
    pub(super) fn new(sums: &'a mut [f32], padded: usize) -> Self {
        Self { sums: Shared::new(sums), padded }
    }

    /// Adds the first `rows` rows of a register tile; the first tile of a block is its `start`.
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

    /// Adds the first rows and columns of a Winograd tile's results, for one vector of channels.
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
    ) -> Column<'a, S> {
        let memory = [0, 1, 2].map(|sum| {
            let at = (block * SUMS + sum) * self.padded + channel;
            // SAFETY: the channels of a vector in one block are summed by one task only.
            unsafe { self.sums.part(at, S::LANES) }
        });
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
    memory: [&'a mut [f32]; SUMS],
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
