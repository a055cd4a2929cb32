//! The scores of a split, from the summaries of its images.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{
    AveragedCurve, BoxAccuracy, BoxAccuracyCurve, ClassRow, Confusion, Curve, Curves, Decidability,
    ImageRow, ImageSummary, Interval, PixelCounts, PixelScores, Protocol, ScoreHistogram, Scores,
    Sweep, SweepCurve, Trivial, summary::PixelSummary,
};

/// Adds up a split image by image.
///
/// Summaries must come in the same order each time, that of the split:
/// sums of fractions depend on it, and equal runs shall give equal bytes.
#[derive(Debug, Clone, Default)]
pub struct Evaluator {
    classes: Vec<String>,
    protocol: Protocol,
    rows: Vec<ImageRow>,
    /// Of the images that have pixel scores.
    trivial: Vec<Trivial>,
    images_without_foreground: u64,
    images_without_background: u64,
    classifier: Confusion,
    pooled: PixelCounts,
    histogram: ScoreHistogram,
    sweep: Sweep,
    /// Precision and recall of foreground and background, and the ROC curve.
    curves: [AveragedCurve; 3],
    boxes: BoxAccuracy,
    /// Pooled features and labels, of the images that have features.
    foregrounds: Vec<Vec<f32>>,
    backgrounds: Vec<Vec<f32>>,
    pooled_labels: Vec<usize>,
}

/// The result of an evaluation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Evaluation {
    /// The headline.
    pub scores: Scores,
    /// One row per class.
    pub classes: Vec<ClassRow>,
    /// One row per image, in the order they came.
    pub images: Vec<ImageRow>,
    /// The confusion matrix of the classifier; `None` for a method without one.
    pub confusion: Option<Confusion>,
    /// Averaged curves.
    pub curves: Curves,
    /// Dice at every threshold.
    pub sweep: SweepCurve,
    /// Right boxes at every threshold.
    pub box_accuracy: Option<BoxAccuracyCurve>,
}

/// Reads a score from the row of an image, if there is one.
type Value = fn(&ImageRow) -> Option<f64>;

impl Evaluator {
    /// An evaluator for a dataset with these classes.
    pub fn new(classes: &[String], protocol: Protocol) -> Self {
        Self {
            classes: classes.to_vec(),
            protocol,
            classifier: Confusion::new(classes.len()),
            ..Self::default()
        }
    }

    /// Adds one image.
    pub fn accumulate(&mut self, image: ImageSummary) {
        let ImageSummary { row, pixels, boxes, features } = image;
        let label = row.label;
        assert!(label < self.classes.len(), "label {label} is below {}", self.classes.len());
        if let Some(class) = row.predicted {
            self.classifier.accumulate(label, class);
        }
        if let Some(boxes) = &boxes {
            self.boxes.accumulate(boxes);
        }
        if let Some(features) = features {
            self.foregrounds.push(features.foreground);
            self.backgrounds.push(features.background);
            self.pooled_labels.push(label);
        }
        if let Some(pixels) = pixels {
            self.accumulate_pixels(&pixels);
        }
        self.rows.push(row);
    }

    fn accumulate_pixels(&mut self, image: &PixelSummary) {
        let PixelSummary { counts, histogram, curves, trivial } = image;
        self.trivial.push(*trivial);
        self.images_without_foreground += u64::from(counts.both_empty());
        self.images_without_background += u64::from(counts.complement().both_empty());
        self.pooled.accumulate(counts);
        self.histogram.accumulate(histogram);
        self.sweep.accumulate(histogram, self.protocol.empty);
        if let Some(curves) = curves {
            let curves = [&curves.foreground, &curves.background, &curves.roc];
            for (sum, curve) in self.curves.iter_mut().zip(curves) {
                curve.iter().for_each(|curve| sum.accumulate(curve));
            }
        }
    }

    /// The scores of all images so far.
    pub fn compute(self) -> Evaluation {
        let [precision_recall_foreground, precision_recall_background, roc] =
            self.curves.each_ref().map(AveragedCurve::compute);
        let curves = Curves { precision_recall_foreground, precision_recall_background, roc };
        let box_accuracy = self.boxes.compute();
        Evaluation {
            scores: self.scores(&curves, box_accuracy.as_ref()),
            classes: (0..self.classes.len()).map(|class| self.class_row(class)).collect(),
            sweep: self.sweep.compute(),
            images: self.rows,
            confusion: Some(self.classifier).filter(|confusion| confusion.images() > 0),
            curves,
            box_accuracy,
        }
    }

    fn scores(&self, curves: &Curves, boxes: Option<&BoxAccuracyCurve>) -> Scores {
        let auc = |curve: &Option<Curve>| curve.as_ref().map(|curve| curve.auc);
        let mean = |value: Value| mean(&self.column(value));
        let scored = self.scored().count();
        let pooled = (scored > 0).then(|| PixelScores::of(&self.pooled, self.protocol.empty));
        Scores {
            images: self.rows.len() as u64,
            images_with_truth: scored as u64,
            images_without_foreground: self.images_without_foreground,
            images_without_background: self.images_without_background,
            truth_foreground: (self.pooled.pixels() > 0).then(|| self.pooled.true_area()),
            classification_error: self.classifier.error(),
            localizer_classification_error: mean(ImageRow::localizer_classification_error),
            chance_error: self.chance_error(),
            mean: PixelScores::mean(self.scored().map(|row| &row.pixels)),
            trivial: Trivial::mean(&self.trivial),
            pooled: pooled.unwrap_or_default(),
            pr_auc_foreground: auc(&curves.precision_recall_foreground),
            pr_auc_background: auc(&curves.precision_recall_background),
            roc_auc: auc(&curves.roc),
            inverted: mean(ImageRow::inverted),
            covered_area: mean(|row| row.covered_area),
            true_area: mean(|row| row.true_area),
            pxap: self.histogram.average_precision(),
            max_box_acc: boxes.map(BoxAccuracyCurve::max_box_acc),
            max_box_acc_v2: boxes.map(BoxAccuracyCurve::max_box_acc_v2),
            gt_known_localization: mean(ImageRow::localized),
            top1_localization: mean(ImageRow::localized_and_classified),
            decidability: Decidability::of(
                &self.foregrounds,
                &self.backgrounds,
                &self.pooled_labels,
                self.protocol.bootstrap.seed,
            ),
            intervals: self.intervals(),
            protocol: self.protocol,
        }
    }

    /// The error of giving every image the most frequent class, in percent.
    fn chance_error(&self) -> Option<f64> {
        let mut images = vec![0_u64; self.classes.len()];
        self.rows.iter().for_each(|row| images[row.label] += 1);
        let (total, most) = (self.rows.len() as f64, images.into_iter().max()?);
        (most > 0).then(|| 100.0 * (1.0 - most as f64 / total))
    }

    fn class_row(&self, class: usize) -> ClassRow {
        let is_of_class = |row: &&ImageRow| row.label == class;
        let rows = || self.rows.iter().filter(is_of_class);
        let scored = self.scored().filter(is_of_class);
        let pixel_scores = PixelScores::mean(scored.map(|row| &row.pixels));
        let mean_of = |value: Value| mean(&rows().filter_map(value).collect::<Vec<f64>>());
        ClassRow {
            class: self.classes[class].clone(),
            images: rows().count() as u64,
            classification_error: self.classifier.class_error(class),
            localizer_classification_error: mean_of(ImageRow::localizer_classification_error),
            f1_foreground: pixel_scores.f1_foreground,
            f1_background: pixel_scores.f1_background,
            iou_foreground: pixel_scores.iou_foreground,
            iou_background: pixel_scores.iou_background,
            roc_auc: mean_of(|row| row.roc_auc),
            inverted: mean_of(ImageRow::inverted),
            covered_area: mean_of(|row| row.covered_area),
            true_area: mean_of(|row| row.true_area),
        }
    }

    /// One interval for every mean over images that exists.
    fn intervals(&self) -> BTreeMap<String, Interval> {
        let means: [(&str, Value); 7] = [
            ("classification_error", ImageRow::classification_error),
            ("localizer_classification_error", ImageRow::localizer_classification_error),
            ("gt_known_localization", ImageRow::localized),
            ("top1_localization", ImageRow::localized_and_classified),
            ("inverted", ImageRow::inverted),
            ("covered_area", |row| row.covered_area),
            ("true_area", |row| row.true_area),
        ];
        let mut columns: Vec<_> = means.map(|(name, value)| (name, self.column(value))).into();
        for (index, name) in PixelScores::NAMES.into_iter().enumerate() {
            // One image without the score leaves the mean undefined, and so its interval.
            let values: Option<Vec<f64>> =
                self.scored().map(|row| row.pixels.columns()[index]).collect();
            columns.push((name, values.unwrap_or_default()));
        }
        let intervals = columns.into_iter().filter_map(|(name, values)| {
            Some((name.to_owned(), self.protocol.bootstrap.interval(&values)?))
        });
        intervals.collect()
    }

    /// The images with a map and truth, which alone have pixel scores.
    fn scored(&self) -> impl Iterator<Item = &ImageRow> {
        self.rows.iter().filter(|row| row.true_area.is_some())
    }

    fn column(&self, value: Value) -> Vec<f64> {
        self.rows.iter().filter_map(value).collect()
    }
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

#[cfg(test)]
mod tests;
