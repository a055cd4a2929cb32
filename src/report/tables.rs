//! Rows for spreadsheets, and the page for people who read text.

use super::{
    Report, Warning,
    headline::{Headline, headline},
    spreadsheet,
    table::{
        Better, Column, Row, Table, directed,
        markdown::{self, escape},
    },
    warnings::{trivial_sentence, warnings},
};
use crate::metrics::{ClassRow, PixelScores};

/// One line per image, as `metrics.csv` has it; labels by name.
pub(super) fn images_csv(report: &Report) -> String {
    let classes = report.class_names();
    let name = |class: Option<usize>| {
        class.map_or_else(String::new, |class| spreadsheet::name(classes[class]))
    };
    let before = ["id", "class", "predicted", "probability", "localizer_predicted", "threshold"];
    let after = ["roc_auc", "covered_area", "true_area", "box_iou"];
    let header = [&before[..], &PixelScores::NAMES, &after].concat();
    let rows = report.evaluation.images.iter().map(|row| {
        let before = [
            spreadsheet::name(&row.id),
            name(Some(row.label)),
            name(row.predicted),
            spreadsheet::number(row.probability),
            name(row.localizer_predicted),
            spreadsheet::number(row.threshold),
        ];
        let after = [row.roc_auc, row.covered_area, row.true_area, row.box_iou];
        let scores = row.pixels.columns().into_iter().chain(after).map(spreadsheet::number);
        before.into_iter().chain(scores).collect::<Vec<String>>()
    });
    spreadsheet::csv(&header, rows)
}

/// One line per class, as `classes.csv` has it.
pub(super) fn classes_csv(report: &Report) -> String {
    let mut table = csv::Writer::from_writer(Vec::new());
    for row in &report.evaluation.classes {
        let named = ClassRow { class: spreadsheet::name(&row.class), ..row.clone() };
        table.serialize(named).expect("rows are plain data");
    }
    spreadsheet::text(table)
}

/// The report as `report.md` has it.
pub(super) fn markdown(report: &Report) -> String {
    let (subject, data) = (escape(&report.subject()), escape(&report.dataset_name()));
    let scores = &report.evaluation.scores;
    let mut text = format!(
        "# {subject} on {data}\n\n{}, {} split, {} images.\n",
        escape(&report.method),
        report.split,
        scores.images
    );
    for Warning { problem, remedy } in warnings(report) {
        text.push_str(&format!("\n> Warning: {}.\n> Try: {remedy}.\n", escape(&problem)));
    }
    if let Some(sentence) = trivial_sentence(scores.trivial.as_ref()) {
        text.push_str(&format!("\n{sentence}.\n"));
    }
    let tables = [score_table(&headline(scores)), class_table(report), protocol_table(report)];
    text.extend(tables.iter().map(markdown::section));
    text.push_str(
        "\nFigures are in `figures/`, a line per image in `metrics.csv`, a page to look at in \
         `report.html`.\n",
    );
    text
}

/// Scores with unit, direction, interval and what trivial masks have.
pub(super) fn score_table(rows: &[Headline]) -> Table {
    let row = |row: &Headline| {
        let cells = vec![
            row.score.into(),
            row.unit.to_owned().into(),
            row.interval_text().into(),
            row.trivial_text().into(),
            row.meaning.to_owned().into(),
        ];
        Row { label: directed(row.name, row.better), cells, ..Row::default() }
    };
    Table {
        key: "scores",
        title: "Scores".to_owned(),
        note: "↑ higher is better, ↓ lower is better; intervals hold the middle 95 % of the means \
               over resampled images"
            .to_owned(),
        rows_are: "Score",
        columns: vec![
            Column::number("value", "Value", 2, None),
            Column::words("unit", "Unit"),
            Column::number("interval", "95 % interval", 0, None),
            Column::words("trivial", "Without a method"),
            Column::words("meaning", "What it says"),
        ],
        rows: rows.iter().map(row).collect(),
    }
}

/// Scores of each class.
pub(super) fn class_table(report: &Report) -> Table {
    type Score = fn(&ClassRow) -> Option<f64>;
    let (lower, higher) = (Some(Better::Lower), Some(Better::Higher));
    let column = |key, heading, better| Column::number(key, heading, 2, better);
    let mut scores: Vec<(Column, Score)> = vec![
        (Column::number("images", "Images", 0, None), |row| Some(row.images as f64)),
        (column("classification_error", "Error", lower), |row| row.classification_error),
        (column("f1_foreground", "F1⁺", higher), |row| row.f1_foreground),
        (column("f1_background", "F1⁻", higher), |row| row.f1_background),
        (column("roc_auc", "ROC area", higher), |row| row.roc_auc),
        (column("inverted", "Inverted", lower), |row| row.inverted),
        (column("covered_area", "Covered", None), |row| row.covered_area),
        (column("true_area", "True area", None), |row| row.true_area),
    ];
    if report.evaluation.scores.localizer_classification_error.is_some() {
        let localizer = column("localizer_classification_error", "Localizer's error", lower);
        scores.insert(2, (localizer, |row| row.localizer_classification_error));
    }
    let row = |row: &ClassRow| {
        let cells = scores.iter().map(|(_, score)| score(row).into()).collect();
        Row { label: row.class.clone(), cells, ..Row::default() }
    };
    Table {
        key: "classes",
        title: "Classes".to_owned(),
        note: "Percent, mean over the images of a class".to_owned(),
        rows_are: "Class",
        columns: scores.iter().map(|(column, _)| column.clone()).collect(),
        rows: report.evaluation.classes.iter().map(row).collect(),
    }
}

/// How the scores came about.
pub(super) fn protocol_table(report: &Report) -> Table {
    let row = |(name, value): (&str, String)| Row {
        label: name.to_owned(),
        cells: vec![value.into()],
        ..Row::default()
    };
    Table {
        key: "protocol",
        title: "Protocol".to_owned(),
        note: String::new(),
        rows_are: "What",
        columns: vec![Column::words("answer", "How")],
        rows: report.protocol().into_iter().map(row).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::document::tests::example;

    #[test]
    fn there_is_a_line_per_image_and_empty_cells_where_a_score_does_not_exist() {
        let text = images_csv(&example());
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 4);
        assert!(lines[1].starts_with("test/<0>.png,benign,benign,0.75,benign,0.5,100,100,"));
        assert!(lines[3].ends_with(",0.5,,,,,,,,,,,,,"), "{}", lines[3]);
    }

    #[test]
    fn every_class_has_a_line_under_the_names_of_its_scores() {
        let text = classes_csv(&example());
        assert!(text.starts_with("class,images,classification_error,"), "{text}");
        assert_eq!(text.lines().count(), 3);
    }

    #[test]
    fn names_cannot_break_out_of_their_cell() {
        assert_eq!(escape("a|b\n`<c>`"), "a\\|b \\`&lt;c>\\`");
        let text = markdown(&example());
        assert!(text.contains("| F1⁺ (Dice of foreground) ↑ | 50.00 | % |"), "{text}");
        assert!(text.contains("&lt;b>&amp;"), "{text}");
        assert!(text.contains("| threshold | 0.5, fixed |"), "{text}");
    }
}
