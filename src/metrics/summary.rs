//! What one image contributes to the scores of a split.

use serde::{Deserialize, Serialize};

use super::{
    Bootstrap, BoxSummary, EmptyRule, ImageCurves, ImageRow, PixelCounts, PixelScores,
    PooledFeatures, ScoreHistogram, ScoreMap, ScoreMapError, Threshold, Trivial,
    boxes::{best_overlap, truth_boxes},
    components,
};
use crate::data::{PixelBox, mask::Mask};

/// How a split is scored, which is recorded with the scores.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Protocol {
    /// Where maps are cut.
    pub threshold: Threshold,
    /// The value of Dice when both masks are empty.
    pub empty: EmptyRule,
    /// Whether to draw precision-recall and ROC curves.
    pub curves: bool,
    /// Whether to compare boxes.
    pub boxes: bool,
    /// How intervals are drawn.
    pub bootstrap: Bootstrap,
}

/// A class that was predicted for an image.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct PredictedClass {
    /// The most probable class.
    pub class: usize,
    /// Its probability.
    pub probability: f32,
}

/// One image with all that is known and predicted about it.
#[derive(Debug, Clone, Copy)]
pub struct ImageCase<'a> {
    /// The sample's name.
    pub id: &'a str,
    /// Its class.
    pub label: usize,
    /// The class predicted by the classifier; `None` for a method without one.
    pub classifier: Option<PredictedClass>,
    /// The class predicted by the localizer; `None` if it predicts none.
    pub localizer: Option<PredictedClass>,
    /// The score map of the method; `None` if it has none.
    pub map: Option<ScoreMap<'a>>,
    /// The ground truth; `None` if the sample has no mask.
    pub truth: Option<&'a Mask>,
    /// Listed boxes; if there are none, those around the truth's regions are used.
    pub boxes: &'a [PixelBox],
}

/// What one image contributes to the scores; its memory does not depend on the size of the image.
#[derive(Debug, Clone)]
pub struct ImageSummary {
    pub(super) row: ImageRow,
    pub(super) pixels: Option<PixelSummary>,
    pub(super) boxes: Option<BoxSummary>,
    /// Pooled features, if decidability is asked for.
    pub features: Option<PooledFeatures>,
}

/// What the pixels of one image contribute.
#[derive(Debug, Clone)]
pub(super) struct PixelSummary {
    /// Agreement at the image's threshold.
    pub(super) counts: PixelCounts,
    /// Agreement at every threshold.
    pub(super) histogram: ScoreHistogram,
    /// Curves, if the protocol asks for them.
    pub(super) curves: Option<ImageCurves>,
    /// The scores of masks that ignore the image.
    pub(super) trivial: Trivial,
}

impl Default for Protocol {
    fn default() -> Self {
        Self {
            threshold: Threshold::default(),
            empty: EmptyRule::default(),
            curves: true,
            boxes: true,
            bootstrap: Bootstrap::default(),
        }
    }
}

impl ImageSummary {
    /// Summarizes one image, independently of all others, so that images may be done in parallel.
    ///
    /// Without a map or without truth there are no pixel scores; without a true
    /// box no box scores; a truth that ignores every pixel is no truth.
    pub fn of(case: &ImageCase<'_>, protocol: &Protocol) -> Result<Self, ScoreMapError> {
        let ImageCase { id, label, classifier, localizer, map, truth, boxes } = *case;
        if let (Some(map), Some(truth)) = (map, truth) {
            map.check_truth(truth)?;
        }
        let threshold = map.map(|map| protocol.threshold.at(map.scores()));
        let cut = map.zip(threshold);
        let pixels = cut.zip(truth).and_then(|((map, threshold), truth)| {
            Some(PixelSummary {
                trivial: Trivial::of(truth, protocol.empty)?,
                counts: PixelCounts::of(&map, truth, threshold),
                histogram: ScoreHistogram::of(&map, truth),
                curves: protocol.curves.then(|| ImageCurves::of(&map, truth)),
            })
        });
        let boxes = cut
            .filter(|_| protocol.boxes)
            .and_then(|(map, threshold)| box_summary(&map, truth, boxes, threshold));
        let counts = pixels.as_ref().map(|pixels| pixels.counts);
        let curves = pixels.as_ref().and_then(|pixels| pixels.curves.as_ref());
        let row = ImageRow {
            id: id.to_owned(),
            label,
            predicted: classifier.map(|found| found.class),
            probability: classifier.map(|found| found.probability),
            localizer_predicted: localizer.map(|found| found.class),
            threshold,
            pixels: counts
                .map(|counts| PixelScores::of(&counts, protocol.empty))
                .unwrap_or_default(),
            roc_auc: curves.and_then(|curves| curves.roc_auc).map(|area| 100.0 * area),
            covered_area: counts.map(|counts| counts.covered_area()),
            true_area: counts.map(|counts| counts.true_area()),
            box_iou: boxes.as_ref().map(|(_, overlap)| 100.0 * f64::from(*overlap)),
        };
        Ok(Self { row, pixels, boxes: boxes.map(|(boxes, _)| boxes), features: None })
    }
}

/// Overlaps at every threshold, and that of the largest region at the image's own.
fn box_summary(
    map: &ScoreMap<'_>,
    truth: Option<&Mask>,
    listed: &[PixelBox],
    threshold: f32,
) -> Option<(BoxSummary, f32)> {
    let boxes = match listed {
        [] => truth_boxes(truth?),
        listed => listed.to_vec(),
    };
    if boxes.is_empty() {
        return None;
    }
    let inside = |at: usize| map.scores()[at] >= threshold;
    let counts = |at: usize| !truth.is_some_and(|truth| truth.is_ignored(at));
    let regions = components(map.width(), map.height(), inside, counts);
    let overlap = regions.first().map_or(0.0, |largest| best_overlap(&largest.bounds, &boxes));
    Some((BoxSummary::of(map, truth, &boxes), overlap))
}
