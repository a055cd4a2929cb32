//! Vectors of four floats in plain Rust; compilers turn them into whatever the target has.

use super::{Kernel, Simd, Tile};

const LANES: usize = 4;
/// Small enough for the sixteen 128-bit registers every x86-64 processor has.
pub(super) const TILE: Tile = Tile { rows: 4, columns: 2 * LANES };

#[derive(Clone, Copy)]
pub(super) struct Portable;

pub(super) fn run(kernel: impl Kernel) {
    kernel.run::<_, { TILE.rows }, { TILE.columns / LANES }>(Portable)
}

#[inline(always)]
fn map2(a: [f32; LANES], b: [f32; LANES], f: impl Fn(f32, f32) -> f32) -> [f32; LANES] {
    [f(a[0], b[0]), f(a[1], b[1]), f(a[2], b[2]), f(a[3], b[3])]
}

vectors! { Portable, [f32; LANES], LANES;
    splat(value) => [value; LANES];
    load(from) => from.cast::<[f32; LANES]>().read_unaligned();
    store(to, value) => to.cast::<[f32; LANES]>().write_unaligned(value);
    add(a, b) => map2(a, b, |a, b| a + b);
    sub(a, b) => map2(a, b, |a, b| a - b);
    mul(a, b) => map2(a, b, |a, b| a * b);
    mul_add(a, b, c) => map2(map2(a, b, |a, b| a * b), c, |product, c| product + c);
    relu(a) => a.map(|a| if a < 0.0 { 0.0 } else { a });
    where_positive(gate, a) => map2(gate, a, |gate, a| if gate > 0.0 { a } else { 0.0 });
    select_larger(a, b, x, y) => {
        let larger = |i: usize| a[i] > b[i] || a[i].is_nan();
        std::array::from_fn(|i| if larger(i) { x[i] } else { y[i] })
    };
}
