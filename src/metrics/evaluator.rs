//! From the summaries of single images to the scores of a split.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{
    AveragedCurve, BoxAccuracy, BoxAccuracyCurve, ClassRow, Confusion, Curve, Curves, Decidability,
    ImageRow, ImageSummary, Interval, PixelCounts, PixelHistogram, PixelScores, PixelSummary,
    Protocol, Scores, Sweep, SweepCurve, Trivial,
    record::{Pixels, Record},
};

/// Adds up a split image by image.
///
/// Summaries must come in the same order each time, that of the manifest:
/// sums of fractions depend on it, and equal runs shall give equal bytes.
#[derive(Debug, Clone)]
pub struct Evaluator {
    classes: Vec<String>,
    protocol: Protocol,
    records: Vec<Record>,
    classifier: Confusion,
    localizer: Confusion,
    pooled: PixelCounts,
    histogram: PixelHistogram,
    sweep: Sweep,
    foreground: AveragedCurve,
    background: AveragedCurve,
    roc: AveragedCurve,
    boxes: BoxAccuracy,
    /// Features under the map and beside it, with the label, of the images that have them.
    foregrounds: Vec<Vec<f32>>,
    backgrounds: Vec<Vec<f32>>,
    pooled_labels: Vec<usize>,
}

/// All that an evaluation found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Evaluation {
    /// The headline.
    pub scores: Scores,
    /// One row per class.
    pub classes: Vec<ClassRow>,
    /// One row per image, in the order they came.
    pub images: Vec<ImageRow>,
    /// What the classifier took for what; `None` for a method without one.
    pub confusion: Option<Confusion>,
    /// Averaged curves.
    pub curves: Curves,
    /// Dice at every threshold.
    pub sweep: SweepCurve,
    /// Right boxes at every threshold.
    pub box_accuracy: Option<BoxAccuracyCurve>,
}

impl Evaluator {
    /// Nothing seen yet of a dataset with these classes.
    pub fn new(classes: &[String], protocol: Protocol) -> Self {
        Self {
            classes: classes.to_vec(),
            protocol,
            records: Vec::new(),
            classifier: Confusion::new(classes.len()),
            localizer: Confusion::new(classes.len()),
            pooled: PixelCounts::default(),
            histogram: PixelHistogram::default(),
            sweep: Sweep::new(protocol.empty),
            foreground: AveragedCurve::default(),
            background: AveragedCurve::default(),
            roc: AveragedCurve::default(),
            boxes: BoxAccuracy::default(),
            foregrounds: Vec::new(),
            backgrounds: Vec::new(),
            pooled_labels: Vec::new(),
        }
    }

    /// Adds one image.
    pub fn accumulate(&mut self, image: ImageSummary) {
        let ImageSummary { id, label, classifier, localizer, threshold, pixels, boxes, sides } =
            image;
        assert!(label < self.classes.len(), "label {label} is below {}", self.classes.len());
        if let Some(predicted_class) = classifier {
            self.classifier.accumulate(label, predicted_class.class);
        }
        if let Some(predicted_class) = localizer {
            self.localizer.accumulate(label, predicted_class.class);
        }
        if let Some((summary, _)) = &boxes {
            self.boxes.accumulate(summary);
        }
        if let Some(sides) = sides {
            self.foregrounds.push(sides.foreground);
            self.backgrounds.push(sides.background);
            self.pooled_labels.push(label);
        }
        let pixels = pixels.map(|pixels| self.accumulate_pixels(&pixels));
        let box_overlap = boxes.map(|(_, overlap)| overlap);
        self.records.push(Record {
            id,
            label,
            classifier,
            localizer,
            threshold,
            pixels,
            box_overlap,
        });
    }

    fn accumulate_pixels(&mut self, image: &PixelSummary) -> Pixels {
        let PixelSummary { counts, histogram, curves, trivial } = image;
        self.pooled.accumulate(counts);
        self.histogram.accumulate(histogram);
        self.sweep.accumulate(histogram);
        if let Some(curves) = curves {
            let sums = [&mut self.foreground, &mut self.background, &mut self.roc];
            for (sum, curve) in
                sums.into_iter().zip([&curves.foreground, &curves.background, &curves.roc])
            {
                if let Some(curve) = curve {
                    sum.accumulate(curve);
                }
            }
        }
        Pixels {
            scores: PixelScores::of(counts, self.protocol.empty),
            roc_auc: curves.as_ref().and_then(|curves| curves.roc_auc).map(|auc| 100.0 * auc),
            covered_area: counts.covered_area(),
            true_area: counts.true_area(),
            no_foreground: counts.both_empty(),
            no_background: counts.complement().both_empty(),
            trivial: *trivial,
        }
    }

    /// The scores of all images so far.
    pub fn compute(&self) -> Evaluation {
        let curves = Curves {
            precision_recall_foreground: self.foreground.compute(),
            precision_recall_background: self.background.compute(),
            roc: self.roc.compute(),
        };
        let box_accuracy = self.boxes.compute();
        Evaluation {
            scores: self.scores(&curves, box_accuracy.as_ref()),
            classes: (0..self.classes.len()).map(|class| self.class_row(class)).collect(),
            images: self.records.iter().map(Record::row).collect(),
            confusion: (self.classifier.images() > 0).then(|| self.classifier.clone()),
            curves,
            sweep: self.sweep.compute(),
            box_accuracy,
        }
    }

    fn scores(&self, curves: &Curves, boxes: Option<&BoxAccuracyCurve>) -> Scores {
        let pixels = || self.records.iter().filter_map(|record| record.pixels.as_ref());
        let auc = |curve: &Option<Curve>| curve.as_ref().map(|curve| curve.auc);
        let pooled = pixels().next().map(|_| PixelScores::of(&self.pooled, self.protocol.empty));
        Scores {
            images: self.records.len() as u64,
            images_with_truth: pixels().count() as u64,
            images_without_foreground: pixels().filter(|p| p.no_foreground).count() as u64,
            images_without_background: pixels().filter(|p| p.no_background).count() as u64,
            truth_foreground: (self.pooled.pixels() > 0).then(|| self.pooled.true_area()),
            classification_error: self.classifier.error(),
            localizer_classification_error: self.localizer.error(),
            chance_error: self.chance_error(),
            mean: PixelScores::mean(pixels().map(|pixels| &pixels.scores)),
            trivial: Trivial::mean(&pixels().map(|pixels| pixels.trivial).collect::<Vec<_>>()),
            pooled: pooled.unwrap_or_default(),
            pr_auc_foreground: auc(&curves.precision_recall_foreground),
            pr_auc_background: auc(&curves.precision_recall_background),
            roc_auc: auc(&curves.roc),
            inverted: mean(&self.column(Record::inverted)),
            covered_area: mean(&self.column(Record::covered_area)),
            true_area: mean(&self.column(Record::true_area)),
            pxap: self.histogram.compute(),
            max_box_acc: boxes.map(BoxAccuracyCurve::max_box_acc),
            max_box_acc_v2: boxes.map(BoxAccuracyCurve::max_box_acc_v2),
            gt_known_localization: mean(&self.column(Record::localized)),
            top1_localization: mean(&self.column(Record::localized_and_classified)),
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
        self.records.iter().for_each(|record| images[record.label] += 1);
        let (total, most) = (self.records.len() as f64, images.into_iter().max()?);
        (most > 0).then(|| 100.0 * (1.0 - most as f64 / total))
    }

    fn class_row(&self, class: usize) -> ClassRow {
        let records = || self.records.iter().filter(move |record| record.label == class);
        let pixels = records().filter_map(|record| record.pixels.as_ref());
        let pixel_scores = PixelScores::mean(pixels.map(|pixels| &pixels.scores));
        let mean_of = |value: fn(&Record) -> Option<f64>| {
            mean(&records().filter_map(value).collect::<Vec<f64>>())
        };
        ClassRow {
            class: self.classes[class].clone(),
            images: records().count() as u64,
            classification_error: self.classifier.class_error(class),
            localizer_classification_error: self.localizer.class_error(class),
            f1_foreground: pixel_scores.f1_foreground,
            f1_background: pixel_scores.f1_background,
            iou_foreground: pixel_scores.iou_foreground,
            iou_background: pixel_scores.iou_background,
            roc_auc: mean_of(Record::roc_auc),
            inverted: mean_of(Record::inverted),
            covered_area: mean_of(Record::covered_area),
            true_area: mean_of(Record::true_area),
        }
    }

    /// One interval for every mean over images that exists.
    fn intervals(&self) -> BTreeMap<String, Interval> {
        let mut columns = vec![
            ("classification_error", self.column(|r| r.error(r.classifier))),
            ("localizer_classification_error", self.column(|r| r.error(r.localizer))),
            ("gt_known_localization", self.column(Record::localized)),
            ("top1_localization", self.column(Record::localized_and_classified)),
            ("inverted", self.column(Record::inverted)),
            ("covered_area", self.column(Record::covered_area)),
            ("true_area", self.column(Record::true_area)),
        ];
        for (index, name) in PixelScores::NAMES.into_iter().enumerate() {
            let scores = self.records.iter().filter_map(|record| record.pixels.as_ref());
            // One image without the score leaves the mean undefined, and so its interval.
            let values: Option<Vec<f64>> = scores.map(|p| p.scores.columns()[index]).collect();
            columns.push((name, values.unwrap_or_default()));
        }
        let intervals = columns.into_iter().filter_map(|(name, values)| {
            Some((name.to_owned(), self.protocol.bootstrap.interval(&values)?))
        });
        intervals.collect()
    }

    fn column(&self, value: impl Fn(&Record) -> Option<f64>) -> Vec<f64> {
        self.records.iter().filter_map(value).collect()
    }
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

#[cfg(test)]
mod tests;
