//! What is said about memory before the work, beside what the work then takes.
#![cfg(target_os = "linux")]

use std::{
    fs,
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use assert_cmd::cargo::CommandCargoExt as _;
use pinpoint::{
    data::synthetic::{self, SyntheticSpec},
    model::footprint,
    run::RunDir,
};

const MIB: f64 = 1024.0 * 1024.0;

/// What a system may add to a small process, in MiB: stacks, and pages that are larger than asked.
const SLACK: f64 = 16.0;

/// The most memory a process had in use until now, in MiB.
fn peak(child: &Child) -> Option<f64> {
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib / 1024.0)
}

/// Runs a command to its end, and tells its peak in MiB.
fn peak_of(mut command: Command) -> f64 {
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let mut highest = 0.0_f64;
    while child.try_wait().unwrap().is_none() {
        highest = peak(&child).map_or(highest, |peak| highest.max(peak));
        thread::sleep(Duration::from_millis(1));
    }
    assert!(child.wait().unwrap().success(), "{command:?}");
    highest
}

#[test]
fn the_estimate_is_neither_far_below_nor_far_above_what_is_needed() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let spec = SyntheticSpec { classes: 2, train: 8, valid: 2, test: 2, side: 64, seed: 1 };
    synthetic::write(&data, &spec, || {}).unwrap();
    // Weights decide in the first, what layers give in the second.
    for (method, settings) in [
        ("cam-avg", vec!["model.backbone=resnet18", "preprocess.crop=64", "train.batch_size=4"]),
        ("minmax", vec!["model.backbone=tiny", "preprocess.crop=256", "train.batch_size=8"]),
        ("probe", vec!["model.backbone=resnet18"]),
    ] {
        let run = folder.path().join(method);
        let mut train = Command::cargo_bin("pinpoint").unwrap();
        train.args(["train", "--method", method, "--threads", "2", "--data"]).arg(&data);
        train.arg("--out").arg(&run).args(["--epochs", "1", "--set", "erase.rounds=0"]);
        train.args(["--set", "preprocess.upscale_short_side=256"]);
        for setting in settings {
            train.args(["--set", setting]);
        }
        let peak = peak_of(train);
        let config = RunDir::open(&run).unwrap().config().unwrap();
        let estimate = footprint::of_training(&config, 2, 8) / MIB;
        eprintln!("{method}: {estimate:.0} MiB estimated, {peak:.0} MiB needed");
        let allowed = 0.8 * peak - SLACK..2.0 * peak;
        assert!(allowed.contains(&estimate), "{method}: {estimate} of {peak}");

        let mut evaluate = Command::cargo_bin("pinpoint").unwrap();
        evaluate.arg("evaluate").arg(&run).args(["--threads", "2", "--no-report"]);
        let peak = peak_of(evaluate);
        let pixels = 256.0 * 256.0;
        let waiting = footprint::of_waiting(7.0 * pixels);
        let estimate = (footprint::of_prediction(&config, 2, pixels) + waiting) / MIB;
        eprintln!("{method}, evaluation: {estimate:.0} MiB estimated, {peak:.0} MiB needed");
        let allowed = 0.8 * peak - SLACK..2.0 * peak;
        assert!(allowed.contains(&estimate), "{method}: {estimate} of {peak}");

        let mut predict = Command::cargo_bin("pinpoint").unwrap();
        predict.arg("predict").arg(&run).arg(data.join("test")).args(["--threads", "2"]);
        predict.arg("--out").arg(folder.path().join("masks"));
        let peak = peak_of(predict);
        let estimate = footprint::of_prediction(&config, 2, 256.0 * 256.0) / MIB;
        eprintln!("{method}, prediction: {estimate:.0} MiB estimated, {peak:.0} MiB needed");
        let allowed = 0.8 * peak - SLACK..2.0 * peak;
        assert!(allowed.contains(&estimate), "{method}: {estimate} of {peak}");
    }
}
