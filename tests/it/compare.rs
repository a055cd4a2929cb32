//! Comparisons from outside: tables of evaluated runs, and what cannot share one.

use std::{fs, path::Path, process::Output};

use assert_cmd::cargo::CommandCargoExt as _;

use crate::sweep::Bench;

fn compare(bench: &Bench, arguments: &[&str]) -> Output {
    let mut command = std::process::Command::cargo_bin("pinpoint").unwrap();
    command.current_dir(bench.path("")).arg("compare").args(arguments).output().unwrap()
}

fn stdout(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn failure(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(output.stdout.is_empty());
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn every_form_tells_the_same_scores() {
    let bench = Bench::new();
    assert!(bench.sweep("runs", &["--methods", "all-ones,cam-avg"]).status.success());
    let runs = ["runs/all-ones", "runs/cam-avg-s0"];
    let csv = stdout(&compare(&bench, &[runs[0], runs[1], "--format", "csv"]));
    let mut reader = csv::Reader::from_reader(csv.as_bytes());
    let rows: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
    let row = rows.iter().find(|row| &row[1] == "CAM-Avg" && &row[3] == "f1_background").unwrap();
    let score = format!("{:.2}", row[4].parse::<f64>().unwrap());
    let report = pinpoint::report::Report::read(&bench.path("runs/cam-avg-s0/report")).unwrap();
    let recorded = report.evaluation.scores.mean.f1_background.unwrap();
    assert_eq!(score, format!("{recorded:.2}"));
    for format in ["markdown", "latex", "html"] {
        let text = stdout(&compare(&bench, &["runs", "--format", format]));
        assert!(text.contains(&score) && text.contains("CAM-Avg"), "{format}: {text}");
    }
}

#[test]
fn images_are_shown_where_their_maps_were_saved() {
    let bench = Bench::new();
    assert!(bench.sweep("runs", &["--methods", "all-ones,cam-avg"]).status.success());
    let output = compare(&bench, &["runs", "--out", "out"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("with 4 images"), "{output:?}");
    let strips = fs::read_to_string(bench.path("out/figures/strips.svg")).unwrap();
    // Image, truth and two methods, of four images; on the page likewise.
    assert_eq!(strips.matches("<image ").count(), 4 * 4);
    let page = fs::read_to_string(bench.path("out/comparison.html")).unwrap();
    assert_eq!(page.matches("<img ").count(), 4 * 4);

    fs::rename(bench.path("data"), bench.path("moved")).unwrap();
    let output = compare(&bench, &["runs", "--out", "out"]);
    assert!(output.status.success(), "tables need no images: {output:?}");
    assert!(!bench.path("out/figures/strips.svg").exists());
    let output = compare(&bench, &["runs", "--out", "out", "--data", "moved"]);
    assert!(output.status.success() && bench.path("out/figures/strips.svg").exists());
}

#[test]
fn reports_of_other_protocols_and_unreadable_ones_are_refused() {
    let bench = Bench::new();
    assert!(bench.sweep("runs", &["--methods", "all-ones,cam-avg"]).status.success());
    assert!(
        bench.sweep("other", &["--methods", "all-ones", "--threshold", "otsu"]).status.success()
    );
    let message = failure(&compare(&bench, &["runs/cam-avg-s0", "other/all-ones"]));
    assert!(message.contains("threshold: 0.5 in") && message.contains("otsu in"), "{message}");

    let report = bench.path("runs/cam-avg-s0/report/report.json");
    let text = fs::read_to_string(&report).unwrap();
    fs::write(&report, &text[..text.len() / 2]).unwrap();
    let message = failure(&compare(&bench, &["runs"]));
    assert!(message.contains("unreadable report") && message.contains("hint:"), "{message}");
    fs::remove_dir_all(Path::new(&report).parent().unwrap()).unwrap();
    let message = failure(&compare(&bench, &["runs/cam-avg-s0"]));
    assert!(message.contains("pinpoint evaluate runs/cam-avg-s0"), "{message}");
}
