//! Rows for spreadsheets, and the page for people who read text.

use std::fmt::Write as _;

use serde::Serialize;

use super::{
    Report,
    headline::{headline, percent},
    spreadsheet,
};
use crate::metrics::{ClassRow, PixelScores};

/// Columns of `metrics.csv` that follow the pixel scores.
const AFTER: [&str; 4] = ["roc_auc", "covered_area", "true_area", "box_iou"];

/// One line per image, as `metrics.csv` has it; labels by name.
pub fn images_csv(report: &Report) -> Vec<u8> {
    let classes = report.class_names();
    let mut table = csv::Writer::from_writer(Vec::new());
    let before = ["id", "class", "predicted", "probability", "localizer_predicted", "threshold"];
    let header = before.into_iter().chain(PixelScores::NAMES).chain(AFTER);
    table.write_record(header).expect("memory takes any row");
    for row in &report.evaluation.images {
        let name = |class: Option<usize>| {
            class.map_or_else(String::new, |class| spreadsheet::name(classes[class]).into_owned())
        };
        let scores = [
            row.f1_foreground,
            row.f1_background,
            row.iou_foreground,
            row.iou_background,
            row.iou_mean,
            row.precision,
            row.recall,
            row.specificity,
            row.pixel_accuracy,
            row.roc_auc,
            row.covered_area,
            row.true_area,
            row.box_iou,
        ];
        let mut record = vec![
            spreadsheet::name(&row.id).into_owned(),
            name(Some(row.label)),
            name(row.predicted),
            row.probability.map_or_else(String::new, |p| p.to_string()),
            name(row.localizer_predicted),
            row.threshold.map_or_else(String::new, |t| t.to_string()),
        ];
        record.extend(scores.map(|score| score.map_or_else(String::new, |s| s.to_string())));
        table.write_record(&record).expect("memory takes any row");
    }
    table.into_inner().expect("writing to memory does not fail")
}

/// One line per class, as `classes.csv` has it.
pub fn classes_csv(report: &Report) -> Vec<u8> {
    let named = |row: &ClassRow| ClassRow {
        class: spreadsheet::name(&row.class).into_owned(),
        ..row.clone()
    };
    csv_of(&report.evaluation.classes.iter().map(named).collect::<Vec<_>>())
}

fn csv_of(rows: &[impl Serialize]) -> Vec<u8> {
    let mut table = csv::Writer::from_writer(Vec::new());
    rows.iter().for_each(|row| table.serialize(row).expect("rows are plain data"));
    table.into_inner().expect("writing to memory does not fail")
}

/// The report as `report.md` has it.
pub fn markdown(report: &Report) -> String {
    let mut text = format!(
        "# {} on {} ({})\n\nScores in percent, with 95 % intervals over images where they are \
         means over images.\n\n| score | value | interval | |\n|---|---:|---:|---|\n",
        cell(&report.method),
        cell(&report.conditions.data),
        report.split
    );
    for row in headline(&report.evaluation.scores) {
        let (score, interval) = (row.score_text(), row.interval_text());
        line(&mut text, &[row.name, &score, &interval, row.meaning]);
    }
    text.push_str("\n## Protocol\n\n| | |\n|---|---|\n");
    for (question, answer) in report.protocol() {
        line(&mut text, &[question, &cell(&answer)]);
    }
    text.push_str(
        "\n## Classes\n\n| class | images | error | F1⁺ | F1⁻ | ROC area | inverted | covered | true area |\n\
         |---|---:|---:|---:|---:|---:|---:|---:|---:|\n",
    );
    for row in &report.evaluation.classes {
        line(
            &mut text,
            &[
                &cell(&row.class),
                &row.images.to_string(),
                &percent(row.classification_error),
                &percent(row.f1_foreground),
                &percent(row.f1_background),
                &percent(row.roc_auc),
                &percent(row.inverted),
                &percent(row.covered_area),
                &percent(row.true_area),
            ],
        );
    }
    text.push_str(
        "\nFigures are in `figures/`, a line per image in `metrics.csv`, a page to look at in \
         `report.html`.\n",
    );
    text
}

pub(super) fn line(text: &mut String, cells: &[&str]) {
    writeln!(text, "| {} |", cells.join(" | ")).expect("a string takes any text");
}

/// Text that stays within its cell, whatever it holds.
pub(super) fn cell(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '|' | '\\' | '`' | '*' | '_' | '[' | ']' | '#' => safe.extend(['\\', letter]),
            '<' => safe.push_str("&lt;"),
            '&' => safe.push_str("&amp;"),
            _ if letter.is_control() => safe.push(' '),
            _ => safe.push(letter),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::document::tests::example;

    #[test]
    fn there_is_a_line_per_image_and_empty_cells_where_a_score_does_not_exist() {
        let text = String::from_utf8(images_csv(&example())).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 4);
        assert!(lines[1].starts_with("test/<0>.png,benign,benign,0.75,benign,0.5,100,100,"));
        assert!(lines[3].ends_with(",0.5,,,,,,,,,,,,,"), "{}", lines[3]);
    }

    #[test]
    fn every_class_has_a_line_under_the_names_of_its_scores() {
        let text = String::from_utf8(classes_csv(&example())).unwrap();
        assert!(text.starts_with("class,images,classification_error,"), "{text}");
        assert_eq!(text.lines().count(), 3);
    }

    #[test]
    fn names_cannot_break_out_of_their_cell() {
        assert_eq!(cell("a|b\n`<c>`"), "a\\|b \\`&lt;c>\\`");
        let text = markdown(&example());
        assert!(text.contains("| F1⁺ (Dice of foreground) | 50.00 |"), "{text}");
        assert!(text.contains("&lt;b>&amp;"), "{text}");
        assert!(text.contains("| threshold | 0.5, fixed |"), "{text}");
    }
}
