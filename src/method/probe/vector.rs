//! Products of short vectors, in an order that does not depend on the machine.

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
}
