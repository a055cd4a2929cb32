//! The figures of a report, as PNG and SVG.

use super::{
    Report,
    chart::{Chart, Grid},
    confusion::ConfusionChart,
    overlay::{self, Panel, Row, strip, thumbnail},
};
use crate::{
    data::mask::Mask,
    metrics::{Curve, Curves, SweepCurve, Threshold},
};
use image::RgbImage;

/// Size of a chart in pixels.
const SIZE: (u32, u32) = (720, 480);
/// Longer side of the pictures in a strip.
const STRIP_SIDE: u32 = 320;

/// A figure in both forms.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// Name of its files, without ending.
    pub name: &'static str,
    /// What it shows.
    pub caption: &'static str,
    /// For documents.
    pub png: Vec<u8>,
    /// For print, and for the page.
    pub svg: String,
}

/// The names of all figures, whether a report has them or not.
pub const NAMES: [&str; 4] = ["precision_recall", "roc", "threshold", "confusion"];

/// The figures that a report has numbers for.
pub fn figures(report: &Report) -> Vec<Figure> {
    let evaluation = &report.evaluation;
    let curves = [(report.method.as_str(), &evaluation.curves)];
    let mut figures = Vec::new();
    if evaluation.curves.precision_recall_foreground.is_some()
        || evaluation.curves.precision_recall_background.is_some()
    {
        let grid = precision_recall(&curves);
        figures.push(Figure {
            name: NAMES[0],
            caption: "Precision against recall, averaged over images",
            png: grid.to_png(2 * SIZE.0, SIZE.1),
            svg: grid.to_svg(2 * SIZE.0, SIZE.1),
        });
    }
    if evaluation.curves.roc.is_some() {
        figures.push(drawn(NAMES[1], "ROC, averaged over images", &roc(&curves)));
    }
    if evaluation.scores.images_with_truth > 0 {
        let chart = sweep(&evaluation.sweep, &evaluation.scores.protocol.threshold);
        figures.push(drawn(NAMES[2], "Dice at every threshold, mean over images", &chart));
    }
    if let Some(confusion) = &evaluation.confusion {
        let classes = report.class_names();
        let chart = ConfusionChart { confusion, classes: &classes };
        figures.push(Figure {
            name: NAMES[3],
            caption: "True class against predicted class; shade is the share of the true class",
            png: chart.to_png(),
            svg: chart.to_svg(),
        });
    }
    figures
}

fn drawn(name: &'static str, caption: &'static str, chart: &Chart) -> Figure {
    Figure { name, caption, png: chart.to_png(SIZE.0, SIZE.1), svg: chart.to_svg(SIZE.0, SIZE.1) }
}

/// Averaged precision-recall curves of several methods: foreground and background side by side.
pub fn precision_recall(methods: &[(&str, &Curves)]) -> Grid {
    let side = |title: &str, curve: fn(&Curves) -> Option<&Curve>| {
        averaged(title, ("recall", "precision"), methods, curve)
    };
    let foreground = side("Foreground", |curves| curves.precision_recall_foreground.as_ref());
    let background = side("Background", |curves| curves.precision_recall_background.as_ref());
    Grid { columns: 2, charts: vec![foreground, background] }
}

/// Averaged ROC curves of several methods.
pub fn roc(methods: &[(&str, &Curves)]) -> Chart {
    let labels = ("false positive rate", "true positive rate");
    averaged("ROC", labels, methods, |curves| curves.roc.as_ref())
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

/// Dice against the threshold, with a mark at the one that was used.
fn sweep(sweep: &SweepCurve, threshold: &Threshold) -> Chart {
    let mut chart = Chart::new("Threshold", "threshold", "% mean over images");
    chart.x_range = Some((0.0, 1.0));
    chart.y_range = Some((0.0, 100.0));
    for (name, scores) in [
        ("F1+", &sweep.f1_foreground),
        ("F1-", &sweep.f1_background),
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

/// Image, truth and the masks of several methods side by side, each coloured by agreement.
///
/// Without truth the masks are tinted. Masks have the size of the image.
pub fn comparison_strip(
    image: &RgbImage,
    truth: Option<&Mask>,
    masks: &[(&str, &[bool])],
) -> RgbImage {
    strip(&comparison(image, truth, masks).panels)
}

/// The same as a row of a [`sheet`](overlay::sheet), to put many images under each other.
pub fn comparison(image: &RgbImage, truth: Option<&Mask>, masks: &[(&str, &[bool])]) -> Row {
    let panel = |name: &str, picture: &RgbImage| Panel::new(name, thumbnail(picture, STRIP_SIDE));
    let mut panels = vec![panel("image", image)];
    if let Some(truth) = truth {
        panels.push(panel("truth", &overlay::tint(image, &truth.foreground, overlay::TRUE_MASK)));
    }
    for (name, mask) in masks {
        let picture = match truth {
            Some(truth) => overlay::agreement(image, mask, truth),
            None => overlay::tint(image, mask, overlay::PREDICTED_MASK),
        };
        panels.push(panel(name, &picture));
    }
    Row { heading: String::new(), panels }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::document::tests::example;

    #[test]
    fn every_figure_is_drawn_in_both_forms() {
        let figures = figures(&example());
        assert_eq!(figures.iter().map(|figure| figure.name).collect::<Vec<_>>(), NAMES);
        for figure in figures {
            assert!(image::load_from_memory(&figure.png).is_ok(), "{}", figure.name);
            assert!(figure.svg.starts_with("<svg"), "{}", figure.name);
        }
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
        let grid = precision_recall(&[("ours", &one), ("theirs", &two)]);
        let names: Vec<_> = grid.charts[0].series.iter().map(|s| s.name.clone()).collect();
        assert!(names[0].starts_with("ours ") && names[1].starts_with("theirs "), "{names:?}");
        assert_eq!(grid.charts.len(), 2);
    }

    #[test]
    fn a_comparison_shows_image_truth_and_every_mask() {
        let image = RgbImage::new(4, 2);
        let truth = Mask { width: 4, height: 2, foreground: vec![true; 8], ignored: None };
        let masks: [(&str, &[bool]); 2] = [("a", &[true; 8]), ("b", &[false; 8])];
        let captions = |truth| {
            let panels = comparison(&image, truth, &masks).panels;
            panels.into_iter().map(|panel| panel.caption).collect::<Vec<_>>()
        };
        assert_eq!(captions(Some(&truth)), ["image", "truth", "a", "b"]);
        assert_eq!(captions(None), ["image", "a", "b"]);
        assert!(comparison_strip(&image, Some(&truth), &masks).width() > 4 * STRIP_SIDE);
    }
}
