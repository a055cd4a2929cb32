//! Problems of a method that its scores show, and what to try.

use super::{Report, headline::percent};
use crate::{
    metrics::{PixelScores, Scores, Trivial},
    predict::UNTRAINED,
};

/// A problem of a method that its scores show.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Warning {
    /// What was found.
    pub problem: String,
    /// What to try.
    pub remedy: &'static str,
}

/// The problems that the scores of a report show; a trivial rule has none.
pub fn warnings(report: &Report) -> Vec<Warning> {
    if UNTRAINED.contains(&report.method.as_str()) {
        return Vec::new();
    }
    let scores = &report.evaluation.scores;
    let all = [
        (
            near_chance(scores, "classifier", "classification_error", scores.classification_error),
            "train for longer or with pretrained weights (`--weights`), and look at the labels \
             with `pinpoint data check`",
        ),
        (
            near_chance(
                scores,
                "localizer",
                "localizer_classification_error",
                scores.localizer_classification_error,
            ),
            "its maps tell no classes apart, so masks mean little: train for longer, with \
             pretrained weights (`--weights`) or a smaller `optimizer.backbone_rate`",
        ),
        (
            inverted(scores),
            "the class may be told by the surroundings: compare `--method probe` and a baseline \
             such as `wildcat`, or more rounds of erasing (`erase.rounds`)",
        ),
        (
            below_all_ones(scores),
            "look at the covered and the true area: masks that are too small want a lower \
             threshold (`--threshold valid`), more epochs or `--method probe`",
        ),
        (
            below_centre_ellipse(scores),
            "objects are mostly central, so beat that first: try `--method probe`, pretrained \
             weights (`--weights`), `--threshold valid` or the CRF (`--crf`)",
        ),
    ];
    let found = all.into_iter();
    found.filter_map(|(problem, remedy)| Some(Warning { problem: problem?, remedy })).collect()
}

/// An error that cannot be told from that of always naming the most frequent class.
fn near_chance(scores: &Scores, who: &str, key: &str, error: Option<f64>) -> Option<String> {
    let (error, chance) = (error?, scores.chance_error?);
    let high = scores.intervals.get(key)?.high;
    (chance > 0.0 && high >= chance).then(|| {
        format!(
            "the {who} is near chance: {error:.2} % of classes are wrong (up to {high:.2} % with \
             other images), and {chance:.2} % if every image is given the most frequent class"
        )
    })
}

fn inverted(scores: &Scores) -> Option<String> {
    let inverted = scores.inverted.filter(|share| *share > 50.0)?;
    Some(format!(
        "masks are inverted more often than not: in {inverted:.0} % of the images the background \
         has the higher scores"
    ))
}

fn below_all_ones(scores: &Scores) -> Option<String> {
    let (found, all) = (scores.mean.f1_foreground?, scores.trivial?.all_ones.f1_foreground?);
    (found < all).then(|| {
        format!("F1⁺ {found:.2} is below the {all:.2} of All-ones, which marks every pixel")
    })
}

fn below_centre_ellipse(scores: &Scores) -> Option<String> {
    let (found, ellipse) = (scores.mean.f1_mean()?, scores.trivial?.centre_ellipse.f1_mean()?);
    (found < ellipse).then(|| {
        format!(
            "the mean of F1⁺ and F1⁻, {found:.2}, is below the {ellipse:.2} of an ellipse in the \
             centre of every image"
        )
    })
}

/// What trivial masks score, a sentence for people who read text; nothing without masks.
pub(super) fn trivial_sentence(trivial: Option<&Trivial>) -> Option<String> {
    let Trivial { all_ones, centre_ellipse } = trivial?;
    let pair = |scores: &PixelScores| {
        format!("F1⁺ {}, F1⁻ {}", percent(scores.f1_foreground), percent(scores.f1_background))
    };
    Some(format!(
        "All-ones would have {}; an ellipse in the centre {}",
        pair(all_ones),
        pair(centre_ellipse)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{metrics::Interval, report::document::tests::example};

    /// A report with nothing to say against it.
    fn good() -> Report {
        let mut report = example();
        let scores = &mut report.evaluation.scores;
        scores.chance_error = Some(50.0);
        scores.classification_error = Some(5.0);
        scores.localizer_classification_error = Some(6.0);
        for key in ["classification_error", "localizer_classification_error"] {
            scores.intervals.insert(key.to_owned(), Interval { low: 2.0, high: 12.0 });
        }
        scores.inverted = Some(10.0);
        (scores.mean.f1_foreground, scores.mean.f1_background) = (Some(80.0), Some(90.0));
        let trivial = |foreground, background| PixelScores {
            f1_foreground: Some(foreground),
            f1_background: Some(background),
            ..PixelScores::default()
        };
        scores.trivial =
            Some(Trivial { all_ones: trivial(60.0, 0.0), centre_ellipse: trivial(50.0, 70.0) });
        report
    }

    #[test]
    fn good_scores_and_trivial_rules_have_no_warnings() {
        assert_eq!(warnings(&good()), []);
        let mut trivial = good();
        trivial.method = "all-ones".to_owned();
        trivial.evaluation.scores.mean.f1_foreground = Some(1.0);
        assert_eq!(warnings(&trivial), []);
        let mut old = good();
        (old.evaluation.scores.trivial, old.evaluation.scores.chance_error) = (None, None);
        assert_eq!(warnings(&old), []);
    }

    #[test]
    fn each_warning_has_its_own_reason_and_a_remedy() {
        type Change = fn(&mut Scores);
        let cases: [(Change, &str); 5] = [
            (
                |scores| {
                    let wide = Interval { low: 30.0, high: 52.0 };
                    scores.intervals.insert("classification_error".to_owned(), wide);
                },
                "the classifier is near chance",
            ),
            (
                |scores| {
                    let wide = Interval { low: 30.0, high: 50.0 };
                    scores.intervals.insert("localizer_classification_error".to_owned(), wide);
                },
                "the localizer is near chance",
            ),
            (|scores| scores.inverted = Some(50.5), "inverted more often than not"),
            (
                |scores| scores.mean.f1_foreground = Some(59.99),
                "59.99 is below the 60.00 of All-ones",
            ),
            (
                |scores| scores.mean.f1_background = Some(39.0),
                "59.50, is below the 60.00 of an ellipse",
            ),
        ];
        for (change, problem) in cases {
            let mut report = good();
            change(&mut report.evaluation.scores);
            let found = warnings(&report);
            assert_eq!(found.len(), 1, "{problem}: {found:?}");
            assert!(found[0].problem.contains(problem), "{found:?}");
            assert!(found[0].remedy.contains('`'), "{found:?}");
        }
    }
}
