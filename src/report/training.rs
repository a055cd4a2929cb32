//! How a run has gone so far.

use super::chart::{Chart, Grid};
use crate::train::EpochRecord;

/// Losses above, errors below, over the epochs.
pub fn training_curves(records: &[EpochRecord]) -> Grid {
    let curve = |value: &dyn Fn(&EpochRecord) -> Option<f64>| -> Vec<(f64, f64)> {
        let point = |record: &EpochRecord| Some((record.epoch as f64, value(record)?));
        records.iter().filter_map(point).collect()
    };
    let mut losses = Chart::new("Losses", "epoch", "mean over images");
    losses.add("localizer", curve(&|record| Some(record.loss_localizer)));
    for (name, points) in [
        ("foreground", curve(&|record| record.loss_foreground)),
        ("background", curve(&|record| record.loss_background)),
    ] {
        if !points.is_empty() {
            losses.add(name, points);
        }
    }

    let mut errors = Chart::new("Error", "epoch", "%");
    errors.add("training", curve(&|record| Some(record.train_error)));
    errors.add("validation", curve(&|record| record.valid_error));
    if let Some(best) = records.iter().rev().find(|record| record.best) {
        errors.mark("kept", best.epoch as f64);
    }
    Grid { columns: 1, charts: vec![losses, errors] }
}
