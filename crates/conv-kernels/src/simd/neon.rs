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
pub(super) unsafe fn run(kernel: impl Kernel) {
    kernel.run::<_, { TILE.rows }, { TILE.columns / LANES }>(Neon(()))
}

vectors! { Neon, float32x4_t, LANES;
    splat(value) => vdupq_n_f32(value);
    load(from) => vld1q_f32(from);
    store(to, value) => vst1q_f32(to, value);
    add(a, b) => vaddq_f32(a, b);
    sub(a, b) => vsubq_f32(a, b);
    mul(a, b) => vmulq_f32(a, b);
    mul_add(a, b, c) => vfmaq_f32(c, a, b);
    relu(a) => vmaxq_f32(a, vdupq_n_f32(0.0)); // keeps NaN
    where_positive(gate, a) =>
        vreinterpretq_f32_u32(vandq_u32(vcgtzq_f32(gate), vreinterpretq_u32_f32(a)));
    select_larger(a, b, x, y) => vbslq_f32(vornq_u32(vcgtq_f32(a, b), vceqq_f32(a, a)), x, y);
}
