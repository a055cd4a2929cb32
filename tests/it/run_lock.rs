//! One run, several processes: only one of them writes.

use std::{
    fs,
    path::Path,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use assert_cmd::cargo::CommandCargoExt as _;

use crate::train::{Workshop, failure, weights};

/// Starts a training that takes a while, and waits until it has begun.
fn started(workshop: &Workshop, run: &str, epochs: &str) -> Child {
    let mut command = workshop.command(run, &["--epochs", epochs]);
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let checkpoint = workshop.run_dir(run).join("state/checkpoint.safetensors");
    let begun = Instant::now();
    while !checkpoint.exists() {
        assert!(begun.elapsed() < Duration::from_secs(60), "the training does not start");
        thread::sleep(Duration::from_millis(5));
    }
    child
}

#[test]
fn a_run_that_is_being_written_is_refused_and_a_dead_writer_blocks_nobody() {
    let workshop = Workshop::new();
    let mut first = started(&workshop, "run", "1000");
    let message = failure(&workshop.train("run", &["--epochs", "1000", "--resume"]));
    let holder = format!("process {}", first.id());
    assert!(message.contains(&holder) && message.contains("hint:"), "{message}");
    failure(&workshop.train("run", &["--epochs", "1000"]));
    assert!(first.try_wait().unwrap().is_none(), "the first training goes on");
    first.kill().unwrap();
    first.wait().unwrap();

    let mut second = workshop.command("run", &["--epochs", "1000", "--resume"]);
    let mut second = second.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    thread::sleep(Duration::from_millis(300));
    assert!(second.try_wait().unwrap().is_none(), "a dead holder must not block");
    second.kill().unwrap();
    second.wait().unwrap();
}

#[test]
fn a_second_process_changes_nothing_of_what_the_first_one_learns() {
    let workshop = Workshop::new();
    assert!(workshop.train("alone", &[]).status.success());
    for attempt in 0..4 {
        let run = format!("run{attempt}");
        let mut first = workshop.command(&run, &[]);
        let mut first = first.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        thread::sleep(Duration::from_millis(40 * attempt));
        let more: &[&str] = if attempt % 2 == 0 { &["--resume"] } else { &[] };
        let second = workshop.train(&run, more);
        let status = first.wait().unwrap();
        // Whoever was refused was told so, and whoever was not has done all of it.
        assert!(status.success() || second.status.success(), "{second:?}");
        assert!(weights(&workshop.run_dir("alone")) == weights(&workshop.run_dir(&run)), "{run}");
    }
}

#[test]
fn two_fresh_trainings_into_one_folder_leave_the_run_of_one_of_them() {
    let workshop = Workshop::new();
    for seed in ["1", "2"] {
        assert!(workshop.train(seed, &["--seed", seed]).status.success());
    }
    let start = |seed: &str| {
        let mut command = workshop.command("both", &["--seed", seed]);
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    };
    for _ in 0..3 {
        let children = [start("1"), start("2")];
        let codes = children.map(|mut child| child.wait().unwrap().code());
        assert!(codes.contains(&Some(0)) && codes.contains(&Some(2)), "{codes:?}");
        let winner = if codes[0] == Some(0) { "1" } else { "2" };
        let (both, alone) = (workshop.run_dir("both"), workshop.run_dir(winner));
        assert!(weights(&both) == weights(&alone), "weights of {winner}");
        let config = |run: &Path| fs::read_to_string(run.join("config.toml")).unwrap();
        assert_eq!(config(&both), config(&alone));
        fs::remove_dir_all(both).unwrap();
    }
}

#[test]
fn predictions_of_two_processes_may_go_into_one_folder() {
    let workshop = Workshop::new();
    assert!(workshop.train("run", &[]).status.success());
    let out = workshop.run_dir("out");
    // What a killed process left, and what is the user's own.
    let class = fs::read_dir(workshop.run_dir("data/test")).unwrap().next().unwrap().unwrap();
    let out_of_class = out.join(class.file_name());
    fs::create_dir_all(&out_of_class).unwrap();
    fs::write(out_of_class.join(".1-2-3.pinpoint-part"), "half").unwrap();
    let image = fs::read_dir(class.path()).unwrap().next().unwrap().unwrap().path();
    let mine = format!("{}_mask.part", image.file_stem().unwrap().to_str().unwrap());
    fs::write(out_of_class.join(&mine), "mine").unwrap();
    let start = || {
        let mut command = Command::cargo_bin("pinpoint").unwrap();
        command.arg("predict").arg(workshop.run_dir("run")).arg(workshop.run_dir("data/test"));
        command.arg("--out").arg(&out).args(["--npy", "--overlay"]);
        command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let children: Vec<Child> = (0..3).map(|_| start()).collect();
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{output:?}");
    }
    assert_eq!(fs::read(out_of_class.join(&mine)).unwrap(), b"mine");
    let names = fs::read_dir(&out_of_class).unwrap().map(|entry| entry.unwrap().file_name());
    assert!(names.into_iter().all(|name| !name.to_string_lossy().contains("pinpoint-part")));
}
