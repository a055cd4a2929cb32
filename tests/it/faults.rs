//! Training that fails or dies at each of its file operations, and is then resumed.
//!
//! A library in C is preloaded into the real command: it counts the operations that change
//! files below the run directory, and at the Nth of them reports a full disk, kills the
//! process, or kills it with half of the bytes written. Linux only.
#![cfg(target_os = "linux")]

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
    time::{Duration, Instant},
};

use crate::train::{Workshop, weights};

/// What each of the two tests may take; a slow machine tries fewer places, evenly spread.
const TIME: Duration = Duration::from_secs(50);

/// Two steps in one epoch: every kind of file is written, and few of each.
const BY_STEPS: &[&str] =
    &["--epochs", "1", "--set", "train.batch_size=6", "--set", "erase.rounds=0"];

/// One head of each kind, on few features.
const PROBE: &[&str] = &[
    "--method",
    "probe",
    "--set",
    "probe.dimensions=8",
    "--set",
    "probe.heads=1",
    "--set",
    "probe.students=1",
    "--set",
    "probe.generations=1",
];

struct Faults {
    workshop: Workshop,
    shim: PathBuf,
    /// The training that faults strike.
    training: &'static [&'static str],
}

impl Faults {
    /// Compiles the shim; none where there is no compiler.
    fn new(training: &'static [&'static str]) -> Option<Self> {
        let workshop = Workshop::new();
        let shim = workshop.run_dir("shim.so");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/faults/shim.c");
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-O1", "-o"]).arg(&shim).arg(source).arg("-ldl");
        let compiled = compiler.status().is_ok_and(|status| status.success());
        compiled.then_some(Self { workshop, shim, training })
    }

    /// Trains into `run`, with a fault at the `at`th operation.
    fn train(&self, run: &str, mode: &str, at: usize) -> Output {
        let mut command = self.workshop.command(run, self.training);
        command.env("LD_PRELOAD", &self.shim).env("FAULT_ROOT", self.workshop.run_dir(run));
        command.env("FAULT_MODE", mode).env("FAULT_AT", at.to_string());
        command.env("FAULT_COUNT", self.workshop.run_dir("count")).output().unwrap()
    }

    /// Goes on without faults, whatever there is.
    fn resume(&self, run: &str) -> Output {
        let started = self.workshop.run_dir(run).join("config.toml").exists();
        let more = [self.training, if started { &["--resume"] } else { &[] }].concat();
        self.workshop.train(run, &more)
    }
}

/// Weights and metrics of a run; the time that epochs took is of no account.
fn outcome(run: &Path) -> ([Vec<u8>; 2], String) {
    let metrics = fs::read_to_string(run.join("metrics.jsonl")).unwrap();
    let metrics = metrics.lines().map(|line| {
        let mut record: serde_json::Value = serde_json::from_str(line).unwrap();
        record["seconds"] = 0.into();
        record.to_string()
    });
    (weights(run), metrics.collect())
}

/// Everything below a folder that a writer left unfinished.
fn leftovers(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(leftovers(&path));
        } else if path.to_string_lossy().ends_with("pinpoint-part") {
            found.push(path);
        }
    }
    found
}

#[test]
fn a_fault_at_any_file_operation_costs_nothing_but_time() {
    strike_everywhere(BY_STEPS, 40);
}

#[test]
fn a_fault_at_any_file_operation_of_a_probe_costs_nothing_but_time() {
    strike_everywhere(PROBE, 30);
}

/// Trains with each fault in turn, resumes, and demands what an undisturbed training gives,
/// which takes more than `fewest` file operations.
fn strike_everywhere(training: &'static [&'static str], fewest: usize) {
    let Some(faults) = Faults::new(training) else {
        eprintln!("skipped: there is no C compiler to make the faults with");
        return;
    };
    let output = faults.train("whole", "fail", 0);
    assert!(output.status.success(), "{output:?}");
    let expected = outcome(&faults.workshop.run_dir("whole"));
    let count = fs::read_to_string(faults.workshop.run_dir("count")).unwrap();
    let operations: usize = count.parse().unwrap();
    assert!(operations > fewest, "{operations} operations: is the shim in place?");

    // Every operation in every way, in an order that is spread evenly however far it comes.
    let all: Vec<(usize, &str)> =
        (1..=operations).flat_map(|at| ["kill", "fail", "torn"].map(|mode| (at, mode))).collect();
    let stride = (all.len() * 5 / 8..).find(|stride| gcd(*stride, all.len()) == 1).unwrap();
    let started = Instant::now();
    let (mut trials, mut died) = (0, 0);
    for place in 0..all.len() {
        if started.elapsed() > TIME {
            break;
        }
        let (at, mode) = all[place * stride % all.len()];
        let output = faults.train("run", mode, at);
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!told.contains("panicked"), "{mode} at {at}: {told}");
        if mode == "fail" && !output.status.success() {
            assert_eq!(output.status.code(), Some(2), "{mode} at {at}: {told}");
            assert!(told.contains("cannot") && told.contains("run"), "{mode} at {at}: {told}");
        }
        died += usize::from(!output.status.success());
        if !output.status.success() {
            let output = faults.resume("run");
            assert!(output.status.success(), "resumed after {mode} at {at}: {output:?}");
        }
        let run = faults.workshop.run_dir("run");
        assert!(outcome(&run) == expected, "{mode} at {at} has changed the outcome");
        assert_eq!(leftovers(&run), [] as [PathBuf; 0], "{mode} at {at}");
        fs::remove_dir_all(run).unwrap();
        trials += 1;
    }
    eprintln!(
        "{trials} faults of {} tried at {operations} operations, {died} ended the training",
        all.len()
    );
    assert!(trials >= 10 && died > trials / 2, "{trials} trials, {died} of them deadly");
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}
