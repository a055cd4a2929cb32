//! Operations on short vectors, in an order that does not depend on the machine.

use half::f16;

/// Sums that a product is split into, so that the compiler can compute them side by side.
const LANES: usize = 16;

/// The inner product of two vectors of one length.
#[inline]
pub(super) fn dot(a: &[f32], b: &[f32]) -> f32 {
    debug_assert_eq!(a.len(), b.len());
    let (a, a_rest) = a.as_chunks::<LANES>();
    let (b, b_rest) = b.as_chunks::<LANES>();
    let mut sums = [0.0_f32; LANES];
    for (a, b) in a.iter().zip(b) {
        for lane in 0..LANES {
            sums[lane] += a[lane] * b[lane];
        }
    }
    let rest: f32 = a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum();
    sums.iter().sum::<f32>() + rest
}

/// Adds `scale · a` to `sum`.
#[inline]
pub(super) fn add_scaled(sum: &mut [f32], scale: f32, a: &[f32]) {
    debug_assert_eq!(sum.len(), a.len());
    for (sum, a) in sum.iter_mut().zip(a) {
        *sum += scale * a;
    }
}

/// `1 / (1 + e^−x)`
#[inline]
pub(super) fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + (-x).exp())
}

/// Turns scores into probabilities, in place.
pub(super) fn softmax(scores: &mut [f32]) {
    let highest = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let mut sum = 0.0;
    for score in scores.iter_mut() {
        *score = (*score - highest).exp();
        sum += *score;
    }
    scores.iter_mut().for_each(|score| *score /= sum);
}

/// Converts half precision to single precision, which holds every such number exactly.
///
/// By integer operations, so that the compiler vectorizes it: the processor's own instruction is
/// called for eight numbers at a time, which costs more than it saves.
#[inline]
pub(super) fn widen(from: &[f16], to: &mut [f32]) {
    debug_assert_eq!(from.len(), to.len());
    // The exponents of both formats begin at −15 and at −127.
    const REBASE: f32 = f32::from_bits((127 + 127 - 15) << 23);
    const NOT_FINITE: u32 = 0x7c00;
    for (to, from) in to.iter_mut().zip(from) {
        let bits = u32::from(from.to_bits());
        let (sign, magnitude) = ((bits & 0x8000) << 16, (bits & 0x7fff) << 13);
        let finite = (f32::from_bits(magnitude) * REBASE).to_bits();
        let value = if bits & NOT_FINITE == NOT_FINITE { magnitude | 0xff << 23 } else { finite };
        *to = f32::from_bits(sign | value);
    }
}

/// The same in a new vector.
pub(super) fn widened(from: &[f16]) -> Vec<f32> {
    let mut to = vec![0.0; from.len()];
    widen(from, &mut to);
    to
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_product_counts_every_element_once() {
        for length in [0, 1, 15, 16, 17, 64, 70] {
            let a: Vec<f32> = (0..length).map(|i| i as f32).collect();
            let expected: f32 = (0..length).map(|i| 2.0 * i as f32).sum();
            assert_eq!(dot(&a, &vec![2.0; length]), expected);
        }
    }

    #[test]
    fn probabilities_add_up_to_one_even_for_large_scores() {
        let mut scores = [1000.0, 1000.0 + 2.0_f32.ln()];
        softmax(&mut scores);
        assert!((scores[0] - 1.0 / 3.0).abs() < 1e-4 && (scores[1] - 2.0 / 3.0).abs() < 1e-4);
    }

    #[test]
    fn every_half_precision_number_is_widened_exactly() {
        let halves: Vec<f16> = (0..=u16::MAX).map(f16::from_bits).collect();
        for (wide, half) in widened(&halves).into_iter().zip(halves) {
            // NaNs need not have the same bits.
            let same = wide.to_bits() == half.to_f32().to_bits();
            assert!(same || (wide.is_nan() && half.is_nan()), "{half:?} {wide}");
        }
    }
}
