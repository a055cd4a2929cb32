//! AVX2 with FMA, and AVX-512.

use std::arch::x86_64::*;

use super::{Kernel, Simd, Tile};

/// Twelve sums, two weights and a broadcast value fill the sixteen 256-bit registers.
pub(super) const AVX2_TILE: Tile = Tile { rows: 6, columns: 2 * 8 };
/// Twenty-six sums of the thirty-two 512-bit registers; 13 wastes little on 64, 128, 256 channels.
pub(super) const AVX512_TILE: Tile = Tile { rows: 13, columns: 2 * 16 };

/// Proof of AVX2 and FMA: made in [`run_avx2`] only.
#[derive(Clone, Copy)]
pub(super) struct Avx2(());

/// Proof of AVX-512F: made in [`run_avx512`] only.
#[derive(Clone, Copy)]
pub(super) struct Avx512(());

/// # Safety
/// The processor has AVX2 and FMA.
#[target_feature(enable = "avx2,fma")]
pub(super) unsafe fn run_avx2(kernel: impl Kernel) {
    kernel.run::<_, { AVX2_TILE.rows }, { AVX2_TILE.columns / 8 }>(Avx2(()))
}

/// # Safety
/// The processor has AVX-512F, AVX2 and FMA.
#[target_feature(enable = "avx512f,avx2,fma")]
pub(super) unsafe fn run_avx512(kernel: impl Kernel) {
    kernel.run::<_, { AVX512_TILE.rows }, { AVX512_TILE.columns / 16 }>(Avx512(()))
}

vectors! { Avx2, __m256, 8;
    splat(value) => _mm256_set1_ps(value);
    load(from) => _mm256_loadu_ps(from);
    store(to, value) => _mm256_storeu_ps(to, value);
    add(a, b) => _mm256_add_ps(a, b);
    sub(a, b) => _mm256_sub_ps(a, b);
    mul(a, b) => _mm256_mul_ps(a, b);
    mul_add(a, b, c) => _mm256_fmadd_ps(a, b, c);
    relu(a) => _mm256_max_ps(_mm256_setzero_ps(), a); // the second operand where either is NaN
    where_positive(gate, a) =>
        _mm256_and_ps(_mm256_cmp_ps::<_CMP_GT_OQ>(gate, _mm256_setzero_ps()), a);
    select_larger(a, b, x, y) => {
        let larger = _mm256_cmp_ps::<_CMP_GT_OQ>(a, b);
        _mm256_blendv_ps(y, x, _mm256_or_ps(larger, _mm256_cmp_ps::<_CMP_UNORD_Q>(a, a)))
    };
}

vectors! { Avx512, __m512, 16;
    splat(value) => _mm512_set1_ps(value);
    load(from) => _mm512_loadu_ps(from);
    store(to, value) => _mm512_storeu_ps(to, value);
    add(a, b) => _mm512_add_ps(a, b);
    sub(a, b) => _mm512_sub_ps(a, b);
    mul(a, b) => _mm512_mul_ps(a, b);
    mul_add(a, b, c) => _mm512_fmadd_ps(a, b, c);
    relu(a) => _mm512_max_ps(_mm512_setzero_ps(), a); // the second operand where either is NaN
    where_positive(gate, a) =>
        _mm512_maskz_mov_ps(_mm512_cmp_ps_mask::<_CMP_GT_OQ>(gate, _mm512_setzero_ps()), a);
    select_larger(a, b, x, y) => {
        let larger = _mm512_cmp_ps_mask::<_CMP_GT_OQ>(a, b);
        _mm512_mask_blend_ps(larger | _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(a, a), y, x)
    };
}
