//! Where a histogram falls into two heaps.
//!
//! A cut leaves a share P of the values above it, and a variance σ_w² within the two sides. It is
//! the one with the least
//!
//! ```text
//! J_β = ½ ln σ_w² + β H(P),   H(P) = −P ln P − (1 − P) ln(1 − P)
//! ```
//!
//! β = 0 is Otsu's cut (*A threshold selection method from gray-level histograms*, 1979), which
//! prefers sides of equal size; β = 1 is the most likely one for two Gaussians of one spread
//! (Kurita, Otsu and Abdelmalek, *Maximum likelihood thresholding*, 1992), which finds a small
//! heap beside a large one, but also where there is none.

/// Equal parts of the range of values.
pub(crate) const BINS: usize = 256;
/// Smallest share of the values that counts as a heap, where small ones are favoured.
pub(crate) const LEAST_SHARE: f64 = 0.005;

/// Otsu's cut; none if all values are equal, which have no two sides.
pub fn otsu(values: &[f32]) -> Option<f32> {
    cut(values, 0.0)
}

/// The cut with the least `J_β`, an edge of 256 equal bins between the lowest and the highest
/// value; none if all values are equal, or none is apart from
/// the others.
pub fn cut(values: &[f32], beta: f64) -> Option<f32> {
    let (low, high) = values
        .iter()
        .fold((f32::INFINITY, f32::NEG_INFINITY), |(low, high), &s| (low.min(s), high.max(s)));
    let width = (f64::from(high) - f64::from(low)) / BINS as f64;
    // None either where there is no value, or one that is no finite number.
    if !width.is_finite() || width <= 0.0 {
        return None;
    }
    let mut histogram = [0_u64; BINS];
    for &value in values {
        let bin = (f64::from(value) - f64::from(low)) / width;
        histogram[(bin as usize).min(BINS - 1)] += 1;
    }
    let cut = best_cut(&histogram, beta)?;
    Some((f64::from(low) + cut as f64 * width) as f32)
}

/// The first bin of the upper side, of equals the lowest; none if no side is large enough.
fn best_cut(histogram: &[u64], beta: f64) -> Option<usize> {
    let total: u64 = histogram.iter().sum();
    let sum = |power: u32| -> u64 {
        histogram.iter().zip(0_u64..).map(|(&count, bin)| count * bin.pow(power)).sum()
    };
    let (moment, squares) = (sum(1), sum(2) as f64);
    let least = if beta > 0.0 { LEAST_SHARE * total as f64 } else { 0.0 };
    let (mut below, mut moment_below) = (0, 0);
    let mut best: Option<(usize, f64)> = None;
    for cut in 1..histogram.len() {
        below += histogram[cut - 1];
        moment_below += histogram[cut - 1] * (cut as u64 - 1);
        let sides = [(below, moment_below), (total - below, moment - moment_below)];
        if sides.iter().any(|&(count, _)| count == 0 || (count as f64) < least) {
            continue;
        }
        // What the means of the sides explain of the squares is not spread within them.
        let explained: f64 = sides.iter().map(|&(n, m)| (m as f64).powi(2) / n as f64).sum();
        let within = ((squares - explained) / total as f64).max(1e-9);
        let shares = sides.map(|(count, _)| count as f64 / total as f64);
        let entropy: f64 = shares.iter().map(|share| -share * share.ln()).sum();
        let found = 0.5 * within.ln() + beta * entropy;
        if best.is_none_or(|(_, least)| found < least) {
            best = Some((cut, found));
        }
    }
    best.map(|(cut, _)| cut)
}

/// How far the values lean: positive where a few are far above the many.
///
/// The third moment over the third power of the spread; 0 if all values are equal.
pub fn skewness(values: &[f32]) -> f64 {
    let count = values.len().max(1) as f64;
    let mean = values.iter().map(|&value| f64::from(value)).sum::<f64>() / count;
    let moment = |power: i32| {
        values.iter().map(|&value| (f64::from(value) - mean).powi(power)).sum::<f64>() / count
    };
    let variance = moment(2);
    if variance > 0.0 { moment(3) / variance.powf(1.5) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Purpose, Stream};

    #[test]
    fn the_cut_lies_between_two_heaps_wherever_they_are() {
        for (shift, beta) in [(0.0, 0.0), (-3.0, 0.0), (100.0, 1.0)] {
            let values = [0.10, 0.12, 0.11, 0.80, 0.82].map(|value: f32| value + shift);
            let cut = cut(&values, beta).unwrap() - shift;
            assert!(cut > 0.12 && cut <= 0.80, "{cut}");
        }
    }

    #[test]
    fn what_does_not_vary_has_no_cut() {
        assert_eq!(otsu(&[0.3; 4]), None);
        assert_eq!(otsu(&[]), None);
        assert_eq!(otsu(&[f32::NAN, f32::NAN]), None);
        assert_eq!(otsu(&[0.0, f32::INFINITY]), None);
    }

    #[test]
    fn a_small_heap_beside_a_broad_one_is_found_by_likelihood_and_halved_by_otsu() {
        let mut stream = Stream::new(1, Purpose::Synthetic, 0, 0);
        let values: Vec<f32> = (0..4000)
            .map(|i| (stream.normal() + if i % 25 == 0 { 5.0 } else { 0.0 }) as f32)
            .collect();
        let share = |cut: f32| values.iter().filter(|&&value| value >= cut).count() as f64 / 4000.0;
        let (otsu, likely) = (share(otsu(&values).unwrap()), share(cut(&values, 1.0).unwrap()));
        assert!(otsu > 0.1 && (0.03..0.06).contains(&likely), "{otsu} {likely}");
    }

    #[test]
    fn a_few_values_apart_are_no_heap_where_small_ones_are_favoured() {
        let values: Vec<f32> = (0..1000).map(|i| f32::from(u8::from(i == 0))).collect();
        assert_eq!(cut(&values, 1.0), None);
        assert!(otsu(&values).is_some());
    }

    #[test]
    fn four_bins_are_weighed_by_hand() {
        let mut histogram = vec![0; BINS];
        (histogram[0], histogram[10], histogram[20], histogram[30]) = (6, 2, 1, 1);
        // Ten times the variance within, for each of the three cuts:
        // sides {0}, {10 10 20 30}: 275; {0 10}, {20 30}: 150 + 50 = 200; {0 10 20}, {30}: 422.2.
        assert_eq!(best_cut(&histogram, 0.0), Some(11));
    }

    #[test]
    fn skewness_is_that_of_the_definition() {
        // Mean 1, so −1, −1 and 2: variance 2, third moment 2.
        assert!((skewness(&[0.0, 0.0, 3.0]) - 2.0 / 2_f64.powf(1.5)).abs() < 1e-6);
        assert_eq!(skewness(&[1.0, 2.0, 3.0]), 0.0);
        assert_eq!(skewness(&[5.0; 3]), 0.0);
    }
}
