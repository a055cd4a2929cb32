//! Training from outside: the real command, killed, resumed, and given nonsense.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    thread,
    time::Duration,
};

use assert_cmd::cargo::CommandCargoExt as _;
use image::RgbImage;
use pinpoint::{
    Config, TrainRequest,
    config::{Backbone, Fill},
    data::synthetic::{self, SyntheticSpec},
    model::weights,
    train::{Ending, Event, Observer},
};
use tempfile::TempDir;

/// A network and images small enough to train in seconds.
const SMALL: &[&str] = &[
    "model.backbone=tiny",
    "model.output_stride=8",
    "model.classifier_scale=1.0",
    "preprocess.crop=32",
    "preprocess.upscale_short_side=0",
    "preprocess.eval_multiple=8",
    "train.batch_size=4",
    "train.checkpoint_steps=1",
    "erase.rounds=2",
    "erase.first_epoch=0",
    "pool.dropout=0.2",
];

pub(crate) struct Workshop {
    pub(crate) folder: TempDir,
}

impl Workshop {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let spec = SyntheticSpec { classes: 2, train: 12, valid: 4, test: 4, side: 32, seed: 1 };
        synthetic::write(&folder.path().join("data"), &spec, || {}).unwrap();
        Self { folder }
    }

    pub(crate) fn run_dir(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn command(&self, run: &str, more: &[&str]) -> Command {
        let mut command = Command::cargo_bin("pinpoint").unwrap();
        command.arg("train");
        if !more.iter().any(|flag| ["--method", "--config", "--resume"].contains(flag)) {
            command.args(["--method", "minmax"]);
        }
        command.arg("--data").arg(self.folder.path().join("data"));
        command.arg("--out").arg(self.run_dir(run)).args(["--set", "train.epochs=3"]);
        for setting in SMALL {
            command.args(["--set", setting]);
        }
        command.args(more);
        command
    }

    pub(crate) fn train(&self, run: &str, more: &[&str]) -> Output {
        self.command(run, more).output().unwrap()
    }
}

pub(crate) fn weights(run: &Path) -> [Vec<u8>; 2] {
    ["weights/best.safetensors", "weights/last.safetensors"]
        .map(|file| fs::read(run.join(file)).unwrap())
}

pub(crate) fn failure(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!message.contains("panicked"), "{message}");
    message
}

/// Starts a command and kills it after so many milliseconds, by attempt, until it gets done; how
/// often it was killed, which is at least once.
///
/// Times that differ from attempt to attempt meet different states; they must grow.
pub(crate) fn kill_until_done(command: impl Fn() -> Command, wait: impl Fn(u64) -> u64) -> u64 {
    for attempt in 0.. {
        let mut child = command().stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        thread::sleep(Duration::from_millis(wait(attempt)));
        if let Some(status) = child.try_wait().unwrap() {
            assert!(status.success(), "{status}");
            assert!(attempt > 0, "it was over before it could be killed");
            return attempt;
        }
        child.kill().unwrap();
        child.wait().unwrap();
    }
    unreachable!("attempts have no end")
}

#[test]
fn the_same_seed_gives_the_same_bytes_on_any_number_of_threads() {
    let workshop = Workshop::new();
    for threads in ["1", "2", "5"] {
        let output = workshop.train(threads, &["--threads", threads]);
        assert!(output.status.success(), "{output:?}");
    }
    let one = weights(&workshop.run_dir("1"));
    assert!(one == weights(&workshop.run_dir("2")), "2 threads differ from 1");
    assert!(one == weights(&workshop.run_dir("5")), "5 threads differ from 1");

    let output = workshop.train("other", &["--seed", "1"]);
    assert!(output.status.success(), "{output:?}");
    assert!(one != weights(&workshop.run_dir("other")), "another seed must give other weights");
}

#[test]
fn a_run_killed_at_any_moment_resumes_to_the_same_bytes() {
    let workshop = Workshop::new();
    let output = workshop.train("whole", &[]);
    assert!(output.status.success(), "{output:?}");
    let records = fs::read_to_string(workshop.run_dir("whole").join("metrics.jsonl")).unwrap();
    assert_eq!(records.lines().count(), 3);

    let command = || {
        let resumed = workshop.run_dir("killed/config.toml").exists();
        workshop.command("killed", if resumed { &["--resume"] } else { &[] })
    };
    let kills = kill_until_done(command, |attempt| 60 + 45 * attempt + 37 * (attempt * 7 % 5));
    let same = weights(&workshop.run_dir("whole")) == weights(&workshop.run_dir("killed"));
    assert!(same, "{kills} kills changed the weights");
}

#[test]
fn a_run_that_diverges_says_so_and_names_the_last_good_state() {
    let workshop = Workshop::new();
    let message = failure(&workshop.train("run", &["--set", "optimizer.learning_rate=1e30"]));
    assert!(message.contains("the loss became"), "{message}");
    let saved = workshop.run_dir("run").join("state/checkpoint.safetensors");
    assert!(message.contains(saved.to_str().unwrap()) && saved.is_file(), "{message}");
}

#[test]
#[cfg(unix)]
fn a_signal_leaves_a_run_that_can_be_resumed() {
    let workshop = Workshop::new();
    let mut command = workshop.command("run", &["--epochs", "1000"]);
    let child = command.stderr(Stdio::piped()).spawn().unwrap();
    let checkpoint = workshop.run_dir("run").join("state/checkpoint.safetensors");
    while !checkpoint.exists() {
        thread::sleep(Duration::from_millis(20));
    }
    let killed = Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap();
    assert!(killed.success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("--resume"), "{output:?}");
}

#[test]
fn a_run_leaves_what_the_documentation_promises() {
    let workshop = Workshop::new();
    let output = workshop.train("run", &[]);
    assert!(output.status.success(), "{output:?}");
    let run = workshop.run_dir("run");
    for file in [
        "config.toml",
        "metrics.jsonl",
        "metrics.csv",
        "curves.svg",
        "state/checkpoint.safetensors",
    ] {
        assert!(run.join(file).is_file(), "{file} is missing");
    }
    // Both heads name classes, and both are told of everywhere.
    let table = fs::read_to_string(run.join("metrics.csv")).unwrap();
    assert!(table.lines().next().unwrap().contains("valid_error,valid_localizer_error"), "{table}");
    let curves = fs::read_to_string(run.join("curves.svg")).unwrap();
    assert!(curves.contains(">validation<") && curves.contains("validation, localizer"));
    let config = fs::read_to_string(run.join("config.toml")).unwrap();
    assert!(config.contains("backbone = \"tiny\"") && config.contains("steepness"), "{config}");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains("epoch 2") && stderr.contains("validation error"), "{stderr}");
    assert!(output.stdout.is_empty(), "progress belongs to stderr");
}

#[test]
fn a_run_is_not_overwritten_and_only_resumed_with_its_own_settings() {
    let workshop = Workshop::new();
    assert!(workshop.train("run", &[]).status.success());
    let message = failure(&workshop.train("run", &[]));
    assert!(message.contains("--resume"), "{message}");
    let message = failure(&workshop.train("run", &["--resume", "--set", "erase.sigma=3"]));
    assert!(message.contains("`erase.sigma` was 10.0, is 3"), "{message}");
    let message = failure(&workshop.train("nothing", &["--resume"]));
    assert!(message.contains("no run here"), "{message}");
}

#[test]
fn a_run_is_scored_on_its_own_classes_and_refused_on_others() {
    let workshop = Workshop::new();
    assert!(workshop.train("run", &[]).status.success());
    let evaluate = |data: PathBuf| {
        let mut command = Command::cargo_bin("pinpoint").unwrap();
        command.arg("evaluate").arg(workshop.run_dir("run")).arg("--data").arg(data);
        command.arg("--json").output().unwrap()
    };
    let output = evaluate(workshop.folder.path().join("data"));
    assert!(output.status.success(), "{output:?}");
    let found: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((found["method"].as_str(), found["split"].as_str()), (Some("minmax"), Some("test")));
    assert_eq!(found["images"], 4);
    let score = found["f1_foreground"].as_f64().unwrap();
    assert!((0.0..=100.0).contains(&score), "{found}");

    let other = workshop.folder.path().join("other");
    let spec = SyntheticSpec { classes: 3, train: 3, valid: 3, test: 3, side: 32, seed: 1 };
    synthetic::write(&other, &spec, || {}).unwrap();
    let message = failure(&evaluate(other));
    assert!(message.contains("was not trained on: `checkered-star`"), "{message}");
}

#[test]
fn the_demo_ends_with_a_table_and_pictures() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("demo");
    let mut command = Command::cargo_bin("pinpoint").unwrap();
    let output = command.args(["demo", "--epochs", "1", "--out"]).arg(&out).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let table = String::from_utf8_lossy(&output.stdout);
    assert!(table.contains("ours") && table.contains("all-ones        34.25     0.00"), "{table}");
    assert!(out.join("run/report/report.html").is_file() && out.join("run/curves.svg").is_file());
}

#[test]
fn impossible_settings_are_listed_together() {
    let workshop = Workshop::new();
    let nonsense =
        ["--set", "erase.sigma=0", "--set", "train.batch_size=0", "--set", "mask.steepness=-1"];
    let message = failure(&workshop.train("run", &nonsense));
    for key in ["erase.sigma", "train.batch_size", "mask.steepness"] {
        assert!(message.contains(key), "{message}");
    }
    assert!(!workshop.run_dir("run").exists(), "nothing is written for settings that cannot run");
}

#[test]
fn a_crop_larger_than_the_images_names_the_file_and_the_remedy() {
    let workshop = Workshop::new();
    let message = failure(&workshop.train("run", &["--set", "preprocess.crop=64"]));
    assert!(message.contains(".png") && message.contains("preprocess.crop"), "{message}");
    assert!(!workshop.run_dir("run").exists(), "nothing is written before a batch could be made");
}

#[test]
fn a_crop_too_small_for_batch_norm_is_refused() {
    let workshop = Workshop::new();
    let message = failure(&workshop.train("run", &["--set", "model.output_stride=32"]));
    assert!(message.contains("single cell"), "{message}");
}

#[test]
fn unknown_devices_and_weights_of_another_architecture_are_refused() {
    let workshop = Workshop::new();
    let message = failure(&workshop.train("run", &["--device", "abacus"]));
    assert!(message.contains("cpu"), "{message}");

    assert!(workshop.train("tiny", &[]).status.success());
    let tiny = workshop.run_dir("tiny").join("weights/best.safetensors");
    let tiny = tiny.to_str().unwrap();
    let classic = ["--weights", tiny, "--set", "model.stem=classic"];
    let message = failure(&workshop.train("classic", &classic));
    assert!(
        message.contains("another architecture") && message.contains("model.stem"),
        "{message}"
    );

    let output = workshop.train("again", &["--weights", tiny]);
    assert!(output.status.success(), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("tensors loaded"), "{output:?}");
}

#[test]
fn a_training_says_what_it_will_do_and_how_long_that_takes() {
    let workshop = Workshop::new();
    let said = |run: &str, more: &[&str]| {
        let output = workshop.train(run, more);
        assert!(output.status.success(), "{}", failure(&output));
        String::from_utf8(output.stderr).unwrap()
    };
    let minmax = said("minmax", &[]);
    assert!(minmax.contains("minmax with tiny, 3 epochs: 12 training and"), "{minmax}");
    assert_eq!(minmax.matches("expected time of training").count(), 1, "{minmax}");

    // A U-Net has no backbone, whatever the settings of other methods say.
    let unet = ["--method", "unet", "--set", "unet.width=4", "--set", "unet.depth=3"];
    let unet = said("unet", &unet);
    assert!(unet.contains("note: unet, 3 epochs: "), "{unet}");

    let probe = said("probe", &["--method", "probe"]);
    assert!(probe.contains("expected time of computing features"), "{probe}");
    assert!(probe.contains("holds the probe"), "{probe}");
}

#[test]
fn one_class_is_nothing_to_learn_from() {
    let workshop = Workshop::new();
    for split in ["train", "valid", "test"] {
        let classes = fs::read_dir(workshop.folder.path().join("data").join(split)).unwrap();
        let mut classes: Vec<_> = classes.map(|entry| entry.unwrap().path()).collect();
        classes.sort();
        fs::remove_dir_all(&classes[0]).unwrap();
    }
    let message = failure(&workshop.train("run", &[]));
    assert!(message.contains("class"), "{message}");
}

#[test]
fn the_memory_of_a_step_does_not_grow_with_the_number_of_rounds() {
    let peak = |rounds: &str| {
        let mut command = Command::cargo_bin("pinpoint").unwrap();
        let flags = ["--backbone", "tiny", "--size", "192", "--batch", "4", "--rounds", rounds];
        let output = command.args(["bench", "train", "--steps", "2"]).args(flags).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let measured: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        measured["peak_mib"].as_f64()
    };
    let (Some(few), Some(many)) = (peak("1"), peak("8")) else {
        eprintln!("skipped: this system does not tell a process its peak memory");
        return;
    };
    // Allocators differ from run to run; seven more graphs would at least double the peak.
    assert!(many < 1.15 * few, "{many} MiB with 8 rounds, {few} MiB with 1");
}

#[test]
fn a_frozen_backbone_stays_as_it_is_until_its_epoch_comes() {
    let workshop = Workshop::new();
    let train = |run: &str, epochs: &str, frozen: &str, more: &[&str]| {
        let frozen = format!("optimizer.frozen_epochs={frozen}");
        let output =
            workshop.train(run, &[&["--epochs", epochs, "--set", &frozen][..], more].concat());
        assert!(output.status.success(), "{output:?}");
        weights::read(&workshop.run_dir(run).join("weights/last.safetensors")).unwrap()
    };
    let (short, long) = (train("short", "1", "3", &[]), train("long", "3", "3", &[]));
    let thawed = train("thawed", "3", "1", &[]);
    for (name, tensor) in &short {
        let is_head = name.starts_with("localizer.") || name.starts_with("classifier.");
        assert_eq!(tensor != &long[name], is_head, "{name}");
        assert_ne!(tensor, &thawed[name], "{name}");
    }

    // Stopped while frozen and resumed, it thaws as if never stopped.
    train("cut", "1", "1", &[]);
    let config = |run: &str| workshop.run_dir(run).join("config.toml");
    fs::copy(config("thawed"), config("cut")).unwrap();
    assert_eq!(train("cut", "3", "1", &["--resume"]), thawed);
}

#[test]
fn images_too_small_to_learn_from_are_refused() {
    let workshop = Workshop::new();
    let class = fs::read_dir(workshop.run_dir("data/train")).unwrap().next().unwrap().unwrap();
    let image = fs::read_dir(class.path()).unwrap().next().unwrap().unwrap().path();
    RgbImage::new(40, 31).save(&image).unwrap();
    for method in ["probe", "cam-avg"] {
        let message = failure(&workshop.train(method, &["--method", method]));
        assert!(message.contains("only 40×31") && message.contains("at least 32"), "{message}");
    }
}

/// Wants to stop as soon as it is asked.
struct Impatient;

impl Observer for Impatient {
    fn observe(&mut self, _event: &Event<'_>) {}

    fn wants_to_stop(&self) -> bool {
        true
    }
}

/// Wants to stop once batch norm is being recalibrated, if ever.
#[derive(Default)]
struct StopsRecalibration {
    batches: usize,
}

impl Observer for StopsRecalibration {
    fn observe(&mut self, event: &Event<'_>) {
        if let Event::Working { what: "recalibrating batch norm", .. } = event {
            self.batches += 1;
        }
    }

    fn wants_to_stop(&self) -> bool {
        self.batches > 0
    }
}

#[test]
fn a_recalibration_that_was_stopped_is_done_when_the_run_is_resumed() {
    let workshop = Workshop::new();
    let data = workshop.folder.path().join("data");
    let request = |run: &str| {
        let mut config = Config { method: "cam-avg".to_owned(), ..Config::default() };
        let Config { model, preprocess, train, .. } = &mut config;
        (model.backbone, model.output_stride, model.recalibrate) = (Backbone::Tiny, 8, true);
        (preprocess.crop, preprocess.upscale_short_side, preprocess.eval_multiple) = (32, 0, 8);
        (train.batch_size, train.epochs) = (4, 1);
        TrainRequest::new(&data, workshop.run_dir(run), config)
    };
    let best = |run: &str| weights(&workshop.run_dir(run))[0].clone();
    let whole = pinpoint::train(&request("whole"), &mut ()).unwrap();
    let mut observer = StopsRecalibration::default();
    let ending = pinpoint::train(&request("cut"), &mut observer).unwrap().ending;
    assert_eq!((ending, observer.batches), (Ending::Interrupted, 1));
    assert_ne!(best("cut"), best("whole"));
    let resumed = TrainRequest::resume(workshop.run_dir("cut")).unwrap();
    assert_eq!(pinpoint::train(&resumed, &mut ()).unwrap().ending, whole.ending);
    assert_eq!(best("cut"), best("whole"));
}

#[test]
fn a_wish_to_stop_does_not_wait_for_the_mean_colour_of_all_images() {
    let workshop = Workshop::new();
    let data = workshop.folder.path().join("data");
    let class = fs::read_dir(data.join("train")).unwrap().next().unwrap().unwrap().path();
    for image in fs::read_dir(class).unwrap() {
        // Whoever decodes it, fails.
        fs::write(image.unwrap().path(), "no image").unwrap();
    }
    let mut config = Config { method: "minmax".to_owned(), ..Config::default() };
    config.erase.fill = Fill::Mean;
    let run = workshop.run_dir("run");
    let request = TrainRequest::new(&data, &run, config);
    let trained = pinpoint::train(&request, &mut Impatient).unwrap();
    assert_eq!(trained.ending, Ending::Interrupted);
    assert!(!run.join("config.toml").exists(), "nothing was written");
    pinpoint::train(&request, &mut ()).unwrap_err();
}
