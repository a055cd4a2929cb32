//! Metrics beside scikit-learn and a brute force in NumPy (`fixtures/make_metrics.py`).

use pinpoint::{
    data::mask::Mask,
    metrics::{
        BoxSummary, Confusion, EmptyRule, Evaluation, Evaluator, ImageCase, ImageCurves,
        ImageSummary, PixelCounts, PixelScores, Protocol, ScoreMap, ThresholdRule, truth_boxes,
    },
};
use serde::Deserialize;

/// Both sides compute in 64-bit floats; curves were written with 12 digits.
const TOLERANCE: f64 = 1e-9;

/// Our box overlaps are 32-bit, the fixture's have 6 digits.
const OVERLAP_TOLERANCE: f64 = 2e-6;

#[derive(Deserialize)]
struct Fixture {
    shown: Vec<usize>,
    images: Vec<Image>,
    averaged: Averaged,
    pxap: f64,
    max_box_acc: f64,
    max_box_acc_v2: f64,
    sweep_foreground: Vec<f64>,
    labels: Vec<usize>,
    predicted: Vec<usize>,
    confusion: Vec<Vec<u64>>,
    classification_error: f64,
}

#[derive(Deserialize)]
struct Image {
    kind: String,
    width: usize,
    height: usize,
    scores: Vec<u16>,
    foreground: String,
    ignored: String,
    /// True negative, false positive, false negative, true positive.
    counts: [u64; 4],
    f1_foreground: f64,
    f1_background: f64,
    iou_foreground: f64,
    otsu: f64,
    percentile_80: f64,
    roc_auc: Option<f64>,
    curves: CurveValues,
    largest: Option<Vec<f64>>,
    best: Option<Vec<f64>>,
}

#[derive(Deserialize)]
struct CurveValues {
    foreground: Option<Vec<f64>>,
    background: Option<Vec<f64>>,
    roc: Option<Vec<f64>>,
}

#[derive(Deserialize)]
struct Averaged {
    foreground: AveragedValues,
    background: AveragedValues,
    roc: AveragedValues,
}

#[derive(Deserialize)]
struct AveragedValues {
    auc: f64,
    y: Vec<f64>,
}

impl Fixture {
    fn load() -> Self {
        serde_json::from_str(include_str!("fixtures/metrics.json"))
            .expect("the script writes this shape")
    }

    fn evaluate(&self) -> Evaluation {
        let protocol = Protocol::default();
        let mut evaluator = Evaluator::new(&["thing".to_owned()], protocol);
        for image in &self.images {
            let (scores, truth) = (image.scores(), image.truth());
            let case = ImageCase {
                id: &image.kind,
                label: 0,
                classifier: None,
                localizer: None,
                map: Some(image.map(&scores)),
                truth: Some(&truth),
                boxes: &[],
            };
            let summary = ImageSummary::of(&case, &protocol).expect("map and truth have one size");
            evaluator.accumulate(summary);
        }
        evaluator.compute()
    }
}

impl Image {
    fn scores(&self) -> Vec<f32> {
        self.scores.iter().map(|&level| f32::from(level) / 4096.0).collect()
    }

    fn map<'a>(&self, scores: &'a [f32]) -> ScoreMap<'a> {
        ScoreMap::new(self.width, self.height, scores).expect("levels are at most 4096")
    }

    fn truth(&self) -> Mask {
        let bits = |text: &str| text.chars().map(|digit| digit == '1').collect();
        Mask {
            width: self.width as u32,
            height: self.height as u32,
            foreground: bits(&self.foreground),
            ignored: Some(bits(&self.ignored)),
        }
    }
}

#[track_caller]
fn assert_close(found: f64, expected: f64, tolerance: f64, what: &str) {
    assert!((found - expected).abs() <= tolerance, "{what}: {found} is not {expected}");
}

#[track_caller]
fn assert_all_close(found: &[f64], expected: &[f64], tolerance: f64, what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    for (index, (found, expected)) in found.iter().zip(expected).enumerate() {
        assert_close(*found, *expected, tolerance, &format!("{what}[{index}]"));
    }
}

#[test]
fn pixel_scores_agree_with_scikit_learn() {
    for image in &Fixture::load().images {
        let scores = image.scores();
        let counts = PixelCounts::of(&image.map(&scores), &image.truth(), 0.5);
        let cases = [
            counts.true_negative,
            counts.false_positive,
            counts.false_negative,
            counts.true_positive,
        ];
        assert_eq!(cases, image.counts, "{}", image.kind);
        let found = PixelScores::of(&counts, EmptyRule::One);
        for (found, expected) in [
            (found.f1_foreground, image.f1_foreground),
            (found.f1_background, image.f1_background),
            (found.iou_foreground, image.iou_foreground),
        ] {
            assert_close(found.unwrap(), 100.0 * expected, TOLERANCE, &image.kind);
        }
    }
}

#[test]
fn the_curves_of_each_image_agree_with_scikit_learn() {
    let fixture = Fixture::load();
    for image in &fixture.images {
        let scores = image.scores();
        let found = ImageCurves::of(&image.map(&scores), &image.truth());
        for (found, expected) in [
            (&found.foreground, &image.curves.foreground),
            (&found.background, &image.curves.background),
            (&found.roc, &image.curves.roc),
        ] {
            let shown = |curve: &Vec<f64>| fixture.shown.iter().map(|&k| curve[k]).collect();
            let found: Option<Vec<f64>> = found.as_ref().map(shown);
            assert_eq!(found.is_some(), expected.is_some(), "{}", image.kind);
            if let (Some(found), Some(expected)) = (found, expected) {
                assert_all_close(&found, expected, TOLERANCE, &image.kind);
            }
        }
        assert_eq!(found.roc_auc.is_some(), image.roc_auc.is_some(), "{}", image.kind);
        if let (Some(found), Some(expected)) = (found.roc_auc, image.roc_auc) {
            assert_close(found, expected, TOLERANCE, &image.kind);
        }
    }
}

#[test]
fn averaged_curves_pooled_precision_and_the_sweep_agree_with_scikit_learn() {
    let fixture = Fixture::load();
    let Evaluation { scores, curves, sweep, .. } = fixture.evaluate();
    for (found, expected) in [
        (curves.precision_recall_foreground, &fixture.averaged.foreground),
        (curves.precision_recall_background, &fixture.averaged.background),
        (curves.roc, &fixture.averaged.roc),
    ] {
        let found = found.unwrap();
        let shown: Vec<f64> = fixture.shown.iter().map(|&k| found.y[k]).collect();
        assert_all_close(&shown, &expected.y, TOLERANCE, "averaged curve");
        assert_close(found.auc, expected.auc, TOLERANCE, "area");
    }
    assert_close(scores.pxap.unwrap(), fixture.pxap, TOLERANCE, "PxAP");
    let every_50th: Vec<f64> =
        sweep.f1_foreground.iter().step_by(50).map(|f1| f1.unwrap()).collect();
    assert_all_close(&every_50th, &fixture.sweep_foreground, TOLERANCE, "sweep");
}

#[test]
fn boxes_agree_with_labelling_every_threshold_anew() {
    let fixture = Fixture::load();
    for image in &fixture.images {
        let (Some(largest), Some(best)) = (&image.largest, &image.best) else { continue };
        let (scores, truth) = (image.scores(), image.truth());
        let found = BoxSummary::of(&image.map(&scores), Some(&truth), &truth_boxes(&truth));
        for (found, expected) in [(found.largest, largest), (found.best, best)] {
            let found: Vec<f64> = found.iter().step_by(5).map(|&o| o.into()).collect();
            assert_all_close(&found, expected, OVERLAP_TOLERANCE, &image.kind);
        }
    }
    let scores = fixture.evaluate().scores;
    assert_close(scores.max_box_acc.unwrap(), fixture.max_box_acc, TOLERANCE, "MaxBoxAcc");
    assert_close(scores.max_box_acc_v2.unwrap(), fixture.max_box_acc_v2, TOLERANCE, "MaxBoxAccV2");
}

#[test]
fn thresholds_of_single_images_agree_with_numpy() {
    for image in &Fixture::load().images {
        let scores = image.scores();
        let at = |rule: ThresholdRule| f64::from(rule.ready().unwrap().at(&scores));
        // A threshold is a 32-bit number.
        assert_close(at(ThresholdRule::Otsu), image.otsu, 1e-7, &image.kind);
        assert_eq!(at(ThresholdRule::Percentile(80.0)), image.percentile_80, "{}", image.kind);
    }
}

#[test]
fn the_confusion_matrix_agrees_with_scikit_learn() {
    let fixture = Fixture::load();
    let mut confusion = Confusion::new(4);
    for (&label, &predicted) in fixture.labels.iter().zip(&fixture.predicted) {
        confusion.accumulate(label, predicted);
    }
    assert_eq!(confusion.counts(), fixture.confusion);
    assert_close(confusion.error().unwrap(), fixture.classification_error, TOLERANCE, "error");
}
