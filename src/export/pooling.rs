//! From class maps to scores, `[1, C, h, w]` → `[1, C]`.

use super::graph::{DOUBLE, FLOAT, Graph, INT, Value};
use crate::{
    config::{Cells, PoolConfig},
    model::wildcat::Pooling,
};

pub(super) fn mean(graph: &mut Graph, maps: &Value) -> Value {
    let pooled = graph.reduce("ReduceMean", maps, &[2, 3]);
    graph.reshape(&pooled, &[1, -1])
}

pub(super) fn max(graph: &mut Graph, maps: &Value) -> Value {
    let pooled = graph.reduce("ReduceMax", maps, &[2, 3]);
    graph.reshape(&pooled, &[1, -1])
}

/// `1/r · ln(1/n Σ exp(r A))`
pub(super) fn log_sum_exp(graph: &mut Graph, maps: &Value, sharpness: f64) -> Value {
    let highest = graph.reduce("ReduceMax", maps, &[2, 3]);
    let sharpness = graph.float(sharpness);
    let below = graph.sub(maps, &highest);
    let scaled = graph.mul(&below, &sharpness);
    let raised = graph.op("Exp", &[&scaled], &[]);
    let mean = graph.reduce("ReduceMean", &raised, &[2, 3]);
    let logarithm = graph.op("Log", &[&mean], &[]);
    let soft = graph.div(&logarithm, &sharpness);
    let pooled = graph.add(&soft, &highest);
    graph.reshape(&pooled, &[1, -1])
}

/// The mean of the highest cells, and of the lowest ones if they count.
pub(super) fn wildcat(graph: &mut Graph, maps: &Value, rule: &Pooling<'_>) -> Value {
    let PoolConfig { top, bottom, bottom_weight, .. } = *rule.config;
    let both = rule.counts_evidence_against && bottom_weight != 0.0;
    let highest = mean_of(graph, maps, top, true);
    if !both {
        return highest;
    }
    let lowest = mean_of(graph, maps, bottom, false);
    let weight = graph.float(bottom_weight);
    let against = graph.mul(&lowest, &weight);
    let sum = graph.add(&highest, &against);
    let half = graph.float(0.5);
    graph.mul(&sum, &half)
}

/// The mean of so many cells, the highest or the lowest.
fn mean_of(graph: &mut Graph, maps: &Value, cells: Cells, highest: bool) -> Value {
    let all = graph.cells(maps);
    let one = graph.ints(&[1]);
    let wanted = match cells {
        Cells::Count(count) => graph.ints(&[count as i64]),
        Cells::Fraction(share) => {
            // In double precision and with halves to even, as pooling counts them.
            let share = graph.doubles(&[1], &[share]);
            let exact = graph.cast(&all, DOUBLE);
            let exact = graph.mul(&exact, &share);
            let rounded = graph.op("Round", &[&exact], &[]);
            graph.cast(&rounded, INT)
        }
    };
    let wanted = graph.op("Max", &[&wanted, &one], &[]);
    let wanted = graph.op("Min", &[&wanted, &all], &[]);
    let flat = graph.flat(maps);
    let found = graph.top(&flat, &wanted, highest);
    let sum = graph.reduce("ReduceSum", &found, &[2]);
    let count = graph.cast(&wanted, FLOAT);
    let mean = graph.div(&sum, &count);
    graph.reshape(&mean, &[1, -1])
}
