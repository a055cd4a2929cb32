//! From class maps to a soft mask.

use super::graph::{Attribute, Kind, Value};
use crate::{
    config::{Alignment, Evidence, MaskConfig},
    model::mask::{EQUAL, MaskEquation},
};

/// The evidence of each cell, `[1, C, h, w]` → `[1, 1, h, w]`; `belief`, the class probabilities,
/// is `[1, C]`.
pub(super) fn evidence<'g>(
    belief: Value<'g>,
    maps: Value<'g>,
    kind: Evidence,
    classes: usize,
) -> Value<'g> {
    let kind = kind.of(classes);
    if kind == Evidence::Spread {
        let deviation = maps - maps.reduce("ReduceMean", &[1]);
        let variance = (deviation * deviation).reduce("ReduceMean", &[1]);
        return variance.max(f64::from(EQUAL)).sqrt();
    }
    let weights = (belief - f64::from(kind.common(classes))).reshape(&[1, -1, 1, 1]);
    (maps * weights).reduce("ReduceSum", &[1])
}

/// Maps stretched over an image of a height and width.
pub(super) fn place<'g>(maps: Value<'g>, size: Value<'g>, rule: &MaskEquation<'_>) -> Value<'g> {
    match rule.config.alignment {
        Alignment::Corners => maps.resize(size, "align_corners"),
        // One cell every `stride` pixels; what is beyond the image is cut off.
        Alignment::Centres => {
            maps.enlarge(rule.stride).slice(maps.graph().line(&[0, 0]), size, &[2, 3])
        }
    }
}

/// The soft mask of evidence, `[1, 1, h, w]` → `[1, 1, H, W]`.
pub(super) fn soft_mask<'g>(
    evidence: Value<'g>,
    size: Value<'g>,
    rule: &MaskEquation<'_>,
) -> Value<'g> {
    let placed = place(evidence, size, rule);
    let MaskConfig { low_percentile, high_percentile, threshold, steepness, .. } = *rule.config;
    let whole_range = low_percentile == 0.0 && high_percentile == 100.0;
    let (low, high) = if whole_range {
        let axes = [0, 1, 2, 3];
        (placed.reduce("ReduceMin", &axes), placed.reduce("ReduceMax", &axes))
    } else {
        let all = placed.cells();
        let sorted = placed.reshape(&[-1]).top(all, false);
        let ranked = |percent: f64| {
            let place = (all.cast(Kind::Double) - 1.0) * (percent / 100.0);
            let rank = (place + 0.5).floor().cast(Kind::Int);
            sorted.op("Gather", &[rank], &[("axis", Attribute::Int(0))]).reshape(&[1, 1, 1, 1])
        };
        (ranked(low_percentile), ranked(high_percentile))
    };
    let range = high - low;
    let scaled = (placed - low) / range;
    let scaled = if whole_range { scaled } else { scaled.clip(0.0, 1.0) };
    // A constant map becomes the threshold, as it has no range.
    let normalized = scaled.kept(range.greater(0.0), threshold);
    ((normalized - threshold) * steepness).sigmoid()
}
