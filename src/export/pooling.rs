//! From class maps to scores, `[1, C, h, w]` → `[1, C]`.

use super::graph::{Kind, Value};
use crate::{
    config::{Cells, PoolConfig},
    model::wildcat::Pooling,
};

/// A reduction of each map, such as `ReduceMean`.
pub(super) fn reduced<'g>(maps: Value<'g>, kind: &str) -> Value<'g> {
    maps.reduce(kind, &[2, 3]).reshape(&[1, -1])
}

/// `1/r · ln(1/n Σ exp(r A))`
pub(super) fn log_sum_exp(maps: Value<'_>, sharpness: f64) -> Value<'_> {
    let highest = maps.reduce("ReduceMax", &[2, 3]);
    let mean = ((maps - highest) * sharpness).exp().reduce("ReduceMean", &[2, 3]);
    (mean.log() / sharpness + highest).reshape(&[1, -1])
}

/// The mean of the highest cells, and of the lowest ones if they count.
pub(super) fn wildcat<'g>(maps: Value<'g>, rule: &Pooling<'_>) -> Value<'g> {
    let PoolConfig { top, bottom, bottom_weight, .. } = *rule.config;
    let highest = mean_of(maps, top, true);
    if !rule.counts_evidence_against || bottom_weight == 0.0 {
        return highest;
    }
    (highest + mean_of(maps, bottom, false) * bottom_weight) * 0.5
}

/// The mean of so many cells, the highest or the lowest.
fn mean_of(maps: Value<'_>, cells: Cells, highest: bool) -> Value<'_> {
    let all = maps.cells();
    let wanted = match cells {
        Cells::Count(count) => maps.graph().line(&[count as i64]),
        // In double precision and with halves to even, as pooling counts them.
        Cells::Fraction(share) => (all.cast(Kind::Double) * share).round().cast(Kind::Int),
    };
    let wanted = wanted.max(1.0).min(all);
    let sum = maps.flat().top(wanted, highest).reduce("ReduceSum", &[2]);
    (sum / wanted.cast(Kind::Float)).reshape(&[1, -1])
}
