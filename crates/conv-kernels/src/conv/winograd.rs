//! 3×3 convolution of stride 1 with a quarter of the multiplications.
//!
//! Winograd's F(4×4, 3×3): a tile of 6×6 inputs and the kernel are both transformed to their values
//! at 36 points, multiplied point by point (36 matrix products over channels), and transformed back
//! to 4×4 results: `Y = Aᵀ[(G g Gᵀ) ⊙ (Bᵀ d B)]A`.
//!
//! The interpolation points 0, ±√½, ±√2, ∞ keep numbers near 1; rounding is about twice that of
//! the plain sum, and less than with the usual 0, ±1, ±2, ∞.

mod grad;
mod pass;
mod tiles;
mod transform;
mod weights;

pub(super) use self::{grad::backward_weights, pass::Pass, weights::transform_weights};

use super::shape::{Conv, Filter};

/// Results along one side of a tile.
const OUT: usize = 4;
/// Inputs along one side of a tile, and points along one axis.
const SIDE: usize = 6;
/// Points of a tile.
pub(super) const POINTS: usize = SIDE * SIDE;
/// Unused floats between the matrices of neighbouring points: without them, the 36 values of a
/// tile would share few cache sets.
const GAP: usize = 16;

/// Tiles up to which transforming the kernels costs more than is saved.
const FEW_TILES: usize = 4;

/// Whether there are enough tiles to transform the kernels for them alone.
pub(super) fn pays_on_the_fly(conv: &Conv) -> bool {
    tiles::Tiles::new(conv).count() > FEW_TILES
}

/// Whether the method fits: 3×3, stride 1, size kept, channels in whole vectors, not too many.
pub(super) fn suits(filter: &Filter) -> bool {
    let Filter { in_channels, out_channels, kernel, stride, padding, dilation } = *filter;
    (kernel, stride, padding) == (3, 1, dilation)
        && in_channels % 16 == 0
        && out_channels % 16 == 0
        && in_channels * out_channels <= 512 * 512
}
