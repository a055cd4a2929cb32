//! The scores of an evaluation, as they are serialized.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Decidability, Interval, PixelScores, Protocol, Trivial};

/// The scores of a split, in percent; `None` (in JSON `null`) where a score does not exist.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Scores {
    /// How many images were seen.
    pub images: u64,
    /// How many of them have a score map and truth, and so count in pixel scores.
    pub images_with_truth: u64,
    /// How many have no foreground, neither in the mask nor in the ground truth.
    pub images_without_foreground: u64,
    /// How many have no background, neither in the mask nor in the ground truth.
    pub images_without_background: u64,
    /// Share of the scored pixels that are foreground in the ground truth; older reports lack it.
    #[serde(default)]
    pub truth_foreground: Option<f64>,
    /// Share of images that the classifier misclassifies.
    pub classification_error: Option<f64>,
    /// Share of images that the localizer misclassifies.
    pub localizer_classification_error: Option<f64>,
    /// Share of images that are wrong if the most frequent class of the split is always predicted;
    /// older reports lack it.
    #[serde(default)]
    pub chance_error: Option<f64>,
    /// Mean over images of each pixel score.
    #[serde(flatten)]
    pub mean: PixelScores,
    /// The pixel scores of all pixels together.
    pub pooled: PixelScores,
    /// The same scores for masks that ignore the image; older reports lack it.
    #[serde(default)]
    pub trivial: Option<Trivial>,
    /// Area under the averaged precision-recall curve of the foreground.
    pub pr_auc_foreground: Option<f64>,
    /// Area under the averaged precision-recall curve of the background.
    pub pr_auc_background: Option<f64>,
    /// Area under the averaged ROC curve.
    pub roc_auc: Option<f64>,
    /// Share of images whose background has the higher scores: an area below one half under
    /// their own ROC curve.
    pub inverted: Option<f64>,
    /// Mean over images of the share of pixels that is marked.
    pub covered_area: Option<f64>,
    /// Mean over images of the share of pixels that is foreground in truth.
    pub true_area: Option<f64>,
    /// Pixel average precision over all pixels together.
    pub pxap: Option<f64>,
    /// Share of images whose largest region has a right box, at the best threshold.
    pub max_box_acc: Option<f64>,
    /// Mean over overlaps 0.3, 0.5, 0.7 of the share of images with a right box.
    pub max_box_acc_v2: Option<f64>,
    /// Share of images whose largest region has a right box, at the recorded threshold.
    pub gt_known_localization: Option<f64>,
    /// The same, where the class must be right too.
    pub top1_localization: Option<f64>,
    /// How well the class is predicted from either side of the maps, if that was asked for.
    pub decidability: Option<Decidability>,
    /// Intervals of the means over images, by the name of the score.
    pub intervals: BTreeMap<String, Interval>,
    /// How all this was measured.
    pub protocol: Protocol,
}

/// The scores of one class, in percent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the fields are named as those of `Scores`")]
pub struct ClassRow {
    pub class: String,
    pub images: u64,
    pub classification_error: Option<f64>,
    pub localizer_classification_error: Option<f64>,
    pub f1_foreground: Option<f64>,
    pub f1_background: Option<f64>,
    pub iou_foreground: Option<f64>,
    pub iou_background: Option<f64>,
    /// Mean over its images of the area under their own ROC curve.
    pub roc_auc: Option<f64>,
    pub inverted: Option<f64>,
    pub covered_area: Option<f64>,
    pub true_area: Option<f64>,
}

/// The scores of one image, in percent; a line of a table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "most fields are named as those of `Scores`")]
pub struct ImageRow {
    pub id: String,
    /// Index of the true class.
    pub label: usize,
    /// Index of the class the classifier gave.
    pub predicted: Option<usize>,
    /// The classifier's probability of that class.
    pub probability: Option<f32>,
    /// Index of the class the localizer gave.
    pub localizer_predicted: Option<usize>,
    /// Where its map was cut.
    pub threshold: Option<f32>,
    /// How its mask agrees with the truth.
    #[serde(flatten)]
    pub pixels: PixelScores,
    /// Exact area under its own ROC curve.
    pub roc_auc: Option<f64>,
    pub covered_area: Option<f64>,
    pub true_area: Option<f64>,
    /// Overlap of the largest region's box with the true one that it overlaps most.
    pub box_iou: Option<f64>,
}

impl ImageRow {
    pub(super) fn classification_error(&self) -> Option<f64> {
        self.predicted.map(|class| percent(class != self.label))
    }

    pub(super) fn localizer_classification_error(&self) -> Option<f64> {
        self.localizer_predicted.map(|class| percent(class != self.label))
    }

    /// Whether the background has the higher scores, in percent.
    pub(super) fn inverted(&self) -> Option<f64> {
        self.roc_auc.map(|area| percent(area < 50.0))
    }

    pub(super) fn localized(&self) -> Option<f64> {
        self.box_iou.map(|overlap| percent(overlap >= 50.0))
    }

    pub(super) fn localized_and_classified(&self) -> Option<f64> {
        let is_right = self.predicted? == self.label;
        self.localized().map(|localized| if is_right { localized } else { 0.0 })
    }
}

fn percent(yes: bool) -> f64 {
    if yes { 100.0 } else { 0.0 }
}
