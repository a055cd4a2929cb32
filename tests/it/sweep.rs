//! Sweeps from outside: every row trained, scored and compared, and gone on with.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use assert_cmd::cargo::CommandCargoExt as _;
use pinpoint::{
    data::synthetic::{self, SyntheticSpec},
    report::Report,
};
use tempfile::TempDir;

use crate::train::kill_until_done;

const FILE: &str = r#"
[preprocess]
upscale_short_side = 0
crop = 32
eval_multiple = 8
[model]
backbone = "tiny"
output_stride = 8
classifier_scale = 1.0
[train]
epochs = 1
batch_size = 4
checkpoint_steps = 1
[methods.minmax-u0]
method = "minmax"
erase.rounds = 0
[methods.wild]
method = "cam-avg"
optimizer.learning_rate = 1e30
[sweep]
methods = ["all-ones", "cam-avg", "layer-cam", "minmax-u0"]
"#;

pub(crate) struct Bench {
    folder: TempDir,
}

impl Bench {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let spec = SyntheticSpec { classes: 2, train: 8, valid: 4, test: 4, side: 32, seed: 1 };
        synthetic::write(&folder.path().join("data"), &spec, || {}).unwrap();
        fs::write(folder.path().join("sweep.toml"), FILE).unwrap();
        Self { folder }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn command(&self, out: &str, more: &[&str]) -> Command {
        let mut command = Command::cargo_bin("pinpoint").unwrap();
        command.current_dir(self.folder.path());
        command.args(["sweep", "sweep.toml", "--data", "data", "--threads", "2", "--out", out]);
        command.args(more);
        command
    }

    pub(crate) fn sweep(&self, out: &str, more: &[&str]) -> Output {
        self.command(out, more).output().unwrap()
    }
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn weights(run: &Path) -> Vec<u8> {
    fs::read(run.join("weights/best.safetensors")).unwrap()
}

#[test]
fn a_sweep_trains_scores_and_compares_every_row_once() {
    let bench = Bench::new();
    let output = bench.sweep("out", &["--seeds", "0,1", "--crf", "natural"]);
    assert!(output.status.success(), "{output:?}");
    let table = String::from_utf8_lossy(&output.stdout);
    for part in ["| All-ones (trivial) |", "| LayerCAM |", "| Ours (u = 0) |", "with CRF", " ± "] {
        assert!(table.contains(part), "{part}: {table}");
    }
    for part in ["cam-avg-s0", "layer-cam-s1/report-crf-natural", "all-ones/report"] {
        let report = bench.path("out").join(part);
        assert!(report.is_dir(), "{part}");
    }
    for part in ["comparison.html", "comparison.tex", "comparison.csv", "figures/strips.svg"] {
        assert!(bench.path("out/compare").join(part).is_file(), "{part}");
    }
    assert!(stderr(&output).contains("layer-cam-s0: trained as cam-avg-s0"), "{output:?}");

    let before = fs::metadata(bench.path("out/cam-avg-s0/weights/best.safetensors")).unwrap();
    let again = bench.sweep("out", &["--seeds", "0,1", "--crf", "natural"]);
    assert!(again.status.success(), "{again:?}");
    assert!(!stderr(&again).contains("epoch"), "nothing is trained again: {again:?}");
    let after = fs::metadata(bench.path("out/cam-avg-s0/weights/best.safetensors")).unwrap();
    assert_eq!(before.modified().unwrap(), after.modified().unwrap());
    assert_eq!(output.stdout, again.stdout);
}

#[test]
fn a_training_taken_over_is_what_the_row_would_have_learned() {
    let bench = Bench::new();
    assert!(bench.sweep("both", &["--methods", "cam-avg,layer-cam"]).status.success());
    assert!(bench.sweep("alone", &["--methods", "layer-cam"]).status.success());
    let (taken, alone) = (bench.path("both/layer-cam-s0"), bench.path("alone/layer-cam-s0"));
    assert!(taken.join("trained-in.txt").is_file() && !alone.join("trained-in.txt").exists());
    assert!(weights(&taken) == weights(&alone), "a training of its own gives other weights");
    let scores = |run: &Path| Report::read(&run.join("report")).unwrap().evaluation.scores;
    assert_eq!(scores(&taken), scores(&alone));
    let report = Report::read(&taken.join("report")).unwrap();
    assert_eq!(report.conditions.trained_in.as_deref(), Some("cam-avg-s0"));
}

#[test]
fn a_sweep_killed_at_any_moment_goes_on_to_the_same_bytes() {
    let bench = Bench::new();
    let rows = ["--methods", "all-ones,cam-avg,minmax-u0", "--epochs", "2"];
    let whole = bench.sweep("whole", &rows);
    assert!(whole.status.success(), "{whole:?}");
    let kills = kill_until_done(|| bench.command("killed", &rows), |attempt| 40 + 90 * attempt);
    for run in ["cam-avg-s0", "minmax-u0-s0"] {
        let [whole, killed] = ["whole", "killed"].map(|out| weights(&bench.path(out).join(run)));
        assert!(whole == killed, "{kills} kills changed {run}");
    }
}

#[test]
fn a_row_that_fails_is_told_and_the_others_are_compared() {
    let bench = Bench::new();
    let output = bench.sweep("out", &["--methods", "wild,minmax-u0", "--epochs", "3"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let message = stderr(&output);
    assert!(message.contains("`wild-s0` failed") && message.contains("left out"), "{message}");
    let table = String::from_utf8_lossy(&output.stdout);
    assert!(table.contains("Ours (u = 0)") && !table.contains("CAM-Avg"), "{table}");
}

#[test]
fn what_cannot_work_is_told_before_anything_is_trained() {
    let bench = Bench::new();
    let problem = |more: &[&str]| {
        let output = bench.sweep("out", more);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(!bench.path("out").exists());
        stderr(&output)
    };
    let message = problem(&["--methods", "cam-avg,cam-median"]);
    assert!(message.contains("cam-median") && message.contains("`cam-max`"), "{message}");
    assert!(problem(&["--methods", "../x"]).contains("cannot name a folder"));
    assert!(problem(&["--methods", "unet,unet"]).contains("twice"));
    assert!(problem(&["--seeds", "0,0"]).contains("twice"));
    assert!(problem(&["--seeds", "x"]).contains("no seed"));
    assert!(problem(&["--weights", "gone.pth"]).contains("gone.pth"));
    assert!(problem(&["--set", "train.epoch=3"]).contains("epoch"));
    fs::write(bench.path("sweep.toml"), "seed = 3").unwrap();
    assert!(problem(&[]).contains("[sweep]"));
}
