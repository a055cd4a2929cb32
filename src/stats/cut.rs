//! Thresholds that split a histogram into two modes.
//!
//! A cut leaves shares P₀ and P₁ of the values below and above it, whose variances are σ₀² and
//! σ₁². The best cut has the least
//!
//! ```text
//! J = ln σ + β H(P),     H(P) = −P₀ ln P₀ − P₁ ln P₁
//! ln σ = (1 − α) ½ ln σ_w² + α (P₀ ln σ₀ + P₁ ln σ₁),     σ_w² = P₀ σ₀² + P₁ σ₁²
//! ```
//!
//! With β = 0 the sizes of the sides do not matter. With α = 0 both sides have the same variance,
//! and (for β = 0) the cut is Otsu's (*A threshold selection method from gray-level histograms*,
//! 1979), midway between the means of the sides; with α = 1 each side has its own variance, as in
//! Kittler and Illingworth (*Minimum error thresholding*, 1986, without its H), so that a wide mode
//! reaches further than a narrow one. β = 1 with α = 0 is the maximum-likelihood cut of two
//! Gaussians with the same variance (Kurita, Otsu and Abdelmalek, *Maximum likelihood
//! thresholding*, 1992), which finds a small mode beside a large one, but also where there is none.

/// Bins of the histogram, of equal width.
pub(crate) const BINS: usize = 256;
/// Smallest share of the values on a side of the cut, where small sides are favoured (β > 0).
pub(crate) const LEAST_SHARE: f64 = 0.005;
/// Largest ratio of σ_w² to the variance of a side, so that equal values, like a black border, do
/// not make a side of their own.
pub(crate) const MOST_EVEN: f64 = 4.0;

/// What a cut assumes about its two sides.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct CutRule {
    /// β, in [0, 1]: how much small sides are favoured.
    pub(crate) beta: f64,
    /// α, in [0, 1]: from the same variance for both sides (0) to one for each (1).
    pub(crate) alpha: f64,
}

impl CutRule {
    /// The rule of older runs, which lies halfway in α.
    pub(crate) fn halfway(beta: f64) -> Self {
        Self { beta, alpha: 0.5 * (1.0 - beta) }
    }
}

/// Otsu's cut; `None` if all values are equal.
pub fn otsu(values: &[f32]) -> Option<f32> {
    cut(values, CutRule { beta: 0.0, alpha: 0.0 })
}

/// The cut with the least J, which is an edge of one of 256 equal bins between the lowest and the
/// highest value; `None` if all values are equal, or no cut leaves enough values on both sides.
pub(crate) fn cut(values: &[f32], rule: CutRule) -> Option<f32> {
    let (low, high) = values
        .iter()
        .fold((f32::INFINITY, f32::NEG_INFINITY), |(low, high), &s| (low.min(s), high.max(s)));
    let width = (f64::from(high) - f64::from(low)) / BINS as f64;
    // Also `None` if there are no values, or some are not finite.
    if !width.is_finite() || width <= 0.0 {
        return None;
    }
    let mut histogram = [0_u64; BINS];
    for &value in values {
        let bin = (f64::from(value) - f64::from(low)) / width;
        histogram[(bin as usize).min(BINS - 1)] += 1;
    }
    let cut = best_cut(&histogram, rule)?;
    Some((f64::from(low) + cut as f64 * width) as f32)
}

/// The two sides of a cut of a histogram, in bins.
struct SplitHistogram {
    /// P
    shares: [f64; 2],
    /// σ²
    variances: [f64; 2],
    /// σ_w²
    within: f64,
}

impl SplitHistogram {
    /// J
    fn cost(&self, CutRule { beta, alpha }: CutRule) -> f64 {
        let Self { shares, variances, within } = self;
        let logarithms = variances.map(|variance| variance.max(within / MOST_EVEN).ln());
        let own = 0.5 * (shares[0] * logarithms[0] + shares[1] * logarithms[1]);
        let entropy: f64 = shares.iter().map(|share| -share * share.ln()).sum();
        (1.0 - alpha) * 0.5 * within.ln() + alpha * own + beta * entropy
    }
}

/// The first bin above the cut with the least cost, the lowest of equals; `None` if no cut leaves
/// enough values on both sides.
fn best_cut(histogram: &[u64], rule: CutRule) -> Option<usize> {
    // The number of values, their sum, and that of their squares.
    let add = |sums: [u64; 3], (&count, bin): (&u64, u64)| {
        [sums[0] + count, sums[1] + count * bin, sums[2] + count * bin * bin]
    };
    let bins = || histogram.iter().zip(0_u64..);
    let all = bins().fold([0; 3], add);
    let total = all[0] as f64;
    let least = if rule.beta > 0.0 { LEAST_SHARE * total } else { 0.0 };
    let mut below = [0; 3];
    let mut best: Option<(usize, f64)> = None;
    for (cut, bin) in (1..histogram.len()).zip(bins()) {
        below = add(below, bin);
        let sides = [below, std::array::from_fn(|i| all[i] - below[i])];
        if sides.iter().any(|&[count, ..]| count == 0 || (count as f64) < least) {
            continue;
        }
        // The part of the squares that the means of the sides explain; the rest is scatter within
        // them.
        let explained = sides.map(|[count, sum, _]| (sum as f64).powi(2) / count as f64);
        let variance = |side: usize| {
            let [count, _, squares] = sides[side];
            (squares as f64 - explained[side]) / count as f64
        };
        let within = (all[2] as f64 - explained[0] - explained[1]) / total;
        let split = SplitHistogram {
            shares: sides.map(|[count, ..]| count as f64 / total),
            variances: [variance(0), variance(1)],
            within: within.max(1e-9),
        };
        let found = split.cost(rule);
        if best.is_none_or(|(_, least)| found < least) {
            best = Some((cut, found));
        }
    }
    best.map(|(cut, _)| cut)
}

/// The share of the variance that the cut explains: 1 − σ_w²/σ².
///
/// 1 if each side has one value, ¾ if the values are evenly spread and cut in the middle, 2/π if
/// they are one Gaussian; 0 if all lie on one side.
pub(crate) fn explained(values: &[f32], cut: f32) -> f64 {
    // The sum of squared distances from the mean (Welford, 1962).
    let scatter_of = |values: &mut dyn Iterator<Item = &f32>| {
        let (mut count, mut mean, mut scatter) = (0.0, 0.0, 0.0);
        for &value in values {
            count += 1.0;
            let from_mean = f64::from(value) - mean;
            mean += from_mean / count;
            scatter += from_mean * (f64::from(value) - mean);
        }
        scatter
    };
    let all = scatter_of(&mut values.iter());
    let below = scatter_of(&mut values.iter().filter(|&&value| value < cut));
    let above = scatter_of(&mut values.iter().filter(|&&value| value >= cut));
    if all > 0.0 { 1.0 - (below + above) / all } else { 0.0 }
}

/// The skewness of values: the third central moment over σ³, positive where a few are far above the
/// many; 0 if all are equal.
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
            for alpha in [0.0, 0.5, 1.0] {
                let values = [0.10, 0.12, 0.11, 0.80, 0.82].map(|value: f32| value + shift);
                let cut = cut(&values, CutRule { beta, alpha }).unwrap() - shift;
                assert!(cut > 0.12 && cut <= 0.80, "{cut}");
            }
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
        let likely = cut(&values, CutRule { beta: 1.0, alpha: 0.0 }).unwrap();
        let (otsu, likely) = (share(otsu(&values).unwrap()), share(likely));
        assert!(otsu > 0.1 && (0.03..0.06).contains(&likely), "{otsu} {likely}");
    }

    #[test]
    fn a_few_values_apart_are_no_heap_where_small_ones_are_favoured() {
        let values: Vec<f32> = (0..1000).map(|i| f32::from(u8::from(i == 0))).collect();
        assert_eq!(cut(&values, CutRule { beta: 1.0, alpha: 0.0 }), None);
        assert!(otsu(&values).is_some());
    }

    #[test]
    fn the_cut_moves_into_the_gap_from_the_side_of_the_broader_heap() {
        let mut stream = Stream::new(2, Purpose::Synthetic, 0, 0);
        // As many of each: one heap around 0 with spread ½, one around 4 with spread 2.
        let values: Vec<f32> = (0..8000)
            .map(|i| (stream.normal() * [0.5, 2.0][i % 2] + [0.0, 4.0][i % 2]) as f32)
            .collect();
        let [halfway, furthest] =
            [0.5, 1.0].map(|alpha| cut(&values, CutRule { beta: 0.0, alpha }).unwrap());
        let middle = otsu(&values).unwrap();
        // 2 is in the middle of the means; the two densities are equal at 1.10.
        assert!(furthest < halfway && halfway < middle && middle > 2.0, "{furthest} {halfway}");
    }

    #[test]
    fn many_equal_values_are_no_heap_of_their_own() {
        let mut stream = Stream::new(3, Purpose::Synthetic, 0, 0);
        let mut values: Vec<f32> = (0..6000)
            .map(|i| (stream.normal() + if i % 2 == 0 { 6.0 } else { 0.0 }) as f32)
            .collect();
        // A black border beside two heaps.
        values.resize(9000, -2.0);
        let cut = cut(&values, CutRule { beta: 0.0, alpha: 0.5 }).unwrap();
        assert!((2.0..4.0).contains(&cut), "{cut}");
    }

    #[test]
    fn four_bins_are_weighed_by_hand() {
        let mut histogram = vec![0; BINS];
        (histogram[0], histogram[10], histogram[20], histogram[30]) = (6, 2, 1, 1);
        let best = |beta| best_cut(&histogram, CutRule { beta, alpha: 0.0 });
        // Ten times the variance within, for each of the three cuts:
        // sides {0}, {10 10 20 30}: 275; {0 10}, {20 30}: 150 + 50 = 200; {0 10 20}, {30}: 422.2.
        assert_eq!(best(0.0), Some(11));
        // ½ ln σ_w² + H: 1.657 + 0.673; 1.498 + 0.500; 1.871 + 0.325.
        assert_eq!(best(1.0), Some(11));
        // Variances of the sides 0 and 68.75, within 27.5: the first is taken for a quarter of that,
        // and P ln σ of both sides is ½ (0.6 · 1.928 + 0.4 · 4.230) = 1.4245.
        let split = SplitHistogram { shares: [0.6, 0.4], variances: [0.0, 68.75], within: 27.5 };
        let cost = |beta, alpha| split.cost(CutRule { beta, alpha });
        assert!((cost(0.0, 1.0) - 1.4245).abs() < 1e-3);
        assert!((cost(0.0, 0.5) - 0.5 * (1.657 + 1.4245)).abs() < 1e-3);
        assert!((cost(0.5, 0.25) - (0.75 * 1.657 + 0.25 * 1.4245 + 0.5 * 0.673)).abs() < 1e-3);
    }

    #[test]
    fn what_a_cut_explains_is_known_for_simple_heaps() {
        assert_eq!(explained(&[1.0, 1.0, 3.0], 2.0), 1.0);
        assert_eq!(explained(&[1.0, 2.0, 3.0], 5.0), 0.0);
        assert_eq!(explained(&[2.0; 3], 1.0), 0.0);
        assert_eq!(explained(&[], 1.0), 0.0);
        // 0 1 2 3 at 2: of the scatter 5, ½ is left on each side.
        assert!((explained(&[0.0, 1.0, 2.0, 3.0], 2.0) - 0.8).abs() < 1e-12);
        let even: Vec<f32> = (0..1000).map(|i| i as f32).collect();
        assert!((explained(&even, 500.0) - 0.75).abs() < 1e-4);
        let mut stream = Stream::new(4, Purpose::Synthetic, 0, 0);
        let one: Vec<f32> = (0..100_000).map(|_| stream.normal() as f32).collect();
        assert!((explained(&one, 0.0) - 2.0 / std::f64::consts::PI).abs() < 5e-3);
    }

    #[test]
    fn skewness_is_that_of_the_definition() {
        // Mean 1, so −1, −1 and 2: variance 2, third moment 2.
        assert!((skewness(&[0.0, 0.0, 3.0]) - 2.0 / 2_f64.powf(1.5)).abs() < 1e-6);
        assert_eq!(skewness(&[1.0, 2.0, 3.0]), 0.0);
        assert_eq!(skewness(&[5.0; 3]), 0.0);
    }
}
