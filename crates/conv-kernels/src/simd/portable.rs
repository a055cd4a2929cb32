//! Vectors of four floats in plain Rust; compilers turn them into whatever the target has.

use super::{Kernel, Simd, Tile};

/// Small enough for the sixteen 128-bit registers every x86-64 processor has.
const ROWS: usize = 4;
const VECTORS: usize = 2;
const LANES: usize = 4;
pub(super) const TILE: Tile = Tile { rows: ROWS, columns: VECTORS * LANES };

#[derive(Clone, Copy)]
pub(super) struct Portable;

pub(super) fn run<K: Kernel>(kernel: K) -> K::Output {
    kernel.run::<_, ROWS, VECTORS>(Portable)
}

#[inline(always)]
fn map2(a: [f32; LANES], b: [f32; LANES], f: impl Fn(f32, f32) -> f32) -> [f32; LANES] {
    [f(a[0], b[0]), f(a[1], b[1]), f(a[2], b[2]), f(a[3], b[3])]
}

impl Simd for Portable {
    type Vector = [f32; LANES];
    const LANES: usize = LANES;

    #[inline(always)]
    fn splat(self, value: f32) -> Self::Vector {
        [value; LANES]
    }

    #[inline(always)]
    fn add(self, a: Self::Vector, b: Self::Vector) -> Self::Vector {
        map2(a, b, |a, b| a + b)
    }

    #[inline(always)]
    fn sub(self, a: Self::Vector, b: Self::Vector) -> Self::Vector {
        map2(a, b, |a, b| a - b)
    }

    #[inline(always)]
    fn mul(self, a: Self::Vector, b: Self::Vector) -> Self::Vector {
        map2(a, b, |a, b| a * b)
    }

    #[inline(always)]
    fn mul_add(self, a: Self::Vector, b: Self::Vector, c: Self::Vector) -> Self::Vector {
        self.add(self.mul(a, b), c)
    }

    #[inline(always)]
    fn relu(self, a: Self::Vector) -> Self::Vector {
        a.map(|a| if a < 0.0 { 0.0 } else { a })
    }

    #[inline(always)]
    fn where_positive(self, gate: Self::Vector, a: Self::Vector) -> Self::Vector {
        map2(gate, a, |gate, a| if gate > 0.0 { a } else { 0.0 })
    }

    #[inline(always)]
    fn select_larger(
        self,
        a: Self::Vector,
        b: Self::Vector,
        x: Self::Vector,
        y: Self::Vector,
    ) -> Self::Vector {
        let mut result = y;
        for i in 0..LANES {
            if a[i] > b[i] || a[i].is_nan() {
                result[i] = x[i];
            }
        }
        result
    }

    #[inline(always)]
    unsafe fn load_ptr(self, from: *const f32) -> Self::Vector {
        // SAFETY: the caller vouches for `LANES` readable floats.
        unsafe { from.cast::<Self::Vector>().read_unaligned() }
    }

    #[inline(always)]
    unsafe fn store_ptr(self, to: *mut f32, value: Self::Vector) {
        // SAFETY: the caller vouches for `LANES` writable floats.
        unsafe { to.cast::<Self::Vector>().write_unaligned(value) }
    }
}
