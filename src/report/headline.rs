//! The scores that every summary shows, in one order and under one name.

use super::table::Better;
use crate::metrics::{Interval, PixelScores, Scores};

/// One score of the headline.
#[derive(Debug, Clone, PartialEq)]
pub struct Headline {
    /// Its displayed name.
    pub name: &'static str,
    /// Its meaning, in a few words.
    pub meaning: &'static str,
    /// Its unit.
    pub unit: &'static str,
    /// Which values are better; `None` for a score that only describes.
    pub better: Option<Better>,
    /// `None` where it does not exist.
    pub score: Option<f64>,
    /// Its confidence interval.
    pub interval: Option<Interval>,
    /// The same score of a trivial rule: All-ones, an ellipse in the centre, the most frequent
    /// class.
    pub trivial: Vec<(&'static str, f64)>,
}

impl Headline {
    /// The score, or a dash.
    pub fn score_text(&self) -> String {
        percent(self.score)
    }

    /// The interval, or nothing.
    pub fn interval_text(&self) -> String {
        let text = |Interval { low, high }| format!("{low:.2} to {high:.2}");
        self.interval.map_or_else(String::new, text)
    }

    /// The scores of trivial rules, or nothing.
    pub fn trivial_text(&self) -> String {
        let each = |(name, score): &(&str, f64)| format!("{name} {score:.2}");
        self.trivial.iter().map(each).collect::<Vec<_>>().join(", ")
    }

    /// An arrow that says which values are better, or a space.
    pub fn arrow(&self) -> &'static str {
        self.better.map_or(" ", Better::arrow)
    }
}

/// A score, or a dash where it does not exist.
pub(super) fn percent(score: Option<f64>) -> String {
    score.map_or_else(|| "-".to_owned(), |score| format!("{score:.2}"))
}

/// Number of scores, the first ones, that summarize all.
pub(super) fn leading(rows: &[Headline]) -> usize {
    rows.iter().position(|row| row.name == "Precision").unwrap_or(rows.len())
}

const AT_THRESHOLD: &str = "at the threshold, mean over images";
const AVERAGED: &str = "averaged curve, any threshold";

/// The scores that every summary shows.
pub fn headline(scores: &Scores) -> Vec<Headline> {
    let (lower, higher) = (Some(Better::Lower), Some(Better::Higher));
    let row = |name, key: &str, meaning, better: Option<Better>, score| Headline {
        name,
        meaning,
        unit: "%",
        better,
        score,
        interval: scores.intervals.get(key).copied(),
        trivial: Vec::new(),
    };
    let error = |name, key, meaning, score: Option<f64>| {
        let chance = scores.chance_error.filter(|_| score.is_some());
        let trivial = chance.map(|chance| ("most frequent class", chance));
        Headline { trivial: trivial.into_iter().collect(), ..row(name, key, meaning, lower, score) }
    };
    let pixel = |name, key, meaning, of: fn(&PixelScores) -> Option<f64>| {
        let trivial = scores.trivial.as_ref();
        let masks = [
            ("All-ones", trivial.and_then(|trivial| of(&trivial.all_ones))),
            ("centre ellipse", trivial.and_then(|trivial| of(&trivial.centre_ellipse))),
        ];
        let scored = masks.into_iter().filter_map(|(name, score)| Some((name, score?)));
        Headline { trivial: scored.collect(), ..row(name, key, meaning, higher, of(&scores.mean)) }
    };
    // A score under its name in `Scores`, by which its interval is found.
    macro_rules! row {
        ($name:literal, $key:ident, $better:expr, $meaning:expr) => {
            row($name, stringify!($key), $meaning, $better, scores.$key)
        };
    }
    let mut rows = vec![
        error(
            "Classification error",
            "classification_error",
            "images whose class is wrong, by the classifier",
            scores.classification_error,
        ),
        error(
            "Localizer's class error",
            "localizer_classification_error",
            "images whose class is wrong, by the localizer",
            scores.localizer_classification_error,
        ),
    ];
    if scores.localizer_classification_error.is_none() {
        rows.pop();
    }
    rows.extend([
        pixel("F1⁺ (Dice of foreground)", "f1_foreground", AT_THRESHOLD, |s| s.f1_foreground),
        pixel("F1⁻ (Dice of background)", "f1_background", AT_THRESHOLD, |s| s.f1_background),
        pixel("IoU", "iou_mean", "foreground and background, mean over images", |s| s.iou_mean),
        pixel("Precision", "precision", "marked pixels that are right", |s| s.precision),
        pixel("Recall", "recall", "true pixels that are marked", |s| s.recall),
        row!("PR area, foreground", pr_auc_foreground, higher, AVERAGED),
        row!("PR area, background", pr_auc_background, higher, AVERAGED),
        row!("ROC area", roc_auc, higher, AVERAGED),
        row!(
            "Inverted maps",
            inverted,
            lower,
            "images whose background has the higher scores (ROC area below 50)"
        ),
        row!("Covered area", covered_area, None, "pixels that are marked, mean over images"),
        row!("True area", true_area, None, "pixels that are foreground, mean over images"),
        row!("PxAP", pxap, higher, "all pixels together, any threshold"),
        row!(
            "MaxBoxAcc",
            max_box_acc,
            higher,
            "largest box, IoU 0.5, best threshold on this split"
        ),
        row!(
            "MaxBoxAccV2",
            max_box_acc_v2,
            higher,
            "any box, IoU 0.3/0.5/0.7, best thresholds on this split"
        ),
        row!(
            "GT-known localization",
            gt_known_localization,
            higher,
            "largest box, IoU 0.5, at the threshold"
        ),
        row!("Top-1 localization", top1_localization, higher, "the same, and the class is right"),
    ]);
    if let Some(found) = &scores.decidability {
        let row = |name, meaning, better, score| row(name, "", meaning, better, Some(score));
        let meaning = "held-out log-loss of the class, background less foreground; needs no masks";
        let difference = row("Decidability", meaning, higher, found.difference);
        let (shown, hidden) = (found.foreground.error, found.background.error);
        rows.extend([
            Headline { unit: "nats", ..difference },
            row(
                "Held-out error, foreground",
                "class told from features under the map",
                lower,
                shown,
            ),
            row("Held-out error, background", "class told from features beside it", None, hidden),
        ]);
    }
    rows
}
