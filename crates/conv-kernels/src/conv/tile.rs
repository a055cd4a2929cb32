//! The micro-kernel of every product with packed weights: a tile of sums held in registers.

use std::ops::Range;

use crate::simd::Simd;

/// Summed dimension of one visit to a panel: 256 × 16 weights are half of a first-level cache.
pub(super) const DEPTH: usize = 256;

/// A part of the summed dimension: several taps with all their channels, or a part of one tap's.
#[derive(Clone, Copy)]
pub(super) struct Stretch {
    pub(super) first_tap: usize,
    pub(super) taps: usize,
    pub(super) offset: usize,
    pub(super) len: usize,
}

/// Reads a tile that [`store_tile`] wrote.
#[inline(always)]
pub(super) fn load_tile<S: Simd, const R: usize, const V: usize>(
    simd: S,
    from: &[f32],
    acc: &mut [[S::Vector; V]; R],
) {
    for i in 0..R {
        for j in 0..V {
            acc[i][j] = simd.load(&from[(i * V + j) * S::LANES..]);
        }
    }
}

/// Writes a tile `[row][lane]`, or adds it to what is there.
#[inline(always)]
pub(super) fn store_tile<S: Simd, const R: usize, const V: usize>(
    simd: S,
    acc: &[[S::Vector; V]; R],
    to: &mut [f32],
    add: bool,
) {
    for i in 0..R {
        for j in 0..V {
            let sum = &mut to[(i * V + j) * S::LANES..];
            let value = if add { simd.add(simd.load(sum), acc[i][j]) } else { acc[i][j] };
            simd.store(sum, value);
        }
    }
}

/// The micro-kernel: adds `stretch` of the matrix product to a tile held in registers.
///
/// # Safety
/// `rows[tap * stride + first..][..R]` are addresses of at least `stretch.offset + stretch.len`
/// readable floats, for each tap; `weights` holds `V` vectors for each of `taps × len` places.
#[inline(always)]
pub(super) unsafe fn accumulate<S: Simd, const R: usize, const V: usize>(
    simd: S,
    rows: &[*const f32],
    stride: usize,
    first: usize,
    stretch: Stretch,
    weights: &[f32],
    acc: &mut [[S::Vector; V]; R],
) {
    let mut weight = weights.as_ptr();
    let mut sums = *acc;
    for tap in 0..stretch.taps {
        let mut row = [std::ptr::null(); R];
        for i in 0..R {
            // SAFETY: promised by the caller.
            row[i] = unsafe { rows.get_unchecked(tap * stride + first + i).add(stretch.offset) };
        }
        for k in 0..stretch.len {
            // SAFETY: promised by the caller.
            unsafe {
                let mut w = [simd.zero(); V];
                for j in 0..V {
                    w[j] = simd.load_ptr(weight.add(j * S::LANES));
                }
                for i in 0..R {
                    let value = simd.splat(*row[i].add(k));
                    for j in 0..V {
                        sums[i][j] = simd.mul_add(value, w[j], sums[i][j]);
                    }
                }
                weight = weight.add(V * S::LANES);
            }
        }
    }
    *acc = sums;
}

/// One panel of a plain matrix product: `rows` of `width` floats, of which those in `depth` are
/// multiplied with `weights` `[depth][lane]`.
///
/// Results go to rows of `step` floats; where `depth` starts later than 0, they are added to.
#[inline(always)]
pub(super) fn multiply<S: Simd, const R: usize, const V: usize>(
    simd: S,
    rows: &[f32],
    width: usize,
    depth: Range<usize>,
    weights: &[f32],
    results: &mut [f32],
    step: usize,
) {
    let lanes = V * S::LANES;
    let count = rows.len() / width;
    let stretch = Stretch { first_tap: 0, taps: 1, offset: 0, len: depth.len() };
    let weights = &weights[..depth.len() * lanes];
    for first in (0..count).step_by(R) {
        let mut table = [rows.as_ptr(); R];
        for i in 0..R {
            table[i] = rows[(first + i).min(count - 1) * width..][depth.clone()].as_ptr();
        }
        let mut acc = [[simd.zero(); V]; R];
        for i in 0..R.min(count - first) {
            if depth.start > 0 {
                for j in 0..V {
                    acc[i][j] = simd.load(&results[(first + i) * step + j * S::LANES..]);
                }
            }
        }
        // SAFETY: the table holds `R` rows of `depth.len()` floats, for which there are weights.
        unsafe { accumulate(simd, &table, R, 0, stretch, weights, &mut acc) };
        for i in 0..R {
            if first + i < count {
                for j in 0..V {
                    simd.store(&mut results[(first + i) * step + j * S::LANES..], acc[i][j]);
                }
            }
        }
    }
}
