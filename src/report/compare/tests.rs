use std::{fs, path::PathBuf};

use super::*;
use crate::{
    config::Config,
    data::Split,
    metrics::{Decidability, HeldOut, ThresholdRule},
    refine::Preset,
    report::{Training, document::tests::example, table::Change},
};

/// A report with these F1 scores, as a run of that method would have it.
fn entry(method: &str, seed: u64, scores: [f64; 2]) -> Entry {
    let mut report = example();
    report.method = method.to_owned();
    report.conditions.seed = Some(seed);
    report.conditions.crf = None;
    report.settings =
        Some(Box::new(Config { method: method.to_owned(), seed, ..Config::default() }));
    let mean = &mut report.evaluation.scores.mean;
    (mean.f1_foreground, mean.f1_background) = (Some(scores[0]), Some(scores[1]));
    Entry { folder: PathBuf::from(format!("{method}-s{seed}")), name: method.to_owned(), report }
}

fn refined(mut entry: Entry) -> Entry {
    entry.report.conditions.crf = Some(Preset::Glas);
    entry
}

fn rounds(mut entry: Entry, rounds: usize, seconds: f64) -> Entry {
    entry.report.settings.as_mut().unwrap().erase.rounds = rounds;
    entry.report.training = Some(Training { epochs: 2, kept_epoch: None, seconds });
    entry
}

fn table<'a>(comparison: &'a Comparison, key: &str) -> Option<&'a Table> {
    comparison.tables.iter().find(|table| table.key == key)
}

fn lines(entries: Vec<Entry>) -> Vec<String> {
    let text = Comparison::of(entries).unwrap().render(Format::Markdown);
    text.lines().map(str::to_owned).collect()
}

fn problem(entries: Vec<Entry>) -> String {
    Comparison::of(entries).unwrap_err().to_string()
}

#[test]
fn seeds_of_a_set_up_are_one_row_and_the_best_that_learns_from_labels_is_bold() {
    let lines = lines(vec![
        entry("unet", 0, [99.0, 98.0]),
        entry("cam-avg", 0, [60.0, 20.0]),
        entry("cam-avg", 1, [64.0, 20.0]),
        entry("all-ones", 0, [90.0, 0.0]),
        entry("wildcat", 0, [61.0, 30.0]),
    ]);
    let at = lines.iter().position(|line| line.starts_with("## Pixel level: point")).unwrap();
    // Squares 4 + 4 over 1: the deviation of 60 and 64 is √8.
    let expected = [
        "| Method | F1⁺ (%) ↑ | F1⁻ (%) ↑ |",
        "|---|---:|---:|",
        "| All-ones (trivial) | 90.00 | 0.00 |",
        "| CAM-Avg | **62.00** ± 2.83 | 20.00 ± 0.00 |",
        "| Wildcat | 61.00 | **30.00** |",
        "| U-Net (full supervision) | 99.00 | 98.00 |",
    ];
    assert_eq!(lines[at + 2..at + 8], expected);
}

#[test]
fn what_looks_equal_is_equally_good_and_one_alone_has_won_nothing() {
    let best = |entries| -> Vec<bool> {
        let comparison = Comparison::of(entries).unwrap();
        let rows = &table(&comparison, "localization").unwrap().rows;
        rows.iter().map(|row| row.cells[0].best).collect()
    };
    let [a, b, c] = [("cam-avg", 61.004), ("cam-max", 60.996), ("wildcat", 60.99)]
        .map(|(method, score)| entry(method, 0, [score, 0.0]));
    assert_eq!(best(vec![a.clone(), b, c]), [true, true, false]);
    assert_eq!(best(vec![a, entry("unet", 0, [1.0, 1.0])]), [false, false]);
}

#[test]
fn lower_is_better_for_errors() {
    let mut entries = vec![entry("cam-avg", 0, [1.0; 2]), entry("cam-max", 0, [1.0; 2])];
    entries[0].report.evaluation.scores.classification_error = Some(5.0);
    entries[1].report.evaluation.scores.classification_error = Some(4.0);
    let comparison = Comparison::of(entries).unwrap();
    let rows = &table(&comparison, "classification").unwrap().rows;
    assert_eq!([rows[0].cells[0].best, rows[1].cells[0].best], [false, true]);
}

#[test]
fn the_crf_s_changes_are_marked_as_far_as_the_digits_tell() {
    let comparison = Comparison::of(vec![
        entry("cam-avg", 0, [60.0, 50.0]),
        entry("cam-avg", 1, [64.0, 50.0]),
        refined(entry("cam-avg", 0, [59.0, 49.0])),
        refined(entry("cam-avg", 1, [66.0, 50.0])),
        entry("wildcat", 0, [66.901, 50.0]),
        refined(entry("wildcat", 0, [66.904, 50.0])),
        refined(entry("cam-max", 0, [10.0, 10.0])),
    ])
    .unwrap();
    let rows = &table(&comparison, "crf").unwrap().rows;
    let changes: Vec<_> =
        rows.iter().map(|row| [row.cells[0].change, row.cells[1].change]).collect();
    let (up, down) = (Some(Change::Improved), Some(Change::Degraded));
    // 62 → 62.5 and 50 → 49.5; 66.90 → 66.90; nothing to compare with.
    assert_eq!(changes, [[up, down], [None, None], [None, None]]);
    let text = comparison.render(Format::Markdown);
    assert!(text.contains("| CAM-Avg | 62.50⁺ ± 4.95 | 49.50⁻ ± 0.71 |"), "{text}");
    let text = comparison.render(Format::Latex);
    assert!(text.contains("CAM-Avg & $62.50^{+} \\pm 4.95$ & $49.50^{-} \\pm 0.71$"), "{text}");
    let text = comparison.render(Format::Html);
    assert!(text.contains("62.50<sup>+</sup> ± 4.95"), "{text}");
}

#[test]
fn what_ranks_no_pixels_has_no_curve() {
    let entries = vec![entry("all-ones", 0, [1.0; 2]), entry("cam-avg", 0, [1.0; 2])];
    let comparison = Comparison::of(entries).unwrap();
    let rows = |key| table(&comparison, key).unwrap().rows.len();
    assert_eq!((rows("localization"), rows("curves")), (2, 1));
}

#[test]
fn decidability_has_a_column_where_it_was_told_from_the_same_features() {
    let side = |log_loss| HeldOut { log_loss, error: 10.0 };
    let told = |method, difference: f64, features: &str| {
        let mut entry = entry(method, 0, [1.0; 2]);
        let scores = &mut entry.report.evaluation.scores;
        scores.inverted = Some(25.0);
        scores.true_area = Some(12.5);
        scores.decidability = Some(Decidability {
            foreground: side(0.5),
            background: side(0.5 + difference),
            difference,
            images: 4,
            classes: 2,
        });
        entry.report.conditions.features = Some(features.to_owned());
        entry
    };
    let columns = |entries| {
        let comparison = Comparison::of(entries).unwrap();
        let table = table(&comparison, "diagnosis").unwrap().clone();
        assert_eq!(table.note, "the true area is 12.50 %");
        (table.columns.len(), table.rows.iter().map(|row| row.cells.last().unwrap().best).collect())
    };
    let alike = vec![told("cam-avg", -0.2, "a"), told("wildcat", 0.3, "a")];
    assert_eq!(columns(alike), (3, vec![false, true]));
    let unlike = vec![told("cam-avg", -0.2, "a"), told("wildcat", 0.3, "b")];
    assert_eq!(columns(unlike), (2, vec![false, false]));
}

#[test]
fn erasing_has_its_own_table_and_its_price() {
    let ours = |seed, u, score: f64, seconds| rounds(entry("minmax", seed, [score; 2]), u, seconds);
    let one = Comparison::of(vec![ours(0, 4, 70.0, 90.0)]).unwrap();
    assert!(table(&one, "erasing").is_none());
    let two = Comparison::of(vec![ours(0, 4, 70.0, 90.0), ours(0, 0, 40.0, 60.0)]).unwrap();
    let erasing = table(&two, "erasing").unwrap();
    let labels: Vec<&str> = erasing.rows.iter().map(|row| row.label.as_str()).collect();
    assert_eq!(labels, ["Ours (u = 0)", "Ours (u = 4)"]);
    assert!(erasing.rows[1].cells[1].best && !erasing.rows[0].cells[1].best);
    let text = two.render(Format::Markdown);
    assert!(text.contains("| Ours (u = 4) | 1.50 | 2 | 45.00 | 1.50 |"), "{text}");
}

#[test]
fn a_training_that_served_two_rows_is_stated_once() {
    let mut shared = entry("grad-cam", 0, [1.0; 2]);
    shared.report.conditions.trained_in = Some("cam-avg-s0".to_owned());
    let comparison = Comparison::of(vec![entry("cam-avg", 0, [1.0; 2]), shared]).unwrap();
    let time = table(&comparison, "time").unwrap();
    assert_eq!(time.rows.len(), 1);
    assert!(time.note.contains("Grad-CAM has the training of cam-avg-s0"), "{}", time.note);
}

#[test]
fn runs_set_otherwise_are_rows_of_their_own_and_told_apart() {
    let mut other = entry("wildcat", 0, [1.0; 2]);
    other.name = "wide".to_owned();
    other.report.settings.as_mut().unwrap().pool.maps_per_class = 9;
    let comparison = Comparison::of(vec![entry("wildcat", 0, [2.0; 2]), other]).unwrap();
    let titles: Vec<&str> = comparison.setups.iter().map(|setup| setup.title.as_str()).collect();
    assert_eq!(titles, ["Wildcat, wildcat", "Wildcat, wide"]);
}

#[test]
fn what_was_not_measured_alike_is_refused_with_every_difference() {
    let (one, mut other) = (entry("cam-avg", 0, [1.0; 2]), entry("cam-max", 0, [1.0; 2]));
    other.report.evaluation.scores.protocol.threshold = ThresholdRule::Otsu.ready().unwrap();
    other.report.split = Split::Valid;
    other.report.conditions.oracle_label = true;
    other.report.evaluation.images[0].id = "another".to_owned();
    let message = problem(vec![one, other]);
    for part in [
        "threshold: 0.5 in `cam-avg-s0`; otsu in `cam-max-s0`",
        "split: test in `cam-avg-s0`; valid in `cam-max-s0`",
        "true class (oracle) in `cam-max-s0`",
        "images: 3",
        "hint:",
    ] {
        assert!(message.contains(part), "{part}: {message}");
    }
}

#[test]
fn a_report_given_twice_and_two_kinds_of_crf_are_refused() {
    let one = entry("cam-avg", 0, [1.0; 2]);
    let message = problem(vec![one.clone(), one.clone()]);
    assert!(message.contains("the same set-up and seed"), "{message}");
    let mut natural = refined(entry("cam-max", 0, [1.0; 2]));
    natural.report.conditions.crf = Some(Preset::Natural);
    let message = problem(vec![refined(one), natural]);
    assert!(message.contains("CRF: glas in"), "{message}");
    assert!(problem(Vec::new()).contains("no report"));
}

#[test]
fn one_dataset_that_was_given_by_two_paths_is_named_once() {
    let entries = ["birds", "/data/birds"].map(|data| {
        let mut entry = entry(if data == "birds" { "cam-avg" } else { "wildcat" }, 0, [1.0; 2]);
        entry.report.conditions.data = data.to_owned();
        entry
    });
    let conditions = Comparison::of(entries.into()).unwrap().conditions;
    assert!(conditions[0].contains("images of birds,"), "{}", conditions[0]);
}

#[test]
fn names_cannot_break_out_of_any_form() {
    let hostile = "</td><script>alert(1)</script> | $\\input{x}$ & \"a,b\"";
    let mut other = entry(hostile, 0, [1.0; 2]);
    other.report.conditions.data = hostile.to_owned();
    let comparison = Comparison::of(vec![other, entry("cam-avg", 0, [2.0; 2])]).unwrap();
    let page = comparison.render(Format::Html);
    assert!(!page.contains("<script") && page.contains("&lt;script&gt;"), "{page}");
    let text = comparison.render(Format::Latex);
    let table = text.split("\\begin{table}").nth(1).unwrap();
    assert!(!table.contains("\\input") && table.contains("\\textbackslash{}input"), "{table}");
    assert!(text.lines().filter(|line| line.contains("\\input")).all(|line| line.starts_with('%')));
    let text = comparison.render(Format::Markdown);
    assert!(text.contains("&lt;script>") && text.contains("\\| $\\\\input"), "{text}");
    let text = comparison.render(Format::Csv);
    let mut reader = ::csv::Reader::from_reader(text.as_bytes());
    let rows: Vec<::csv::StringRecord> = reader.records().collect::<Result<_, _>>().unwrap();
    assert!(rows.iter().any(|row| &row[1] == hostile), "{text}");
}

#[test]
fn the_page_asks_for_nothing_from_elsewhere() {
    let folder = tempfile::tempdir().unwrap();
    let comparison = Comparison::of(vec![entry("cam-avg", 0, [1.0; 2])]).unwrap();
    assert_eq!(write(&comparison, folder.path(), None).unwrap(), 0);
    let page = fs::read_to_string(folder.path().join("comparison.html")).unwrap();
    assert!(page.contains("<svg") && !page.contains("{{"));
    for request in ["<link", "@import", "url(", "fetch(", "src=\"http"] {
        assert!(!page.contains(request), "{request}");
    }
    let picture = fs::read_to_string(folder.path().join("figures/precision_recall.svg")).unwrap();
    assert!(picture.starts_with("<svg") && picture.contains("chance"));
}

#[test]
fn unusable_reports_are_named_with_their_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    fs::create_dir_all(run.join("report")).unwrap();
    let problem = || open(&run).unwrap_err().to_string();
    assert!(problem().contains("there is no report here"), "{}", problem());
    fs::write(run.join("config.toml"), "").unwrap();
    let message = problem();
    assert!(
        message.contains("has no report") && message.contains("pinpoint evaluate"),
        "{message}"
    );

    let whole = serde_json::to_string(&example()).unwrap();
    let broken = |text: &str| {
        fs::write(run.join("report/report.json"), text).unwrap();
        problem()
    };
    let score = whole.find("\"f1_foreground\":").unwrap() + "\"f1_foreground\":".len();
    let end = score + whole[score..].find(',').unwrap();
    for number in ["NaN", "1e999", "\"50\""] {
        let text = format!("{}{number}{}", &whole[..score], &whole[end..]);
        assert!(broken(&text).contains("unreadable report"), "{number}");
    }
    assert!(broken(&whole[..whole.len() / 2]).contains("report.json"));
    let newer = broken("{\"format\": 99, \"version\": \"9.9.9\"}");
    assert!(newer.contains("9.9.9") && newer.contains("update"), "{newer}");
    assert!(open(&folder.path().join("gone")).unwrap_err().to_string().contains("no such run"));

    fs::write(run.join("report/report.json"), &whole).unwrap();
    assert_eq!(open(&run).unwrap().len(), 1);
    assert_eq!(open(folder.path()).unwrap().len(), 1, "a folder of runs stands for them");
}

#[test]
fn some_images_are_shown_evenly_spread() {
    let shown = |images| (0..images).filter(|i| is_shown(*i, images)).collect::<Vec<_>>();
    assert_eq!(shown(3), [0, 1, 2]);
    assert_eq!(shown(80), [0, 10, 20, 30, 40, 50, 60, 70]);
    assert_eq!(shown(12), [0, 1, 3, 4, 6, 7, 9, 10]);
    assert!(shown(0).is_empty());
}
