//! The row of one image, before it is written down.

use super::{ImageRow, PixelScores, PredictedClass, Trivial};

/// What is kept of each image.
#[derive(Debug, Clone)]
pub(super) struct Record {
    pub(super) id: String,
    pub(super) label: usize,
    pub(super) classifier: Option<PredictedClass>,
    pub(super) localizer: Option<PredictedClass>,
    pub(super) threshold: Option<f32>,
    pub(super) pixels: Option<Pixels>,
    pub(super) box_overlap: Option<f32>,
}

/// How its mask agrees with the truth.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pixels {
    pub(super) scores: PixelScores,
    /// In percent, like the areas.
    pub(super) roc_auc: Option<f64>,
    pub(super) covered_area: f64,
    pub(super) true_area: f64,
    pub(super) no_foreground: bool,
    pub(super) no_background: bool,
    pub(super) trivial: Trivial,
}

fn percent(yes: bool) -> f64 {
    if yes { 100.0 } else { 0.0 }
}

impl Record {
    pub(super) fn error(&self, predicted_class: Option<PredictedClass>) -> Option<f64> {
        predicted_class.map(|predicted_class| percent(predicted_class.class != self.label))
    }

    pub(super) fn localized(&self) -> Option<f64> {
        self.box_overlap.map(|overlap| percent(overlap >= 0.5))
    }

    pub(super) fn localized_and_classified(&self) -> Option<f64> {
        let right = self.classifier?.class == self.label;
        self.localized().map(|localized| if right { localized } else { 0.0 })
    }

    pub(super) fn roc_auc(&self) -> Option<f64> {
        self.pixels.and_then(|pixels| pixels.roc_auc)
    }

    /// Whether the background has the higher scores, in percent.
    pub(super) fn inverted(&self) -> Option<f64> {
        self.roc_auc().map(|auc| percent(auc < 50.0))
    }

    pub(super) fn covered_area(&self) -> Option<f64> {
        self.pixels.map(|pixels| pixels.covered_area)
    }

    pub(super) fn true_area(&self) -> Option<f64> {
        self.pixels.map(|pixels| pixels.true_area)
    }

    pub(super) fn row(&self) -> ImageRow {
        let scores = self.pixels.map(|pixels| pixels.scores).unwrap_or_default();
        ImageRow {
            id: self.id.clone(),
            label: self.label,
            predicted: self.classifier.map(|predicted_class| predicted_class.class),
            probability: self.classifier.map(|predicted_class| predicted_class.probability),
            localizer_predicted: self.localizer.map(|predicted_class| predicted_class.class),
            threshold: self.threshold,
            f1_foreground: scores.f1_foreground,
            f1_background: scores.f1_background,
            iou_foreground: scores.iou_foreground,
            iou_background: scores.iou_background,
            iou_mean: scores.iou_mean,
            precision: scores.precision,
            recall: scores.recall,
            specificity: scores.specificity,
            pixel_accuracy: scores.pixel_accuracy,
            roc_auc: self.roc_auc(),
            covered_area: self.covered_area(),
            true_area: self.true_area(),
            box_iou: self.box_overlap.map(|overlap| 100.0 * f64::from(overlap)),
        }
    }
}
