//! The memory of an evaluation does not grow with the number of images.

use std::{
    fs,
    path::Path,
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use assert_cmd::cargo::CommandCargoExt as _;
use pinpoint::data::synthetic::{self, SyntheticSpec};

/// Makes `copies` test images out of the two that are there, with their masks.
fn multiply(data: &Path, copies: usize) {
    for folder in [data.join("test"), data.join("masks/test")] {
        for class in fs::read_dir(&folder).unwrap() {
            let class = class.unwrap().path();
            let original = fs::read_dir(&class).unwrap().next().unwrap().unwrap().path();
            for copy in 0..copies / 2 {
                fs::hard_link(&original, class.join(format!("copy{copy}.png"))).unwrap();
            }
        }
    }
}

/// The most memory a process had in use until now, in MiB.
#[cfg(target_os = "linux")]
fn peak(child: &Child) -> Option<f64> {
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib / 1024.0)
}

#[cfg(not(target_os = "linux"))]
fn peak(_: &Child) -> Option<f64> {
    None
}

/// The peak of an evaluation with its report, looked at until it ends.
fn peak_of_evaluation(images: usize) -> Option<f64> {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let spec = SyntheticSpec { classes: 2, train: 2, valid: 2, test: 2, side: 32, seed: 1 };
    synthetic::write(&data, &spec, || {}).unwrap();
    multiply(&data, images);
    let mut command = Command::cargo_bin("pinpoint").unwrap();
    command.args(["evaluate", "--method", "all-ones", "--threads", "2", "--data"]).arg(&data);
    command.arg("--report").arg(folder.path().join("report")).stdout(Stdio::null());
    let mut child = command.stderr(Stdio::null()).spawn().unwrap();
    let mut highest = None;
    while child.try_wait().unwrap().is_none() {
        highest = peak(&child).or(highest);
        thread::sleep(Duration::from_millis(2));
    }
    assert!(child.wait().unwrap().success());
    highest
}

#[test]
fn five_thousand_images_need_the_memory_of_a_few() {
    let (Some(few), Some(many)) = (peak_of_evaluation(250), peak_of_evaluation(5000)) else {
        eprintln!("skipped: this system does not tell the peak memory of a process");
        return;
    };
    // Rows of text grow by a few hundred bytes an image; a kept map of 32 × 32 would be 4 KiB.
    assert!(many < few + 16.0, "{many:.1} MiB for 5000 images, {few:.1} MiB for 250");
}
