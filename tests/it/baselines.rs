//! Every method from outside: trained, resumed, scored by the same commands.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use assert_cmd::cargo::CommandCargoExt as _;
use pinpoint::{
    config::{Config, Experiment},
    data::{
        Dataset, OpenOptions,
        loader::read_for_evaluation,
        synthetic::{self, SyntheticSpec},
    },
    method,
    predict::{Predictor, UNTRAINED},
};
use tempfile::TempDir;

/// A network and images small enough to train in a second.
const SMALL: &[&str] = &[
    "model.backbone=tiny",
    "model.output_stride=8",
    "model.classifier_scale=1.0",
    "preprocess.crop=40",
    "preprocess.upscale_short_side=0",
    "preprocess.eval_multiple=8",
    "augment.quarter_turns=true",
    "train.batch_size=4",
    "train.checkpoint_steps=1",
    "train.epochs=2",
    "optimizer.learning_rate=0.01",
    "unet.width=4",
    "unet.depth=3",
];

struct Workshop {
    folder: TempDir,
}

impl Workshop {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let spec = SyntheticSpec { classes: 2, train: 6, valid: 2, test: 2, side: 40, seed: 1 };
        synthetic::write(&folder.path().join("data"), &spec, || {}).unwrap();
        Self { folder }
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    fn run_dir(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn train(&self, run: &str, method: &str, more: &[&str]) -> Output {
        let mut command = Command::cargo_bin("pinpoint").unwrap();
        command.args(["train", "--method", method, "--threads", "1", "--data"]).arg(self.data());
        command.arg("--out").arg(self.run_dir(run));
        for setting in SMALL {
            command.args(["--set", setting]);
        }
        command.args(more).output().unwrap()
    }
}

fn weights(run: &Path) -> Vec<u8> {
    fs::read(run.join("weights/last.safetensors")).unwrap()
}

#[test]
fn every_method_trains_and_is_resumed_to_the_same_bytes_and_answers() {
    let workshop = Workshop::new();
    let dataset = Dataset::open(&workshop.data(), &OpenOptions::default()).unwrap();
    // The probe learns in no epochs; `probe.rs` stops and resumes it.
    for method in method::NAMES.iter().filter(|&&method| method != "probe") {
        let output = workshop.train(method, method, &[]);
        assert!(output.status.success(), "{method}: {output:?}");
        let whole = workshop.run_dir(method);
        let config = fs::read_to_string(whole.join("config.toml")).unwrap();
        assert!(config.contains(&format!("method = \"{method}\"")), "{config}");

        // Started anew from a checkpoint in the middle, by another number of threads.
        let cut = format!("{method}-cut");
        let stopped = workshop.train(&cut, method, &["--epochs", "1"]);
        assert!(stopped.status.success(), "{method}: {stopped:?}");
        fs::copy(whole.join("config.toml"), workshop.run_dir(&cut).join("config.toml")).unwrap();
        let resumed = workshop.train(&cut, method, &["--resume"]);
        assert!(resumed.status.success(), "{method}: {resumed:?}");
        assert!(weights(&whole) == weights(&workshop.run_dir(&cut)), "{method}: resumed otherwise");

        answers(&whole, &dataset);
    }
}

/// Asks a run about a test image, told each of the classes and told none.
fn answers(run: &Path, dataset: &Dataset) {
    let trained = Predictor::open(run, "cpu").unwrap();
    let name = trained.method().to_owned();
    assert!(!trained.mask_rule().is_empty());
    let image = read_for_evaluation(&dataset.test[0].image, trained.preprocess(), 100).unwrap();
    let run = |class| trained.run(image.input.clone(), &image.geometry, class);
    let free = run(None);
    assert_eq!(free.scores.len(), image.geometry.original.area(), "{name}");
    assert!(free.scores.iter().all(|value| (0.0..=1.0).contains(value)), "{name}");
    assert_eq!(free.classifier.is_none(), name == "unet");
    let Some(probabilities) = &free.classifier else { return };
    assert!((probabilities.iter().sum::<f32>() - 1.0).abs() < 1e-5, "{name}");

    let given: Vec<_> = (0..2).map(|class| run(Some(class))).collect();
    let predicted = usize::from(probabilities[1] > probabilities[0]);
    assert_eq!(given[predicted], free, "{name}: told what it finds anyway");
    if name != "minmax" {
        assert_ne!(given[0].scores, given[1].scores, "{name}: the mask is of the class it is told");
    }
}

#[test]
fn the_mask_of_class_maps_marks_each_pixel_for_one_class_only() {
    let workshop = Workshop::new();
    let dataset = Dataset::open(&workshop.data(), &OpenOptions::default()).unwrap();
    assert!(workshop.train("run", "cam-avg", &[]).status.success());
    let trained = Predictor::open(workshop.run_dir("run"), "cpu").unwrap();
    let image = read_for_evaluation(&dataset.test[0].image, trained.preprocess(), 100).unwrap();
    let [one, other] =
        [0, 1].map(|class| trained.run(image.input.clone(), &image.geometry, Some(class)).scores);
    for (one, other) in one.iter().zip(other) {
        assert!((one + other - 1.0).abs() < 1e-5, "{one} {other}");
    }
}

#[test]
fn one_rule_can_be_asked_of_all_methods() {
    let workshop = Workshop::new();
    let dataset = Dataset::open(&workshop.data(), &OpenOptions::default()).unwrap();
    for method in ["wildcat", "deep-mil"] {
        let output = workshop.train(method, method, &["--set", "mask.rule=min-max"]);
        assert!(output.status.success(), "{output:?}");
        let trained = Predictor::open(workshop.run_dir(method), "cpu").unwrap();
        assert!(trained.mask_rule().contains("cut at 0.5"), "{}", trained.mask_rule());
        let image = read_for_evaluation(&dataset.test[0].image, trained.preprocess(), 100).unwrap();
        let map = trained.run(image.input, &image.geometry, None).scores;
        let largest = map.iter().copied().fold(0.0, f32::max);
        assert!((largest - 0.982_013_8).abs() < 1e-4, "{method}: {largest}");
    }
}

#[test]
fn a_method_that_does_not_exist_is_refused_with_those_that_do() {
    let workshop = Workshop::new();
    let output = workshop.train("run", "cam-median", &[]);
    assert_eq!(output.status.code(), Some(2));
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(message.contains("cam-median") && message.contains("`cam-avg`"), "{message}");
    assert!(!workshop.run_dir("run").exists());
}

#[test]
fn full_supervision_needs_masks_and_the_others_do_not() {
    let workshop = Workshop::new();
    fs::remove_dir_all(workshop.data().join("masks/train")).unwrap();
    let output = workshop.train("run", "unet", &[]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(message.contains("no training image has a mask"), "{message}");
    assert!(
        workshop.train("weak", "cam-avg", &[]).status.success(),
        "labels are enough for others"
    );
}

#[test]
fn every_published_setup_is_valid_for_every_method() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("configs");
    let mut files: Vec<PathBuf> = fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
        .collect();
    files.sort();
    assert!(files.len() >= 6, "{files:?}");
    for file in files {
        let experiment = Experiment::load(&file).unwrap();
        let sweep = experiment.sweep.clone().unwrap_or_else(|| panic!("{file:?} has no sweep"));
        let rows: Vec<String> = experiment.rows().map(str::to_owned).collect();
        let trained = |row: &String| !UNTRAINED.contains(&row.as_str());
        let swept: Vec<String> = sweep.methods.into_iter().filter(trained).collect();
        let plain = method::NAMES.iter().map(|&name| name.to_owned());
        for row in plain.chain(rows).chain(swept) {
            let config = method::settings(&experiment, &row, None)
                .unwrap_or_else(|error| panic!("{file:?}, {row}: {error}"));
            config.check().unwrap_or_else(|error| panic!("{file:?}, {row}: {error}"));
            assert!(config.train.epochs > 1, "{file:?}, {row}");
            assert_ne!(config, Config::default());
        }
    }
}
