//! The scores that every summary shows, in one order and under one name.

use crate::metrics::{Interval, Scores};

/// One score of the headline.
#[derive(Debug, Clone, PartialEq)]
pub struct Headline {
    /// Its name for people.
    pub name: &'static str,
    /// What it says, in a few words.
    pub meaning: &'static str,
    /// In percent; `None` where it does not exist.
    pub score: Option<f64>,
    /// Where it would lie had other images been drawn.
    pub interval: Option<Interval>,
}

impl Headline {
    /// The score in percent, or a dash.
    pub fn score_text(&self) -> String {
        percent(self.score)
    }

    /// The interval in percent, or nothing.
    pub fn interval_text(&self) -> String {
        let text = |Interval { low, high }| format!("{low:.2} to {high:.2}");
        self.interval.map_or_else(String::new, text)
    }
}

/// A score in percent, or a dash where it does not exist.
pub fn percent(score: Option<f64>) -> String {
    score.map_or_else(|| "-".to_owned(), |score| format!("{score:.2}"))
}

/// The scores that every summary shows.
pub fn headline(scores: &Scores) -> Vec<Headline> {
    let row = |name, key: &str, meaning, score| Headline {
        name,
        meaning,
        score,
        interval: scores.intervals.get(key).copied(),
    };
    let Scores { mean, .. } = scores;
    let mut rows = vec![
        row(
            "Classification error",
            "classification_error",
            "images whose class is wrong",
            scores.classification_error,
        ),
        row(
            "F1⁺ (Dice of foreground)",
            "f1_foreground",
            "at the threshold, mean over images",
            mean.f1_foreground,
        ),
        row(
            "F1⁻ (Dice of background)",
            "f1_background",
            "at the threshold, mean over images",
            mean.f1_background,
        ),
        row("IoU", "iou_mean", "foreground and background, mean over images", mean.iou_mean),
        row("Precision", "precision", "marked pixels that are right", mean.precision),
        row("Recall", "recall", "true pixels that are marked", mean.recall),
        row("PR area, foreground", "", "averaged curve, any threshold", scores.pr_auc_foreground),
        row("PR area, background", "", "averaged curve, any threshold", scores.pr_auc_background),
        row("ROC area", "", "averaged curve, any threshold", scores.roc_auc),
        row(
            "Inverted maps",
            "inverted",
            "images whose background has the higher scores (ROC area below 50)",
            scores.inverted,
        ),
        row(
            "Covered area",
            "covered_area",
            "pixels that are marked, mean over images",
            scores.covered_area,
        ),
        row(
            "True area",
            "true_area",
            "pixels that are foreground, mean over images",
            scores.true_area,
        ),
        row("PxAP", "", "all pixels together, any threshold", scores.pxap),
        row(
            "MaxBoxAcc",
            "",
            "largest box, IoU 0.5, best threshold on this split",
            scores.max_box_acc,
        ),
        row(
            "MaxBoxAccV2",
            "",
            "any box, IoU 0.3/0.5/0.7, best thresholds on this split",
            scores.max_box_acc_v2,
        ),
        row(
            "GT-known localization",
            "gt_known_localization",
            "largest box, IoU 0.5, at the threshold",
            scores.gt_known_localization,
        ),
        row(
            "Top-1 localization",
            "top1_localization",
            "the same, and the class is right",
            scores.top1_localization,
        ),
    ];
    if let Some(found) = &scores.decidability {
        rows.extend([
            row(
                "Decidability, nats",
                "",
                "held-out log-loss of the class, background less foreground; needs no masks",
                Some(found.difference),
            ),
            row(
                "Held-out error, foreground",
                "",
                "class told from features under the map",
                Some(found.foreground.error),
            ),
            row(
                "Held-out error, background",
                "",
                "class told from features beside it",
                Some(found.background.error),
            ),
        ]);
    }
    rows
}
