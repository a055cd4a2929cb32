//! The threshold that splits scores in two, as [`crate::stats::cut()`] finds it.

use super::super::graph::{Attribute, Kind, Value};
use crate::{
    method::probe::MAX_CUT,
    stats::{BINS, CutRule, LEAST_SHARE, MOST_EVEN},
};

/// The cut of scores `[1, 1, h, w]`, a single number; 0 if they are all equal.
pub(super) fn cut(scores: Value<'_>, rule: CutRule) -> Value<'_> {
    let scores = scores.cast(Kind::Double).reshape(&[-1]);
    let low = scores.reduce("ReduceMin", &[0]);
    let width = (scores.reduce("ReduceMax", &[0]) - low) / BINS as f64;
    let varies = width.greater(0.0);
    let width = width.kept(varies, 1.0);
    let histogram = histogram(scores, low, width);

    // Sums over the bins below each cut, and over all.
    let places: Vec<f64> = (0..BINS).map(|bin| bin as f64).collect();
    let places = scores.graph().constant(&[BINS], &places);
    let moments = histogram * places;
    let values = [histogram, moments, moments * places];
    let all = values.map(|values| values.reduce("ReduceSum", &[0]));
    let below = values.map(sums);
    let above = std::array::from_fn(|sum| all[sum] - below[sum]);
    let [total, ..] = all;

    // At least one value, and at least the smallest share: counts are whole numbers.
    let least = (total * if rule.beta > 0.0 { LEAST_SHARE } else { 0.0 }).max(1.0);
    let sides = [below, above].map(|sums| Side::of(sums, total, least));
    let [lower, upper] = &sides;
    let possible = lower.large.and(upper.large);
    let within = ((lower.scatter + upper.scatter) / total).max(1e-9);
    let found = cost(&sides, within, rule).kept(possible, f64::INFINITY);

    let best = found.op("ArgMin", &[], &[("axis", Attribute::Int(0))]).cast(Kind::Double);
    // The first cut is above the first bin.
    let cut = (low + (best + 1.0) * width).clip(-MAX_CUT, MAX_CUT);
    let exists = found.reduce("ReduceMin", &[0]).less(f64::INFINITY).and(varies);
    cut.kept(exists, 0.0).cast(Kind::Float).reshape(&[])
}

/// What lies on one side of each cut.
struct Side<'g> {
    /// Whether it has enough scores.
    large: Value<'g>,
    /// P
    share: Value<'g>,
    /// P ln P
    entropy: Value<'g>,
    /// Squared distances from the mean of the side, in bins, summed.
    scatter: Value<'g>,
    /// σ²
    variance: Value<'g>,
}

impl<'g> Side<'g> {
    /// From the number of scores, the sum of their bins, and that of the squares of these.
    fn of([count, sum, squares]: [Value<'g>; 3], total: Value<'g>, least: Value<'g>) -> Self {
        let large = count.not_below(least);
        let count = count.max(1.0);
        let scatter = squares - sum * sum / count;
        let share = count / total;
        let entropy = share * share.log();
        Self { large, share, entropy, scatter, variance: scatter / count }
    }
}

/// J of each cut.
fn cost<'g>(sides: &[Side<'g>; 2], within: Value<'g>, rule: CutRule) -> Value<'g> {
    let CutRule { beta, alpha } = rule;
    let least = within * (1.0 / MOST_EVEN);
    let cost = within.log() * (0.5 * (1.0 - alpha));
    sides.iter().fold(cost, |cost, &Side { share, entropy, variance, .. }| {
        cost + share * variance.max(least).log() * (0.5 * alpha) - entropy * beta
    })
}

/// How many scores are in each bin.
fn histogram<'g>(scores: Value<'g>, low: Value<'g>, width: Value<'g>) -> Value<'g> {
    let graph = scores.graph();
    let bin = ((scores - low) / width).cast(Kind::Int).min(BINS as i64 - 1);
    let ones = graph.constant(&[], &[1.0]).op("Expand", &[scores.shape()], &[]);
    let none = graph.constant(&[BINS], &[0.0; BINS]);
    let sum = [("axis", Attribute::Int(0)), ("reduction", Attribute::Text("add"))];
    none.op("ScatterElements", &[bin, ones], &sum)
}

/// The sum up to each bin, but the last.
fn sums(values: Value<'_>) -> Value<'_> {
    let graph = values.graph();
    let sums = values.op("CumSum", &[graph.constant(&[], &[0_i64])], &[]);
    sums.slice(graph.line(&[0]), graph.line(&[BINS as i64 - 1]), &[0])
}
