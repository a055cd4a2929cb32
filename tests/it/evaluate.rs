//! Evaluation from outside: the real command, its answers, its report, and bad runs.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use assert_cmd::cargo::CommandCargoExt as _;
use pinpoint::report::Report;
use serde_json::Value;

use crate::train::{Workshop, failure};

/// `pinpoint evaluate` on the workshop's data.
pub(crate) fn evaluate(workshop: &Workshop, more: &[&str]) -> Output {
    let mut command = Command::cargo_bin("pinpoint").unwrap();
    command.arg("evaluate").arg("--data").arg(workshop.folder.path().join("data"));
    command.current_dir(workshop.folder.path()).args(more).output().unwrap()
}

/// The document that a successful evaluation prints.
pub(crate) fn document(output: &Output) -> Value {
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Every file below a folder with its content.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(folder).unwrap().to_owned();
                found.insert(name, fs::read(&path).unwrap());
            }
        }
    }
    found
}

#[test]
fn marking_everything_has_no_class_and_no_background_and_leaves_no_report() {
    let workshop = Workshop::new();
    let found = document(&evaluate(&workshop, &["--method", "all-ones", "--json"]));
    assert_eq!(
        (found["method"].as_str(), found["split"].as_str()),
        (Some("all-ones"), Some("test"))
    );
    assert_eq!((found["images"].as_u64(), found["images_with_truth"].as_u64()), (Some(4), Some(4)));
    assert!(found["classification_error"].is_null() && found["report"].is_null());
    assert_eq!(found["f1_background"], 0.0);
    assert!(found["f1_foreground"].as_f64().unwrap() > 10.0);
    assert_eq!(found["protocol"]["threshold"]["rule"], "0.5");
    assert!(found["conditions"]["crf"].is_null());
}

#[test]
fn a_report_has_every_file_and_can_be_read_back() {
    let workshop = Workshop::new();
    assert!(workshop.train("run", &[]).status.success());
    let output = evaluate(&workshop, &["run", "--json"]);
    let printed = document(&output);
    let folder = workshop.run_dir("run").join("report");
    let names: Vec<String> = files(&folder).keys().map(|name| name.display().to_string()).collect();
    let expected = [
        "classes.csv",
        "figures/confusion.svg",
        "figures/precision_recall.svg",
        "figures/roc.svg",
        "figures/threshold.svg",
        "metrics.csv",
        "report.html",
        "report.json",
        "report.md",
    ];
    assert_eq!(names, expected);

    let report = Report::read(&folder).unwrap();
    assert_eq!(printed["f1_foreground"].as_f64(), report.evaluation.scores.mean.f1_foreground);
    assert_eq!(report.conditions.seed, Some(0));
    assert_eq!(report.training.unwrap().epochs, 3);
    assert_eq!(report.evaluation.images.len(), 4);
    let csv = fs::read_to_string(folder.join("metrics.csv")).unwrap();
    assert_eq!(csv.lines().count(), 5);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains("report.html"), "{stderr}");
}

#[test]
fn any_number_of_threads_writes_the_same_bytes() {
    let workshop = Workshop::new();
    assert!(workshop.train("run", &[]).status.success());
    let reports = ["1", "2", "5"].map(|threads| {
        let more = ["run", "--crf", "glas", "--save-maps", "--threads", threads, "--report", "out"];
        assert!(evaluate(&workshop, &more).status.success());
        files(&workshop.run_dir("out"))
    });
    let is_map = |name: &&PathBuf| name.extension().is_some_and(|ending| ending == "npy");
    assert_eq!(reports[0].keys().filter(is_map).count(), 4, "maps are saved too");
    for other in &reports[1..] {
        let differing: Vec<_> =
            reports[0].iter().filter(|(name, bytes)| other.get(*name) != Some(bytes)).collect();
        assert!(differing.is_empty(), "{:?}", differing.iter().map(|d| d.0).collect::<Vec<_>>());
    }
}

#[test]
fn a_threshold_is_recorded_with_its_rule_and_an_oracle_is_called_one_everywhere() {
    let workshop = Workshop::new();
    assert!(workshop.train("run", &[]).status.success());
    let with = |rule: &str| document(&evaluate(&workshop, &["run", "--json", "--threshold", rule]));
    let threshold = |found: &Value| {
        let threshold = &found["protocol"]["threshold"];
        (threshold["rule"].as_str().unwrap().to_owned(), threshold["value"].as_f64())
    };
    assert_eq!(threshold(&with("otsu")), ("otsu".to_owned(), None));
    assert_eq!(threshold(&with("percentile:80")), ("percentile:80".to_owned(), None));
    let (rule, value) = threshold(&with("valid"));
    assert!(rule == "best-on-valid" && value.is_some(), "{rule}");

    let fixed = with("0.5");
    let oracle = with("oracle");
    assert_eq!(threshold(&oracle).0, "oracle (tuned on the scored split)");
    let mean = |found: &Value| {
        found["f1_foreground"].as_f64().unwrap() + found["f1_background"].as_f64().unwrap()
    };
    assert!(mean(&oracle) >= mean(&fixed), "the oracle is an upper bound");
    let report = workshop.run_dir("run").join("report");
    for file in ["report.json", "report.md", "report.html"] {
        let text = fs::read_to_string(report.join(file)).unwrap();
        assert!(text.contains("oracle (tuned on the scored split)"), "{file}");
    }
    let people = evaluate(&workshop, &["run", "--no-report", "--threshold", "oracle"]);
    assert!(String::from_utf8_lossy(&people.stdout).contains("oracle (tuned on"), "{people:?}");
}

#[test]
fn refinement_and_a_told_class_are_recorded() {
    let workshop = Workshop::new();
    assert!(workshop.train("run", &[]).status.success());
    let plain = document(&evaluate(&workshop, &["run", "--json"]));
    let refined = document(&evaluate(&workshop, &["run", "--json", "--crf", "natural"]));
    assert_eq!(refined["conditions"]["crf"], "natural");
    assert_ne!(plain["roc_auc"], refined["roc_auc"], "the CRF changes the maps");
    let told = document(&evaluate(&workshop, &["run", "--json", "--oracle-label"]));
    assert_eq!(told["conditions"]["oracle_label"], true);
    let page = workshop.run_dir("run").join("report/report.html");
    assert!(fs::read_to_string(page).unwrap().contains("told the true class"));
}

#[test]
fn a_rival_that_is_told_the_class_shows_another_mask_where_it_was_wrong() {
    let workshop = Workshop::new();
    assert!(workshop.train("run", &["--method", "cam-avg"]).status.success());
    let plain = document(&evaluate(&workshop, &["run", "--json", "--report", "plain"]));
    let told =
        document(&evaluate(&workshop, &["run", "--json", "--report", "told", "--oracle-label"]));
    assert_eq!(plain["method"], "cam-avg");
    assert_eq!(plain["classification_error"], told["classification_error"]);
    let images = |folder: &str| Report::read(&workshop.run_dir(folder)).unwrap().evaluation.images;
    let mut wrong = 0;
    for (plain, told) in images("plain").iter().zip(&images("told")) {
        if plain.predicted == Some(plain.label) {
            assert_eq!(plain, told);
        } else {
            wrong += 1;
            assert_ne!(plain.roc_auc, told.roc_auc, "{}", plain.id);
        }
    }
    assert!(wrong > 0, "some image must be named wrongly for this to show anything");
}

#[test]
fn several_runs_give_a_document_each_and_a_bad_one_does_not_stop_the_others() {
    let workshop = Workshop::new();
    assert!(workshop.train("one", &[]).status.success());
    assert!(workshop.train("two", &["--seed", "1"]).status.success());
    let output = evaluate(&workshop, &["one", "gone", "two", "--json", "--report", "reports"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let lines = String::from_utf8(output.stdout).unwrap();
    let runs: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let names: Vec<_> = runs.iter().map(|run| run["conditions"]["run"].clone()).collect();
    assert_eq!(names, ["one", "two"]);
    assert!(workshop.run_dir("reports/one/report.json").is_file());
    assert!(workshop.run_dir("reports/two/report.html").is_file());
    assert!(String::from_utf8_lossy(&output.stderr).contains("no such run directory: `gone`"));
}

#[test]
fn a_run_that_is_incomplete_or_newer_says_so() {
    let workshop = Workshop::new();
    fs::create_dir(workshop.run_dir("empty")).unwrap();
    let message = failure(&evaluate(&workshop, &["empty"]));
    assert!(message.contains("`config.toml` nor `weights/best.safetensors`"), "{message}");
    assert!(message.contains("hint:"), "{message}");

    assert!(workshop.train("run", &[]).status.success());
    let weights = workshop.run_dir("run/weights/best.safetensors");
    let bytes = fs::read(&weights).unwrap();
    let at = bytes.windows(7).position(|window| window == b"\"0.1.0\\").unwrap();
    let mut newer = bytes.clone();
    newer[at + 1..at + 6].copy_from_slice(b"9.1.0");
    fs::write(&weights, &newer).unwrap();
    let message = failure(&evaluate(&workshop, &["run"]));
    assert!(message.contains("pinpoint 9.1.0") && message.contains("update"), "{message}");

    fs::write(&weights, &bytes[..bytes.len() / 2]).unwrap();
    let message = failure(&evaluate(&workshop, &["run"]));
    assert!(message.contains("best.safetensors"), "{message}");
    fs::write(workshop.run_dir("run/config.toml"), "[unknown]\nkey = 1\n").unwrap();
    let message = failure(&evaluate(&workshop, &["run"]));
    assert!(message.contains("config.toml") && message.contains("unknown"), "{message}");
}

#[test]
fn a_split_that_does_not_exist_and_a_report_nowhere_are_refused() {
    let workshop = Workshop::new();
    fs::remove_dir_all(workshop.folder.path().join("data/test")).unwrap();
    let message = failure(&evaluate(&workshop, &["--method", "all-ones"]));
    assert!(message.contains("no `test` split"), "{message}");
    let more = ["--method", "all-ones", "--split", "valid", "--save-maps"];
    let message = failure(&evaluate(&workshop, &more));
    assert!(message.contains("--report"), "{message}");
}
