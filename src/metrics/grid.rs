//! Evenly spaced thresholds, and the highest one that a score reaches.

/// The threshold `k / steps`, as it is compared with scores.
pub(super) fn threshold(k: usize, steps: u16) -> f32 {
    (k as f64 / f64::from(steps)) as f32
}

/// The largest `k` with `score >= threshold(k, steps)`, for a score in `[0, 1]`.
///
/// Agrees with the comparison to the last bit, so that a score counted on the
/// grid is the score of the mask cut at that threshold.
pub(super) fn cell(score: f32, steps: u16) -> usize {
    // The product of 24 and 16 bits is exact in 53. A threshold may have been
    // rounded down past it, never up: rounded up it is the next number there is.
    let below = (f64::from(score) * f64::from(steps)) as usize;
    below + usize::from(score >= threshold(below + 1, steps))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_agrees_with_the_comparison_on_both_sides_of_every_threshold() {
        for steps in [100, 1000] {
            for k in 1..=usize::from(steps) {
                let edge = threshold(k, steps);
                assert_eq!(cell(edge, steps), k);
                assert_eq!(cell(edge.next_down(), steps), k - 1);
            }
            assert_eq!(cell(0.0, steps), 0);
        }
    }
}
