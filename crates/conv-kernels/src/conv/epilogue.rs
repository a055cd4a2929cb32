//! What happens to a result while it is still in registers.

use super::moments::MomentSink;
use crate::{shared::Shared, simd::Simd};

/// Steps applied to each result of a convolution before it is written, in this order.
#[derive(Debug, Clone, Copy, Default)]
pub struct Epilogue<'a> {
    /// Added by channel.
    pub bias: Option<&'a [f32]>,
    /// Added value by value, in the layout of the result.
    pub residual: Option<&'a [f32]>,
    /// Negative values become zero.
    pub relu: bool,
}

impl Epilogue<'_> {
    pub(super) fn check(&self, channels: usize, len: usize) {
        if let Some(bias) = self.bias {
            assert_eq!(bias.len(), channels, "bias does not match the channels");
        }
        if let Some(residual) = self.residual {
            assert_eq!(residual.len(), len, "residual does not match the result");
        }
    }

    /// Nothing to be done.
    #[inline(always)]
    fn is_empty(&self) -> bool {
        self.bias.is_none() && self.residual.is_none() && !self.relu
    }

    #[inline(always)]
    pub(super) fn apply_vector<S: Simd>(
        &self,
        simd: S,
        mut value: S::Vector,
        channel: usize,
        at: usize,
    ) -> S::Vector {
        if let Some(bias) = self.bias {
            value = simd.add(value, simd.load(&bias[channel..]));
        }
        if let Some(residual) = self.residual {
            value = simd.add(value, simd.load(&residual[at..]));
        }
        if self.relu { simd.relu(value) } else { value }
    }

    #[inline(always)]
    fn apply_scalar(&self, mut value: f32, channel: usize, at: usize) -> f32 {
        value += self.bias.map_or(0.0, |bias| bias[channel]);
        value += self.residual.map_or(0.0, |residual| residual[at]);
        if self.relu && value < 0.0 { 0.0 } else { value }
    }
}

/// Where a finished register tile goes.
pub(super) struct TileEnd<'a> {
    pub(super) epilogue: &'a Epilogue<'a>,
    pub(super) first_channel: usize,
    /// Channels of the result.
    pub(super) channels: usize,
    /// Rows of the tile that are pixels.
    pub(super) rows: usize,
    /// Each row's place in `result`.
    pub(super) writes: &'a [usize],
    pub(super) result: Shared<'a>,
    /// Sums to add to, and the block they belong to.
    pub(super) moments: Option<(&'a MomentSink<'a>, usize)>,
    /// First tile of its block: moments start here.
    pub(super) first_tile: bool,
}

impl TileEnd<'_> {
    #[inline(always)]
    pub(super) fn write<S: Simd, const R: usize, const V: usize>(
        &self,
        simd: S,
        mut acc: [[S::Vector; V]; R],
    ) {
        let writes: &[usize; R] = self.writes.first_chunk().expect("a place for each row");
        if self.first_channel + V * S::LANES > self.channels {
            self.write_narrow(simd, &acc);
        } else if self.rows == R && self.epilogue.is_empty() {
            for i in 0..R {
                self.write_plain(simd, writes[i] + self.first_channel, &acc[i]);
            }
        } else {
            for i in 0..R {
                if i < self.rows {
                    self.write_row(simd, writes[i] + self.first_channel, &mut acc[i]);
                }
            }
        }
        if let Some((sink, block)) = self.moments {
            sink.add_tile(simd, block, self.first_channel, self.rows, self.first_tile, &acc);
        }
    }

    /// The common case of training: nothing but stores.
    #[inline(always)]
    fn write_plain<S: Simd, const V: usize>(&self, simd: S, at: usize, row: &[S::Vector; V]) {
        for j in 0..V {
            // SAFETY: a pixel's channels of one panel lie in the result, and are written by one
            // tile only.
            unsafe { simd.store_ptr(self.result.address(at + j * S::LANES), row[j]) };
        }
    }

    #[inline(always)]
    fn write_row<S: Simd, const V: usize>(&self, simd: S, at: usize, row: &mut [S::Vector; V]) {
        // SAFETY: a pixel's channels of one panel are written by one tile only.
        let result = unsafe { self.result.part(at, V * S::LANES) };
        for j in 0..V {
            let lane = j * S::LANES;
            row[j] = self.epilogue.apply_vector(simd, row[j], self.first_channel + lane, at + lane);
            simd.store(&mut result[lane..], row[j]);
        }
    }

    /// The last panel, of which only the first columns are channels.
    #[inline(always)]
    fn write_narrow<S: Simd, const R: usize, const V: usize>(
        &self,
        simd: S,
        acc: &[[S::Vector; V]; R],
    ) {
        /// The widest panel of any instruction set.
        const WIDEST: usize = 32;
        let columns = self.channels - self.first_channel;
        for i in 0..self.rows {
            let mut row = [0.0; WIDEST];
            for j in 0..V {
                simd.store(&mut row[j * S::LANES..], acc[i][j]);
            }
            let at = self.writes[i] + self.first_channel;
            // SAFETY: a pixel's channels of one panel are written by one tile only.
            let result = unsafe { self.result.part(at, columns) };
            for (column, value) in result.iter_mut().enumerate() {
                let channel = self.first_channel + column;
                *value = self.epilogue.apply_scalar(row[column], channel, at + column);
            }
        }
    }
}
