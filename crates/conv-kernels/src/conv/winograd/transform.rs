//! The one-dimensional transforms, each applied to the rows and then the columns of a tile.
//!
//! The points are 0, ±a, ±b, ∞ with a² = ½, b² = 2; both points of a pair share even and odd parts.

use super::{OUT, POINTS, SIDE};
use crate::simd::Simd;

const A: f32 = std::f32::consts::FRAC_1_SQRT_2;
const B: f32 = std::f32::consts::SQRT_2;
const A2: f32 = 0.5;
const B2: f32 = 2.0;

/// `factor · a + b`.
#[inline(always)]
fn times<S: Simd>(simd: S, factor: f32, a: S::Vector, b: S::Vector) -> S::Vector {
    simd.mul_add(simd.splat(factor), a, b)
}

/// `Bᵀ x`: six inputs at six points.
#[inline(always)]
fn input_line<S: Simd>(simd: S, x: [S::Vector; SIDE]) -> [S::Vector; SIDE] {
    let (even_a, odd_a) = (times(simd, -B2, x[2], x[4]), times(simd, -B2, x[1], x[3]));
    let (even_b, odd_b) = (times(simd, -A2, x[2], x[4]), times(simd, -A2, x[1], x[3]));
    [
        times(simd, -(A2 + B2), x[2], simd.add(x[0], x[4])),
        times(simd, A, odd_a, even_a),
        times(simd, -A, odd_a, even_a),
        times(simd, B, odd_b, even_b),
        times(simd, -B, odd_b, even_b),
        times(simd, -(A2 + B2), x[3], simd.add(x[1], x[5])),
    ]
}

/// `Aᵀ m`: four results from six points.
#[inline(always)]
fn output_line<S: Simd>(simd: S, m: [S::Vector; SIDE]) -> [S::Vector; OUT] {
    let (even_a, odd_a) = (simd.add(m[1], m[2]), simd.sub(m[1], m[2]));
    let (even_b, odd_b) = (simd.add(m[3], m[4]), simd.sub(m[3], m[4]));
    [
        simd.add(m[0], simd.add(even_a, even_b)),
        times(simd, A, odd_a, simd.mul(simd.splat(B), odd_b)),
        times(simd, A2, even_a, simd.mul(simd.splat(B2), even_b)),
        times(simd, A * A2, odd_a, times(simd, B * B2, odd_b, m[5])),
    ]
}

/// `A y`, the transpose of [`output_line`].
#[inline(always)]
fn gradient_line<S: Simd>(simd: S, y: [S::Vector; OUT]) -> [S::Vector; SIDE] {
    let (even_a, odd_a) = (times(simd, A2, y[2], y[0]), times(simd, A2, y[3], y[1]));
    let (even_b, odd_b) = (times(simd, B2, y[2], y[0]), times(simd, B2, y[3], y[1]));
    [
        y[0],
        times(simd, A, odd_a, even_a),
        times(simd, -A, odd_a, even_a),
        times(simd, B, odd_b, even_b),
        times(simd, -B, odd_b, even_b),
        y[3],
    ]
}

/// A tile of 6×6 inputs at its 36 points.
#[inline(always)]
pub(super) fn input<S: Simd>(simd: S, tile: &mut [S::Vector; POINTS]) {
    for i in 0..SIDE {
        let mut line = [simd.zero(); SIDE];
        line.copy_from_slice(&tile[i * SIDE..(i + 1) * SIDE]);
        tile[i * SIDE..(i + 1) * SIDE].copy_from_slice(&input_line(simd, line));
    }
    for j in 0..SIDE {
        let mut line = [simd.zero(); SIDE];
        for i in 0..SIDE {
            line[i] = tile[i * SIDE + j];
        }
        let line = input_line(simd, line);
        for i in 0..SIDE {
            tile[i * SIDE + j] = line[i];
        }
    }
}

/// 4×4 results from the sums at 36 points.
#[inline(always)]
pub(super) fn output<S: Simd>(simd: S, points: &[S::Vector; POINTS]) -> [[S::Vector; OUT]; OUT] {
    let mut rows = [[simd.zero(); OUT]; SIDE];
    for i in 0..SIDE {
        let mut line = [simd.zero(); SIDE];
        line.copy_from_slice(&points[i * SIDE..(i + 1) * SIDE]);
        rows[i] = output_line(simd, line);
    }
    let mut results = [[simd.zero(); OUT]; OUT];
    for j in 0..OUT {
        let mut line = [simd.zero(); SIDE];
        for i in 0..SIDE {
            line[i] = rows[i][j];
        }
        let line = output_line(simd, line);
        for i in 0..OUT {
            results[i][j] = line[i];
        }
    }
    results
}

/// The gradient of 4×4 results at 36 points.
#[inline(always)]
pub(super) fn gradient<S: Simd>(simd: S, grad: &[[S::Vector; OUT]; OUT]) -> [S::Vector; POINTS] {
    let mut rows = [[simd.zero(); SIDE]; OUT];
    for i in 0..OUT {
        rows[i] = gradient_line(simd, grad[i]);
    }
    let mut points = [simd.zero(); POINTS];
    for j in 0..SIDE {
        let mut line = [simd.zero(); OUT];
        for i in 0..OUT {
            line[i] = rows[i][j];
        }
        let line = gradient_line(simd, line);
        for i in 0..SIDE {
            points[i * SIDE + j] = line[i];
        }
    }
    points
}

/// A 3×3 kernel, by rows, at its 36 points: `G g Gᵀ`.
#[inline(always)]
pub(super) fn kernel<S: Simd>(simd: S, taps: &[S::Vector; 9]) -> [S::Vector; POINTS] {
    let mut points = [simd.zero(); POINTS];
    for i in 0..SIDE {
        let mut row = [simd.zero(); 3];
        for x in 0..3 {
            row[x] = combine(simd, KERNEL[i], [taps[x], taps[3 + x], taps[6 + x]]);
        }
        for j in 0..SIDE {
            points[i * SIDE + j] = combine(simd, KERNEL[j], row);
        }
    }
    points
}

#[inline(always)]
fn combine<S: Simd>(simd: S, factors: [f32; 3], values: [S::Vector; 3]) -> S::Vector {
    let last = simd.mul(simd.splat(factors[2]), values[2]);
    times(simd, factors[0], values[0], times(simd, factors[1], values[1], last))
}

/// The gradient of a kernel from that of its points, `Gᵀ p G`: the transpose of [`kernel`].
#[inline(always)]
pub(super) fn kernel_gradient<S: Simd>(simd: S, points: &[S::Vector; POINTS]) -> [S::Vector; 9] {
    let mut rows = [[simd.zero(); 3]; SIDE];
    for i in 0..SIDE {
        for x in 0..3 {
            for j in 0..SIDE {
                rows[i][x] = times(simd, KERNEL[j][x], points[i * SIDE + j], rows[i][x]);
            }
        }
    }
    let mut taps = [simd.zero(); 9];
    for tap in 0..9 {
        for i in 0..SIDE {
            taps[tap] = times(simd, KERNEL[i][tap / 3], rows[i][tap % 3], taps[tap]);
        }
    }
    taps
}

/// `G`: a kernel of three taps at six points.
const KERNEL: [[f32; 3]; SIDE] = {
    /// 2a²(a² − b²)
    const N_A: f32 = 2.0 * A2 * (A2 - B2);
    /// 2b²(b² − a²)
    const N_B: f32 = 2.0 * B2 * (B2 - A2);
    [
        [1.0, 0.0, 0.0],
        [1.0 / N_A, A / N_A, A2 / N_A],
        [1.0 / N_A, -A / N_A, A2 / N_A],
        [1.0 / N_B, B / N_B, B2 / N_B],
        [1.0 / N_B, -B / N_B, B2 / N_B],
        [0.0, 0.0, 1.0],
    ]
};
