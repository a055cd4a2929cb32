//! The figures of a report, and the curves of a training.

use super::{
    Report,
    chart::{self, Chart},
    confusion::confusion_matrix,
    svg::Svg,
};
use crate::{
    metrics::{Curve, Curves, Scores, SweepCurve, Threshold},
    train::EpochRecord,
};

/// Width of a chart and height of its data, in pixels: to be read on a phone too.
const SIZE: (f32, f32) = (440.0, 270.0);

/// Drawings that belong together.
#[derive(Debug, Clone)]
pub(super) struct Figure {
    /// Name of its file, without ending.
    pub(super) name: &'static str,
    pub(super) caption: &'static str,
    /// All of it, for a file.
    pub(super) drawing: Svg,
    /// Its parts, which a page lays out as it has room.
    pub(super) parts: Vec<Svg>,
}

/// The names of all figures, whether a report has them or not.
pub(super) const NAMES: [&str; 4] = ["precision_recall", "roc", "threshold", "confusion"];

/// The figures that a report has numbers for.
pub(super) fn figures(report: &Report) -> Vec<Figure> {
    let evaluation = &report.evaluation;
    let curves = [(report.method.as_str(), &evaluation.curves)];
    let mut figures = Vec::new();
    let charts = precision_recall(&curves, &evaluation.scores);
    if !charts.is_empty() {
        let caption = "Averaged over images; at chance precision is the share of such pixels";
        figures.push(Figure {
            name: NAMES[0],
            caption,
            drawing: chart::grid(charts.len(), &charts, SIZE),
            parts: charts.iter().map(|chart| chart.draw(SIZE)).collect(),
        });
    }
    if evaluation.curves.roc.is_some() {
        let chart = roc(&curves).draw(SIZE);
        figures.push(whole(NAMES[1], "Averaged over images; the diagonal is chance", chart));
    }
    if evaluation.scores.images_with_truth > 0 {
        let chart = sweep(&evaluation.sweep, &evaluation.scores.protocol.threshold);
        let caption = "Mean over images at every threshold; all images are cut at the same one";
        figures.push(whole(NAMES[2], caption, chart.draw(SIZE)));
    }
    if let Some(confusion) = &evaluation.confusion {
        let matrix = confusion_matrix(confusion, &report.class_names());
        let caption = "Number of images; shade is the share of the true class";
        figures.push(whole(NAMES[3], caption, matrix));
    }
    figures
}

fn whole(name: &'static str, caption: &'static str, drawing: Svg) -> Figure {
    Figure { name, caption, parts: vec![drawing.clone()], drawing }
}

/// Averaged precision-recall curves of several methods on one split: foreground and background
/// side by side, or nothing if no method has one. Precision at chance is the share of pixels that
/// are such.
pub(super) fn precision_recall(methods: &[(&str, &Curves)], scores: &Scores) -> Vec<Chart> {
    let side = |title: &str, curve: fn(&Curves) -> Option<&Curve>, chance: Option<f64>| {
        let mut chart = averaged(title, ("recall", "precision"), methods, curve);
        if let Some(chance) = chance.filter(|_| !chart.series.is_empty()) {
            let name = format!("chance {chance:.1} %");
            chart.reference(name, vec![(0.0, chance / 100.0), (1.0, chance / 100.0)]);
        }
        chart
    };
    let charts = [
        side(
            "Precision and recall, foreground",
            |curves| curves.precision_recall_foreground.as_ref(),
            scores.true_area,
        ),
        side(
            "Precision and recall, background",
            |curves| curves.precision_recall_background.as_ref(),
            scores.true_area.map(|area| 100.0 - area),
        ),
    ];
    if charts.iter().all(|chart| chart.series.is_empty()) { Vec::new() } else { charts.into() }
}

/// Averaged ROC curves of several methods, and the diagonal of chance.
fn roc(methods: &[(&str, &Curves)]) -> Chart {
    let labels = ("false positive rate", "true positive rate");
    let mut chart = averaged("ROC", labels, methods, |curves| curves.roc.as_ref());
    chart.reference("chance 50.0 %", vec![(0.0, 0.0), (1.0, 1.0)]);
    chart
}

/// One curve per method that has one, with its area in the legend.
fn averaged(
    title: &str,
    (x, y): (&str, &str),
    methods: &[(&str, &Curves)],
    curve: fn(&Curves) -> Option<&Curve>,
) -> Chart {
    let mut chart = Chart::new(title, x, y);
    chart.x_range = Some((0.0, 1.0));
    chart.y_range = Some((0.0, 1.0));
    for (name, curves) in methods {
        if let Some(curve) = curve(curves) {
            let points = curve.x.iter().copied().zip(curve.y.iter().copied()).collect();
            chart.add(format!("{name} {:.1} %", curve.auc), points);
        }
    }
    chart
}

/// How a run has gone so far: losses above, errors below, over the epochs; as an SVG file.
pub fn training_curves(records: &[EpochRecord]) -> String {
    type Value = fn(&EpochRecord) -> Option<f64>;
    let chart = |title, unit, curves: [(&str, Value); 3]| {
        let mut chart = Chart::new(title, "epoch", unit);
        for (name, value) in curves {
            let point = |record: &EpochRecord| Some((record.epoch as f64, value(record)?));
            let points: Vec<(f64, f64)> = records.iter().filter_map(point).collect();
            if !points.is_empty() {
                chart.add(name, points);
            }
        }
        chart
    };
    let losses = chart(
        "Losses",
        "mean over images",
        [
            ("localizer", |record| Some(record.loss_localizer)),
            ("foreground", |record| record.loss_foreground),
            ("background", |record| record.loss_background),
        ],
    );
    let mut errors = chart(
        "Classification error",
        "% of images",
        [
            ("training", |record| Some(record.train_error)),
            ("validation", |record| record.valid_error),
            ("validation, localizer", |record| record.valid_localizer_error),
        ],
    );
    if let Some(best) = records.iter().rev().find(|record| record.best) {
        errors.mark("epoch kept", best.epoch as f64);
    }
    chart::grid(1, &[losses, errors], (720.0, 260.0)).document()
}

/// Dice against the threshold, with a mark at the one that was used.
fn sweep(sweep: &SweepCurve, threshold: &Threshold) -> Chart {
    let mut chart = Chart::new("Dice and threshold", "threshold", "%");
    chart.x_range = Some((0.0, 1.0));
    chart.y_range = Some((0.0, 100.0));
    for (name, scores) in [
        ("F1⁺", &sweep.f1_foreground),
        ("F1⁻", &sweep.f1_background),
        ("mean of both", &sweep.f1_mean),
    ] {
        let points = sweep.thresholds.iter().zip(scores);
        let point = |(&t, score): (&f32, &Option<f64>)| (f64::from(t), score.unwrap_or(f64::NAN));
        chart.add(name, points.map(point).collect());
    }
    if let Some(value) = threshold.value() {
        chart.mark("used", value.into());
    }
    chart
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::document::tests::example;

    #[test]
    fn every_figure_is_drawn() {
        let figures = figures(&example());
        assert_eq!(figures.iter().map(|figure| figure.name).collect::<Vec<_>>(), NAMES);
        for figure in figures {
            assert!(figure.drawing.document().starts_with("<svg"), "{}", figure.name);
        }
    }

    #[test]
    fn curves_are_held_against_chance() {
        let report = example();
        let scores = Scores { true_area: Some(30.0), ..report.evaluation.scores.clone() };
        let curves = [("ours", &report.evaluation.curves)];
        let chance: Vec<_> = precision_recall(&curves, &scores)
            .iter()
            .map(|chart| chart.series.last().unwrap().points[1])
            .collect();
        assert_eq!(chance, [(1.0, 0.3), (1.0, 0.7)]);
        assert_eq!(roc(&curves).series.last().unwrap().points, [(0.0, 0.0), (1.0, 1.0)]);
    }

    #[test]
    fn what_has_no_numbers_has_no_figure() {
        let mut report = example();
        report.evaluation.curves.roc = None;
        report.evaluation.confusion = None;
        let names: Vec<_> = figures(&report).iter().map(|figure| figure.name).collect();
        assert_eq!(names, ["precision_recall", "threshold"]);
    }

    #[test]
    fn curves_of_several_methods_share_a_chart() {
        let (one, two) = (example().evaluation.curves, example().evaluation.curves);
        let scores = example().evaluation.scores;
        let charts = precision_recall(&[("ours", &one), ("theirs", &two)], &scores);
        let names: Vec<_> = charts[0].series.iter().map(|s| s.name.clone()).collect();
        assert!(names[0].starts_with("ours ") && names[1].starts_with("theirs "), "{names:?}");
        assert_eq!(charts.len(), 2);
    }
}
