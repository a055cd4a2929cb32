//! Thresholds of score maps, and the rules by which they are chosen.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::stats::otsu;

/// How the threshold of a mask is chosen, which is recorded with every score.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "RuleText", into = "String")]
pub enum ThresholdRule {
    /// The same for every image; the paper's is 0.5.
    Fixed(f32),
    /// Per image, by Otsu's method.
    Otsu,
    /// Per image, this percentile of its scores.
    Percentile(f32),
    /// The same for every image, tuned on the validation split.
    BestOnValid,
    /// The same for every image, tuned on the very split that is scored: an upper bound.
    Oracle,
}

/// A threshold rule that is ready to be applied.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Threshold {
    rule: ThresholdRule,
    /// The threshold for every image; `None` if each has its own.
    value: Option<f32>,
}

/// A rule as text, which is how reports have it, or a plain number.
#[derive(Deserialize)]
#[serde(untagged)]
enum RuleText {
    Number(f32),
    Text(String),
}

const ORACLE_LABEL: &str = "oracle (tuned on the scored split)";

impl Default for ThresholdRule {
    fn default() -> Self {
        Self::Fixed(0.5)
    }
}

impl ThresholdRule {
    /// The threshold, if no split has to be scored first.
    ///
    /// `None` for the two tuned rules: those get theirs from a
    /// [`SweepCurve`](super::SweepCurve), through [`ThresholdRule::tuned`].
    pub fn ready(self) -> Option<Threshold> {
        match self {
            Self::Fixed(value) => Some(Threshold { rule: self, value: Some(value) }),
            Self::Otsu | Self::Percentile(_) => Some(Threshold { rule: self, value: None }),
            Self::BestOnValid | Self::Oracle => None,
        }
    }

    /// The threshold that a sweep found for a tuned rule.
    pub fn tuned(self, value: f32) -> Threshold {
        assert!(self.ready().is_none(), "`{self}` is not tuned");
        Threshold { rule: self, value: Some(value) }
    }
}

impl Default for Threshold {
    fn default() -> Self {
        Self { rule: ThresholdRule::Fixed(0.5), value: Some(0.5) }
    }
}

impl Threshold {
    /// The rule that the threshold was chosen by.
    pub fn rule(&self) -> ThresholdRule {
        self.rule
    }

    /// The threshold for every image; `None` if each has its own.
    pub fn value(&self) -> Option<f32> {
        self.value
    }

    /// The threshold of one image with these scores; foreground is `score >= threshold`.
    pub fn at(&self, scores: &[f32]) -> f32 {
        match (self.value, self.rule) {
            (Some(value), _) => value,
            (None, ThresholdRule::Percentile(percent)) => percentile(scores, percent),
            (None, _) => otsu(scores).unwrap_or(0.5),
        }
    }
}

impl fmt::Display for ThresholdRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(value) => write!(f, "{value}"),
            Self::Otsu => f.write_str("otsu"),
            Self::Percentile(percent) => write!(f, "percentile:{percent}"),
            Self::BestOnValid => f.write_str("best-on-valid"),
            Self::Oracle => f.write_str(ORACLE_LABEL),
        }
    }
}

impl FromStr for ThresholdRule {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let rule = match text {
            "otsu" => Some(Self::Otsu),
            "best-on-valid" | "valid" => Some(Self::BestOnValid),
            "oracle" | ORACLE_LABEL => Some(Self::Oracle),
            _ => match text.strip_prefix("percentile:") {
                Some(percent) => number_up_to(percent, 100.0).map(Self::Percentile),
                None => number_up_to(text, 1.0).map(Self::Fixed),
            },
        };
        rule.ok_or_else(|| {
            format!(
                "`{text}` is not a threshold rule\nhint: use a number from 0 to 1, `otsu`, \
                 `percentile:80`, `valid` or `oracle`"
            )
        })
    }
}

fn number_up_to(text: &str, highest: f32) -> Option<f32> {
    text.parse().ok().filter(|number| (0.0..=highest).contains(number))
}

impl TryFrom<RuleText> for ThresholdRule {
    type Error = String;

    fn try_from(text: RuleText) -> Result<Self, Self::Error> {
        match text {
            RuleText::Number(number) => number.to_string().parse(),
            RuleText::Text(text) => text.parse(),
        }
    }
}

impl From<ThresholdRule> for String {
    fn from(rule: ThresholdRule) -> Self {
        rule.to_string()
    }
}

/// The score `percent` of the way up the ranking; between two, the higher one.
///
/// NumPy's `percentile(…, method="higher")`.
fn percentile(scores: &[f32], percent: f32) -> f32 {
    let rank = (f64::from(percent) / 100.0 * (scores.len() - 1) as f64).ceil() as usize;
    let mut ranked = scores.to_vec();
    *ranked.select_nth_unstable_by(rank, f32::total_cmp).1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_reads_back_what_it_writes() {
        use ThresholdRule::{BestOnValid, Fixed, Oracle, Otsu, Percentile};
        for (text, rule) in [
            ("0.5", Fixed(0.5)),
            ("0", Fixed(0.0)),
            ("otsu", Otsu),
            ("percentile:80", Percentile(80.0)),
            ("percentile:99.5", Percentile(99.5)),
            ("best-on-valid", BestOnValid),
            ("oracle (tuned on the scored split)", Oracle),
        ] {
            assert_eq!(text.parse(), Ok(rule));
            assert_eq!(rule.to_string(), text);
            let json = serde_json::to_string(&rule).unwrap();
            assert_eq!(json, format!("\"{text}\""));
            assert_eq!(serde_json::from_str::<ThresholdRule>(&json).unwrap(), rule);
        }
        assert_eq!("oracle".parse(), Ok(Oracle));
        assert_eq!(serde_json::from_str::<ThresholdRule>("0.25").unwrap(), Fixed(0.25));
    }

    #[test]
    fn what_is_no_rule_is_refused_with_the_rules_there_are() {
        for text in ["", "1.5", "-0.1", "nan", "inf", "percentile:101", "percentile:", "best"] {
            let problem = text.parse::<ThresholdRule>().unwrap_err();
            assert!(problem.contains("hint: use a number from 0 to 1"), "{problem}");
        }
        assert!(serde_json::from_str::<ThresholdRule>("2").is_err());
    }

    #[test]
    fn tuned_rules_wait_for_their_sweep() {
        assert_eq!(ThresholdRule::Oracle.ready(), None);
        assert_eq!(ThresholdRule::BestOnValid.tuned(0.3).at(&[0.9]), 0.3);
        assert_eq!(ThresholdRule::default().ready(), Some(Threshold::default()));
    }

    #[test]
    fn otsu_cuts_between_two_heaps_and_leaves_a_constant_map_to_the_paper() {
        let otsu = ThresholdRule::Otsu.ready().unwrap();
        let cut = otsu.at(&[0.10, 0.12, 0.11, 0.80, 0.82]);
        assert!(cut > 0.12 && cut <= 0.80, "{cut}");
        assert_eq!(otsu.at(&[0.3; 4]), 0.5);
    }

    #[test]
    fn a_percentile_leaves_the_rest_above_it() {
        let scores: Vec<f32> = (0..=10).rev().map(|k| k as f32 / 10.0).collect();
        let at = |percent| ThresholdRule::Percentile(percent).ready().unwrap().at(&scores);
        assert_eq!([at(0.0), at(75.0), at(80.0), at(100.0)], [0.0, 0.8, 0.8, 1.0]);
    }
}
