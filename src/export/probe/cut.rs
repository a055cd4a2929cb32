//! Where scores fall into two heaps, as [`crate::stats::cut()`] finds it.

use super::super::graph::{Attribute, DOUBLE, FLOAT, Graph, INT, Value};
use crate::{
    method::probe::UNDECIDED,
    stats::{BINS, CutRule, LEAST_SHARE, MOST_EVEN},
};

/// The cut of scores `[1, 1, h, w]`, a single number; 0 if they are all equal.
pub(super) fn cut(graph: &mut Graph, scores: &Value, rule: CutRule) -> Value {
    let scores = graph.cast(scores, DOUBLE);
    let scores = graph.reshape(&scores, &[-1]);
    let low = graph.reduce("ReduceMin", &scores, &[0]);
    let high = graph.reduce("ReduceMax", &scores, &[0]);
    let (zero, one) = (graph.double(0.0), graph.double(1.0));
    let bins = graph.double(BINS as f64);
    let range = graph.sub(&high, &low);
    let width = graph.div(&range, &bins);
    let varies = graph.op("Greater", &[&width, &zero], &[]);
    let width = graph.op("Where", &[&varies, &width, &one], &[]);
    let histogram = histogram(graph, &scores, &low, &width);

    // Sums over the bins below each cut, and over all.
    let places = graph.doubles(&[BINS], &(0..BINS).map(|bin| bin as f64).collect::<Vec<_>>());
    let moments = graph.mul(&histogram, &places);
    let squares = graph.mul(&moments, &places);
    let all =
        [&histogram, &moments, &squares].map(|values| graph.reduce("ReduceSum", values, &[0]));
    let below = [&histogram, &moments, &squares].map(|values| sums(graph, values));
    let above = std::array::from_fn(|sum| graph.sub(&all[sum], &below[sum]));
    let [total, ..] = &all;

    let least = graph.double(if rule.beta > 0.0 { LEAST_SHARE } else { 0.0 });
    let least = graph.mul(total, &least);
    // At least one value, and at least the smallest share: counts are whole numbers.
    let least = graph.op("Max", &[&least, &one], &[]);
    let sides = [below, above].map(|sums| Side::of(graph, &sums, total, &least));
    let [lower, upper] = &sides;
    let possible = graph.op("And", &[&lower.large, &upper.large], &[]);
    let scatter = graph.add(&lower.scatter, &upper.scatter);
    let within = graph.div(&scatter, total);
    let smallest = graph.double(1e-9);
    let within = graph.op("Max", &[&within, &smallest], &[]);
    let found = cost(graph, &sides, &within, rule);
    let never = graph.double(f64::INFINITY);
    let found = graph.op("Where", &[&possible, &found, &never], &[]);

    let best = graph.op("ArgMin", &[&found], &[("axis", Attribute::Int(0))]);
    let best = graph.cast(&best, DOUBLE);
    // The first cut is above the first bin.
    let best = graph.add(&best, &one);
    let above_low = graph.mul(&best, &width);
    let cut = graph.add(&low, &above_low);
    let (lowest, highest) = (graph.double((-UNDECIDED).into()), graph.double(UNDECIDED.into()));
    let cut = graph.clip(&cut, &lowest, &highest);
    let least = graph.reduce("ReduceMin", &found, &[0]);
    let exists = graph.op("Less", &[&least, &never], &[]);
    let exists = graph.op("And", &[&exists, &varies], &[]);
    let cut = graph.op("Where", &[&exists, &cut, &zero], &[]);
    let cut = graph.cast(&cut, FLOAT);
    graph.reshape(&cut, &[])
}

/// What lies on one side of each cut.
struct Side {
    /// Whether it has enough scores.
    large: Value,
    /// P
    share: Value,
    /// P ln P
    entropy: Value,
    /// Squared distances from the mean of the side, in bins, summed.
    scatter: Value,
    /// σ²
    variance: Value,
}

impl Side {
    /// From the number of scores, the sum of their bins, and that of the squares of these.
    fn of(
        graph: &mut Graph,
        [count, sum, squares]: &[Value; 3],
        total: &Value,
        least: &Value,
    ) -> Self {
        let large = graph.op("GreaterOrEqual", &[count, least], &[]);
        let one = graph.double(1.0);
        let count = graph.op("Max", &[count, &one], &[]);
        let square = graph.mul(sum, sum);
        let explained = graph.div(&square, &count);
        let scatter = graph.sub(squares, &explained);
        let variance = graph.div(&scatter, &count);
        let share = graph.div(&count, total);
        let logarithm = graph.op("Log", &[&share], &[]);
        let entropy = graph.mul(&share, &logarithm);
        Self { large, share, entropy, scatter, variance }
    }
}

/// J of each cut.
fn cost(graph: &mut Graph, sides: &[Side; 2], within: &Value, rule: CutRule) -> Value {
    let CutRule { beta, alpha } = rule;
    let logarithm = graph.op("Log", &[within], &[]);
    let weight = graph.double(0.5 * (1.0 - alpha));
    let mut cost = graph.mul(&logarithm, &weight);
    let flattest = graph.double(1.0 / MOST_EVEN);
    let least = graph.mul(within, &flattest);
    for Side { share, entropy, variance, .. } in sides {
        let variance = graph.op("Max", &[variance, &least], &[]);
        let logarithm = graph.op("Log", &[&variance], &[]);
        let own = graph.mul(share, &logarithm);
        let weight = graph.double(0.5 * alpha);
        let own = graph.mul(&own, &weight);
        cost = graph.add(&cost, &own);
        let weight = graph.double(beta);
        let size = graph.mul(entropy, &weight);
        cost = graph.sub(&cost, &size);
    }
    cost
}

/// How many scores are in each bin.
fn histogram(graph: &mut Graph, scores: &Value, low: &Value, width: &Value) -> Value {
    let above = graph.sub(scores, low);
    let bin = graph.div(&above, width);
    let bin = graph.cast(&bin, INT);
    let last = graph.ints(&[BINS as i64 - 1]);
    let bin = graph.op("Min", &[&bin, &last], &[]);
    let shape = graph.op("Shape", &[scores], &[]);
    let one = graph.double(1.0);
    let ones = graph.op("Expand", &[&one, &shape], &[]);
    let none = graph.doubles(&[BINS], &[0.0; BINS]);
    let sum = [("axis", Attribute::Int(0)), ("reduction", Attribute::Text("add"))];
    graph.op("ScatterElements", &[&none, &bin, &ones], &sum)
}

/// The sum up to each bin, but the last.
fn sums(graph: &mut Graph, values: &Value) -> Value {
    let axis = graph.ints(&[0]);
    let axis = graph.reshape(&axis, &[]);
    let sums = graph.op("CumSum", &[values, &axis], &[]);
    let (start, end) = (graph.ints(&[0]), graph.ints(&[BINS as i64 - 1]));
    graph.slice(&sums, &start, &end, &[0])
}
