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
pub(super) unsafe fn run_avx2<K: Kernel>(kernel: K) -> K::Output {
    kernel.run::<_, { AVX2_TILE.rows }, { AVX2_TILE.columns / 8 }>(Avx2(()))
}

/// # Safety
/// The processor has AVX-512F, AVX2 and FMA.
#[target_feature(enable = "avx512f,avx2,fma")]
pub(super) unsafe fn run_avx512<K: Kernel>(kernel: K) -> K::Output {
    kernel.run::<_, { AVX512_TILE.rows }, { AVX512_TILE.columns / 16 }>(Avx512(()))
}

macro_rules! vectors {
    ($proof:ident, $vector:ty, $lanes:literal, $splat:ident, $add:ident, $sub:ident, $mul:ident,
     $fma:ident, $max:ident, $load:ident, $store:ident, |$gate:ident, $a:ident| $mask:expr,
     |$l:ident, $r:ident, $x:ident, $y:ident| $larger:expr) => {
        impl Simd for $proof {
            type Vector = $vector;
            const LANES: usize = $lanes;

            #[inline(always)]
            fn splat(self, value: f32) -> Self::Vector {
                // SAFETY: `self` proves that the processor has the instruction.
                unsafe { $splat(value) }
            }

            #[inline(always)]
            fn add(self, a: Self::Vector, b: Self::Vector) -> Self::Vector {
                // SAFETY: `self` proves that the processor has the instruction.
                unsafe { $add(a, b) }
            }

            #[inline(always)]
            fn sub(self, a: Self::Vector, b: Self::Vector) -> Self::Vector {
                // SAFETY: `self` proves that the processor has the instruction.
                unsafe { $sub(a, b) }
            }

            #[inline(always)]
            fn mul(self, a: Self::Vector, b: Self::Vector) -> Self::Vector {
                // SAFETY: `self` proves that the processor has the instruction.
                unsafe { $mul(a, b) }
            }

            #[inline(always)]
            fn mul_add(self, a: Self::Vector, b: Self::Vector, c: Self::Vector) -> Self::Vector {
                // SAFETY: `self` proves that the processor has the instruction.
                unsafe { $fma(a, b, c) }
            }

            #[inline(always)]
            fn relu(self, a: Self::Vector) -> Self::Vector {
                // The second operand is returned when either is NaN.
                // SAFETY: `self` proves that the processor has the instruction.
                unsafe { $max($splat(0.0), a) }
            }

            #[inline(always)]
            fn where_positive(self, $gate: Self::Vector, $a: Self::Vector) -> Self::Vector {
                // SAFETY: `self` proves that the processor has the instructions.
                unsafe { $mask }
            }

            #[inline(always)]
            fn select_larger(
                self,
                $l: Self::Vector,
                $r: Self::Vector,
                $x: Self::Vector,
                $y: Self::Vector,
            ) -> Self::Vector {
                // SAFETY: `self` proves that the processor has the instructions.
                unsafe { $larger }
            }

            #[inline(always)]
            unsafe fn load_ptr(self, from: *const f32) -> Self::Vector {
                // SAFETY: as above, and the caller vouches for `LANES` readable floats.
                unsafe { $load(from) }
            }

            #[inline(always)]
            unsafe fn store_ptr(self, to: *mut f32, value: Self::Vector) {
                // SAFETY: as above, and the caller vouches for `LANES` writable floats.
                unsafe { $store(to, value) }
            }
        }
    };
}

vectors!(
    Avx2,
    __m256,
    8,
    _mm256_set1_ps,
    _mm256_add_ps,
    _mm256_sub_ps,
    _mm256_mul_ps,
    _mm256_fmadd_ps,
    _mm256_max_ps,
    _mm256_loadu_ps,
    _mm256_storeu_ps,
    |gate, a| _mm256_and_ps(_mm256_cmp_ps::<_CMP_GT_OQ>(gate, _mm256_setzero_ps()), a),
    |a, b, x, y| {
        let (larger, nan) =
            (_mm256_cmp_ps::<_CMP_GT_OQ>(a, b), _mm256_cmp_ps::<_CMP_UNORD_Q>(a, a));
        _mm256_blendv_ps(y, x, _mm256_or_ps(larger, nan))
    }
);

vectors!(
    Avx512,
    __m512,
    16,
    _mm512_set1_ps,
    _mm512_add_ps,
    _mm512_sub_ps,
    _mm512_mul_ps,
    _mm512_fmadd_ps,
    _mm512_max_ps,
    _mm512_loadu_ps,
    _mm512_storeu_ps,
    |gate, a| _mm512_maskz_mov_ps(_mm512_cmp_ps_mask::<_CMP_GT_OQ>(gate, _mm512_setzero_ps()), a),
    |a, b, x, y| {
        let (larger, nan) =
            (_mm512_cmp_ps_mask::<_CMP_GT_OQ>(a, b), _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(a, a));
        _mm512_mask_blend_ps(larger | nan, y, x)
    }
);
