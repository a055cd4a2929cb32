//! 128-bit vectors of 64-bit ARM.

use std::arch::aarch64::*;

use super::{Kernel, Simd, Tile};

const LANES: usize = 4;
/// Twenty-four sums, four weights and a broadcast value of the thirty-two registers.
pub(super) const TILE: Tile = Tile { rows: 6, columns: 4 * LANES };

/// Proof of NEON: made in [`run`] only.
#[derive(Clone, Copy)]
pub(super) struct Neon(());

/// # Safety
/// The processor has NEON.
#[target_feature(enable = "neon")]
pub(super) unsafe fn run<K: Kernel>(kernel: K) -> K::Output {
    kernel.run::<_, { TILE.rows }, { TILE.columns / LANES }>(Neon(()))
}

impl Simd for Neon {
    type Vector = float32x4_t;
    const LANES: usize = LANES;

    #[inline(always)]
    fn splat(self, value: f32) -> Self::Vector {
        // SAFETY: `self` proves that the processor has the instruction.
        unsafe { vdupq_n_f32(value) }
    }

    #[inline(always)]
    fn add(self, a: Self::Vector, b: Self::Vector) -> Self::Vector {
        // SAFETY: `self` proves that the processor has the instruction.
        unsafe { vaddq_f32(a, b) }
    }

    #[inline(always)]
    fn sub(self, a: Self::Vector, b: Self::Vector) -> Self::Vector {
        // SAFETY: `self` proves that the processor has the instruction.
        unsafe { vsubq_f32(a, b) }
    }

    #[inline(always)]
    fn mul(self, a: Self::Vector, b: Self::Vector) -> Self::Vector {
        // SAFETY: `self` proves that the processor has the instruction.
        unsafe { vmulq_f32(a, b) }
    }

    #[inline(always)]
    fn mul_add(self, a: Self::Vector, b: Self::Vector, c: Self::Vector) -> Self::Vector {
        // SAFETY: `self` proves that the processor has the instruction.
        unsafe { vfmaq_f32(c, a, b) }
    }

    #[inline(always)]
    fn relu(self, a: Self::Vector) -> Self::Vector {
        // SAFETY: `self` proves that the processor has the instruction; it keeps NaN.
        unsafe { vmaxq_f32(a, vdupq_n_f32(0.0)) }
    }

    #[inline(always)]
    fn where_positive(self, gate: Self::Vector, a: Self::Vector) -> Self::Vector {
        // SAFETY: `self` proves that the processor has the instructions.
        unsafe {
            let kept = vandq_u32(vcgtzq_f32(gate), vreinterpretq_u32_f32(a));
            vreinterpretq_f32_u32(kept)
        }
    }

    #[inline(always)]
    fn select_larger(
        self,
        a: Self::Vector,
        b: Self::Vector,
        x: Self::Vector,
        y: Self::Vector,
    ) -> Self::Vector {
        // SAFETY: `self` proves that the processor has the instructions.
        unsafe { vbslq_f32(vornq_u32(vcgtq_f32(a, b), vceqq_f32(a, a)), x, y) }
    }

    #[inline(always)]
    unsafe fn load_ptr(self, from: *const f32) -> Self::Vector {
        // SAFETY: as above, and the caller vouches for `LANES` readable floats.
        unsafe { vld1q_f32(from) }
    }

    #[inline(always)]
    unsafe fn store_ptr(self, to: *mut f32, value: Self::Vector) {
        // SAFETY: as above, and the caller vouches for `LANES` writable floats.
        unsafe { vst1q_f32(to, value) }
    }
}
