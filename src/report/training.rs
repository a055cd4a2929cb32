//! How a run has gone so far.

use super::chart::{Chart, Grid};
use crate::train::EpochRecord;

/// Losses above, errors below, over the epochs; as an SVG file.
pub fn training_curves(records: &[EpochRecord]) -> String {
    charts(records).draw(720.0, 260.0).document()
}

fn charts(records: &[EpochRecord]) -> Grid {
    let curve = |value: &dyn Fn(&EpochRecord) -> Option<f64>| -> Vec<(f64, f64)> {
        let point = |record: &EpochRecord| Some((record.epoch as f64, value(record)?));
        records.iter().filter_map(point).collect()
    };
    let chart = |title, unit, curves: &[(&str, Vec<(f64, f64)>)]| {
        let mut chart = Chart::new(title, "epoch", unit);
        for (name, points) in curves.iter().filter(|(_, points)| !points.is_empty()) {
            chart.add(*name, points.clone());
        }
        chart
    };
    let losses = [
        ("localizer", curve(&|record| Some(record.loss_localizer))),
        ("foreground", curve(&|record| record.loss_foreground)),
        ("background", curve(&|record| record.loss_background)),
    ];
    let errors = [
        ("training", curve(&|record| Some(record.train_error))),
        ("validation", curve(&|record| record.valid_error)),
        ("validation, localizer", curve(&|record| record.valid_localizer_error)),
    ];
    let losses = chart("Losses", "mean over images", &losses);
    let mut errors = chart("Classification error", "% of images", &errors);
    if let Some(best) = records.iter().rev().find(|record| record.best) {
        errors.mark("epoch kept", best.epoch as f64);
    }
    Grid { columns: 1, charts: vec![losses, errors] }
}
