//! The peak speed of the processor, to compare kernels with.

use std::hint::black_box;

use crate::simd::{Isa, Kernel, Simd};

/// Keeps the multiply-add units busy with a register tile, and returns how many floating-point
/// operations that was; divided by the time it took, the peak of one core.
pub fn saturate(isa: Isa, rounds: usize) -> f64 {
    isa.run(Saturate { rounds });
    let tile = isa.tile();
    (2 * rounds * tile.rows * tile.columns) as f64
}

struct Saturate {
    rounds: usize,
}

impl Kernel for Saturate {
    #[inline(always)]
    fn run<S: Simd, const R: usize, const V: usize>(self, simd: S) {
        let mut sums = [[simd.splat(1.0); V]; R];
        let (a, b) = (simd.splat(black_box(0.5)), simd.splat(black_box(0.25)));
        for _ in 0..self.rounds {
            for i in 0..R {
                for j in 0..V {
                    sums[i][j] = simd.mul_add(a, sums[i][j], b);
                }
            }
        }
        black_box(sums);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_counted_for_the_whole_register_tile() {
        for isa in Isa::available() {
            let tile = isa.tile();
            assert_eq!(saturate(isa, 3), (6 * tile.rows * tile.columns) as f64);
        }
    }
}
