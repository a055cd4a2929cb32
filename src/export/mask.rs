//! From class maps to a soft mask.

use super::graph::{Attribute, DOUBLE, Graph, INT, Value};
use crate::{
    config::{Alignment, Evidence, MaskConfig},
    model::mask::{EQUAL, MaskEquation},
};

/// What the maps of `classes` classes together say of each place, `[1, C, h, w]` → `[1, 1, h, w]`;
/// `belief` is `[1, C]`.
pub(super) fn evidence(
    graph: &mut Graph,
    belief: &Value,
    maps: &Value,
    kind: Evidence,
    classes: usize,
) -> Value {
    let kind = kind.of(classes);
    if kind == Evidence::Spread {
        let mean = graph.reduce("ReduceMean", maps, &[1]);
        let deviation = graph.sub(maps, &mean);
        let square = graph.mul(&deviation, &deviation);
        let variance = graph.reduce("ReduceMean", &square, &[1]);
        let least = graph.float(EQUAL.into());
        let variance = graph.op("Max", &[&variance, &least], &[]);
        return graph.op("Sqrt", &[&variance], &[]);
    }
    let common = graph.float(kind.common(classes).into());
    let weights = graph.sub(belief, &common);
    let weights = graph.reshape(&weights, &[1, -1, 1, 1]);
    let weighted = graph.mul(maps, &weights);
    graph.reduce("ReduceSum", &weighted, &[1])
}

/// Maps stretched over an image of a height and width.
pub(super) fn place(
    graph: &mut Graph,
    maps: &Value,
    size: &Value,
    rule: &MaskEquation<'_>,
) -> Value {
    match rule.config.alignment {
        Alignment::Corners => graph.resize(maps, size, "align_corners"),
        Alignment::Centres => {
            // One cell every `stride` pixels; what is beyond the image is cut off.
            let enlarged = graph.enlarge(maps, rule.stride);
            let start = graph.ints(&[0, 0]);
            graph.slice(&enlarged, &start, size, &[2, 3])
        }
    }
}

/// The soft mask of evidence, `[1, 1, h, w]` → `[1, 1, H, W]`.
pub(super) fn soft_mask(
    graph: &mut Graph,
    evidence: &Value,
    size: &Value,
    rule: &MaskEquation<'_>,
) -> Value {
    let placed = place(graph, evidence, size, rule);
    let MaskConfig { low_percentile, high_percentile, threshold, steepness, .. } = *rule.config;
    let whole_range = low_percentile == 0.0 && high_percentile == 100.0;
    let (low, high) = if whole_range {
        let axes = [0, 1, 2, 3];
        (graph.reduce("ReduceMin", &placed, &axes), graph.reduce("ReduceMax", &placed, &axes))
    } else {
        let flat = graph.reshape(&placed, &[-1]);
        let all = graph.cells(&placed);
        let sorted = graph.top(&flat, &all, false);
        let rank = |graph: &mut Graph, percent: f64| {
            let exact = graph.cast(&all, DOUBLE);
            let one = graph.double(1.0);
            let last = graph.sub(&exact, &one);
            let share = graph.double(percent / 100.0);
            let place = graph.mul(&last, &share);
            let half = graph.double(0.5);
            let above = graph.add(&place, &half);
            let rank = graph.op("Floor", &[&above], &[]);
            let rank = graph.cast(&rank, INT);
            let found = graph.op("Gather", &[&sorted, &rank], &[("axis", Attribute::Int(0))]);
            graph.reshape(&found, &[1, 1, 1, 1])
        };
        (rank(graph, low_percentile), rank(graph, high_percentile))
    };
    let range = graph.sub(&high, &low);
    let above = graph.sub(&placed, &low);
    let scaled = graph.div(&above, &range);
    let scaled = if whole_range {
        scaled
    } else {
        let (zero, one) = (graph.float(0.0), graph.float(1.0));
        graph.clip(&scaled, &zero, &one)
    };
    let threshold = graph.float(threshold);
    let zero = graph.float(0.0);
    let varies = graph.op("Greater", &[&range, &zero], &[]);
    // A constant map says nothing, so it lands on the threshold.
    let normalized = graph.op("Where", &[&varies, &scaled, &threshold], &[]);
    let centred = graph.sub(&normalized, &threshold);
    let steepness = graph.float(steepness);
    let steep = graph.mul(&centred, &steepness);
    graph.op("Sigmoid", &[&steep], &[])
}
