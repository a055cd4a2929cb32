//! What an evaluation came to, for programs and for people.

use std::path::Path;

use anyhow::Context;
use pinpoint::report::{Report, headline, warnings};
use serde_json::{Value, json};

use crate::ui::{pad_left, pad_right};

/// The output for programs.
pub(super) fn document(report: &Report, folder: Option<&Path>) -> anyhow::Result<Value> {
    let mut document = serde_json::to_value(&report.evaluation.scores).context("plain data")?;
    document["method"] = json!(report.method);
    document["split"] = json!(report.split);
    document["conditions"] = json!(report.conditions);
    document["training"] = json!(report.training);
    document["warnings"] = json!(warnings(report));
    document["report"] = json!(folder.map(|folder| folder.display().to_string()));
    Ok(document)
}

/// The output for people.
pub(super) fn table(report: &Report) -> Vec<String> {
    let scores = &report.evaluation.scores;
    let mut lines = vec![format!(
        "{} on {} {} images, {} with masks; ↑ higher, ↓ lower is better [95 % interval], threshold {}{}{}",
        report.method,
        scores.images,
        report.split,
        scores.images_with_truth,
        scores.protocol.threshold.rule(),
        report.conditions.crf.map_or_else(String::new, |crf| format!(", CRF {}", crf.name())),
        if report.conditions.oracle_label { ", told the true class (oracle)" } else { "" },
    )];
    lines.extend(headline(scores).iter().map(|row| {
        let unit = if row.score.is_some() { row.unit } else { "" };
        let interval = row.interval.map_or_else(String::new, |interval| {
            format!("[{:.2}, {:.2}]", interval.low, interval.high)
        });
        let line = format!(
            "  {} {} {} {} {} {}",
            pad_right(row.name, 26),
            row.arrow(),
            pad_left(&row.score_text(), 7),
            pad_right(unit, 4),
            pad_right(&interval, 17),
            row.trivial_text(),
        );
        line.trim_end().to_owned()
    }));
    lines
}
