//! Where scores fall into two heaps, as [`crate::stats::cut()`] finds it.

use super::super::graph::{Attribute, DOUBLE, FLOAT, Graph, INT, Value};
use crate::{
    method::probe::UNDECIDED,
    stats::{BINS, LEAST_SHARE},
};

/// The cut of scores `[1, 1, h, w]`, a single number; 0 if they are all equal.
pub(super) fn cut(graph: &mut Graph, scores: &Value, beta: f64) -> Value {
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
    let total = graph.reduce("ReduceSum", &histogram, &[0]);
    let moment = graph.reduce("ReduceSum", &moments, &[0]);
    let squares = graph.reduce("ReduceSum", &squares, &[0]);
    let below = sums(graph, &histogram);
    let moment_below = sums(graph, &moments);
    let above = graph.sub(&total, &below);
    let moment_above = graph.sub(&moment, &moment_below);

    let least = graph.double(if beta > 0.0 { LEAST_SHARE } else { 0.0 });
    let least = graph.mul(&total, &least);
    // At least one value, and at least the smallest share: counts are whole numbers.
    let least = graph.op("Max", &[&least, &one], &[]);
    let mut within = squares;
    let mut entropy = zero.clone();
    let mut possible: Option<Value> = None;
    for (count, moment) in [(&below, &moment_below), (&above, &moment_above)] {
        let large = graph.op("GreaterOrEqual", &[count, &least], &[]);
        possible = Some(match possible {
            Some(other) => graph.op("And", &[&other, &large], &[]),
            None => large,
        });
        let count = graph.op("Max", &[count, &one], &[]);
        let square = graph.mul(moment, moment);
        let explained = graph.div(&square, &count);
        within = graph.sub(&within, &explained);
        let share = graph.div(&count, &total);
        let logarithm = graph.op("Log", &[&share], &[]);
        let term = graph.mul(&share, &logarithm);
        entropy = graph.sub(&entropy, &term);
    }
    let possible = possible.expect("there are two sides");
    let within = graph.div(&within, &total);
    let smallest = graph.double(1e-9);
    let within = graph.op("Max", &[&within, &smallest], &[]);
    let logarithm = graph.op("Log", &[&within], &[]);
    let half = graph.double(0.5);
    let spread = graph.mul(&logarithm, &half);
    let beta = graph.double(beta);
    let size = graph.mul(&entropy, &beta);
    let found = graph.add(&spread, &size);
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
