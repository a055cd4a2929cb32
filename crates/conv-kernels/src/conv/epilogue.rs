//! Operations on results while they are still in registers.

use crate::simd::Simd;

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
    pub(super) fn is_empty(&self) -> bool {
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
    pub(super) fn apply_scalar(&self, mut value: f32, channel: usize, at: usize) -> f32 {
        value += self.bias.map_or(0.0, |bias| bias[channel]);
        value += self.residual.map_or(0.0, |residual| residual[at]);
        if self.relu && value < 0.0 { 0.0 } else { value }
    }
}
