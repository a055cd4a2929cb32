//! How masks and classes are read is the same for every verb.

use std::{fs, path::Path, process::Command};

use assert_cmd::cargo::CommandCargoExt as _;
use image::{GrayImage, Luma};
use pinpoint::{
    data::{
        MaskRule,
        synthetic::{self, SyntheticSpec},
    },
    report::Report,
};

use crate::{
    evaluate::document,
    sweep::Bench,
    train::{Workshop, failure},
};

/// Turns masks of 0 and 255 into trimaps with an ignored last column.
fn write_trimaps(folder: &Path) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            write_trimaps(&path);
            continue;
        }
        let mask = image::open(&path).unwrap().into_luma8();
        let last = mask.width() - 1;
        GrayImage::from_fn(mask.width(), mask.height(), |x, y| {
            Luma([if x == last { 3 } else { 2 - u8::from(mask[(x, y)].0[0] > 0) }])
        })
        .save(&path)
        .unwrap();
    }
}

#[test]
fn a_sweep_reads_the_masks_of_all_its_rows_by_one_rule() {
    let bench = Bench::new();
    write_trimaps(&bench.path("data/masks"));
    for (out, flags) in [
        ("flag", &["--mask-rule", "trimap"][..]),
        ("set", &["--set", "data.mask_rule=trimap"]),
        ("recognized", &[]),
    ] {
        let flags = [flags, &["--methods", "all-ones,cam-avg"]].concat();
        let output = bench.sweep(out, &flags);
        assert!(output.status.success(), "{output:?}");
        for row in ["all-ones", "cam-avg-s0"] {
            let report = Report::read(&bench.path(out).join(row).join("report")).unwrap();
            assert_eq!(report.conditions.truth_rule, MaskRule::Trimap, "{out}, {row}");
        }
    }
    // Another rule is another score, so that what is there does not count as done.
    let output = bench.sweep("flag", &["--mask-rule", "non-zero", "--methods", "all-ones"]);
    assert!(output.status.success(), "{output:?}");
    let report = Report::read(&bench.path("flag/all-ones/report")).unwrap();
    assert_eq!(report.conditions.truth_rule, MaskRule::NonZero);
    // What was trained keeps its settings.
    let output = bench.sweep("flag", &["--mask-rule", "non-zero", "--methods", "all-ones,cam-avg"]);
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(message.contains("`data.mask_rule` was \"trimap\", is \"non-zero\""), "{message}");
}

#[test]
fn training_and_evaluation_take_the_rule_as_a_flag() {
    let workshop = Workshop::new();
    let trained = workshop.train("run", &["--epochs", "1", "--mask-rule", "votes"]);
    assert!(trained.status.success(), "{trained:?}");
    let config = fs::read_to_string(workshop.run_dir("run/config.toml")).unwrap();
    assert!(config.contains("mask_rule = \"votes\""), "{config}");
    for (flags, rule) in
        [(&[][..], MaskRule::Votes), (&["--mask-rule", "non-zero"], MaskRule::NonZero)]
    {
        let flags = [&["run"], flags].concat();
        let output = crate::evaluate::evaluate(&workshop, &flags);
        assert!(output.status.success(), "{output:?}");
        let report = Report::read(&workshop.run_dir("run/report")).unwrap();
        assert_eq!(report.conditions.truth_rule, rule);
    }
}

#[test]
fn a_run_is_scored_on_some_of_its_classes_and_on_no_others() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let spec = SyntheticSpec { classes: 3, train: 12, valid: 3, test: 6, side: 64, seed: 1 };
    synthetic::write(&path("data"), &spec, || {}).unwrap();
    let pinpoint = |arguments: &[&str]| {
        let mut command = Command::cargo_bin("pinpoint").unwrap();
        command.current_dir(folder.path()).args(arguments).output().unwrap()
    };
    let trained = pinpoint(&[
        "train",
        "--method",
        "probe",
        "--set",
        "model.backbone=tiny",
        "--data",
        "data",
        "--out",
        "run",
    ]);
    assert!(trained.status.success(), "{trained:?}");
    let mut classes: Vec<String> = fs::read_dir(path("data/test"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    classes.sort();
    // The first of three classes goes, so that the others' numbers change.
    for split in ["train", "valid", "test", "masks/train", "masks/valid", "masks/test"] {
        let _ = fs::remove_dir_all(path("data").join(split).join(&classes[0]));
    }
    let found = document(&pinpoint(&["evaluate", "run", "--data", "data", "--json"]));
    assert_eq!(found["images"], 4);

    fs::rename(path("data/test").join(&classes[1]), path("data/test/unicorn")).unwrap();
    let message = failure(&pinpoint(&["evaluate", "run", "--data", "data", "--json"]));
    assert!(message.contains("not trained on: `unicorn`"), "{message}");
}
