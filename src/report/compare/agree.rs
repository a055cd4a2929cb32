//! Checks that reports were measured under the same conditions.

use std::collections::BTreeSet;

use super::Entry;
use crate::{
    digest::Digest,
    error::{Error, Result},
    report::{Report, document::name_of},
};

/// Reads a condition from a report, if it applies to that.
type Fact = fn(&Report) -> Option<String>;

/// The conditions that must agree for scores to be in one table.
const FACTS: [(&str, Fact); 8] = [
    ("split", |report| Some(report.split.to_string())),
    ("images", |report| Some(images(report))),
    ("classes", |report| Some(report.class_names().join(", "))),
    ("foreground of the truth", |report| Some(name_of(&report.conditions.truth_rule))),
    ("threshold", |report| Some(threshold(report))),
    ("class of class-dependent masks", |report| Some(report.conditions.mask_class().to_owned())),
    ("Dice of two empty masks", |report| Some(name_of(&report.evaluation.scores.protocol.empty))),
    // Maps that were not refined go beside refined ones; that is the point of a table.
    ("CRF", |report| report.conditions.crf.map(|crf| crf.name().to_owned())),
];

/// How all reports were measured, a sentence each; an error names everything they differ in.
pub(super) fn conditions(entries: &[Entry]) -> Result<Vec<String>> {
    let differences: Vec<String> = FACTS
        .iter()
        .filter_map(|(condition, fact)| difference(entries, condition, *fact))
        .collect();
    if !differences.is_empty() {
        return Err(Error::Mismatch(differences));
    }
    let Report { split, conditions, evaluation, .. } = &entries[0].report;
    // The images are the same; one dataset may have been given by several paths.
    let data: BTreeSet<String> = entries.iter().map(|entry| entry.report.dataset_name()).collect();
    let scores = &evaluation.scores;
    let mut sentences = vec![
        format!(
            "{} {split} images of {}, {} of them with masks",
            scores.images,
            Vec::from_iter(data).join(" and "),
            scores.images_with_truth
        ),
        format!("threshold {}", threshold(&entries[0].report)),
        format!("class-dependent masks are of the {}", conditions.mask_class()),
    ];
    let crf = entries.iter().find_map(|entry| entry.report.conditions.crf);
    sentences.extend(crf.map(|crf| format!("CRF preset {}, where a table has it", crf.name())));
    let networks: BTreeSet<&str> =
        entries.iter().filter_map(|entry| entry.report.conditions.backbone.as_deref()).collect();
    if !networks.is_empty() {
        sentences.push(format!("backbone {}", Vec::from_iter(networks).join(" or ")));
    }
    if conditions.oracle_label {
        sentences.push("every method was told the true class (oracle)".to_owned());
    }
    Ok(sentences)
}

/// The values of a condition with the reports that have them, if they differ.
fn difference(entries: &[Entry], condition: &str, fact: Fact) -> Option<String> {
    let mut values: Vec<(String, Vec<String>)> = Vec::new();
    for entry in entries {
        let Some(value) = fact(&entry.report) else { continue };
        let folder = format!("`{}`", entry.folder.display());
        match values.iter_mut().find(|(known, _)| *known == value) {
            Some((_, folders)) => folders.push(folder),
            None => values.push((value, vec![folder])),
        }
    }
    let each = |(value, folders): &(String, Vec<String>)| {
        let more = match folders.len() - 1 {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        format!("{value} in {}{more}", folders[0])
    };
    let all = values.iter().map(each).collect::<Vec<_>>().join("; ");
    (values.len() > 1).then(|| format!("{condition}: {all}"))
}

/// How many images, and a number that changes when they or their labels do.
fn images(report: &Report) -> String {
    let mut digest = Digest::default();
    let rows = &report.evaluation.images;
    for row in rows {
        digest.add(row.id.as_bytes());
        digest.add(&[0xff]);
        digest.add(&(row.label as u64).to_le_bytes());
    }
    format!("{} (their names hash to {:.8})", rows.len(), digest.hex())
}

fn threshold(report: &Report) -> String {
    report.evaluation.scores.protocol.threshold.rule().to_string()
}
