//! How masks and classes are read is the same for every verb.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use assert_cmd::cargo::CommandCargoExt as _;
use image::{GrayImage, Luma};
use pinpoint::{
    data::{
        MaskRule,
        synthetic::{self, SyntheticSpec},
    },
    report::Report,
};
use serde_json::{Value, json};

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

/// What a folder holds, by name.
pub(crate) fn sorted(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<_> = fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    paths.sort();
    paths
}

/// Polygons of a mask: a rectangle for each run of a row.
fn rectangles(mask: &GrayImage) -> Value {
    let mut found = Vec::new();
    for y in 0..mask.height() {
        let inside = |x: u32| x < mask.width() && mask[(x, y)].0[0] > 0;
        let starts = (0..mask.width()).filter(|&x| inside(x) && (x == 0 || !inside(x - 1)));
        found.extend(starts.map(|x| {
            let end = (x..).find(|&x| !inside(x)).unwrap();
            json!([x, y, end, y, end, y + 1, x, y + 1])
        }));
    }
    found.into()
}

/// Run lengths of a mask, down its columns.
fn runs(mask: &GrayImage) -> Value {
    let (width, height) = mask.dimensions();
    let (mut counts, mut on) = (vec![0_u32], false);
    for (x, y) in (0..width).flat_map(|x| (0..height).map(move |y| (x, y))) {
        if (mask[(x, y)].0[0] > 0) != on {
            on = !on;
            counts.push(0);
        }
        *counts.last_mut().unwrap() += 1;
    }
    json!({ "size": [height, width], "counts": counts })
}

#[test]
fn masks_drawn_in_a_list_of_coco_score_as_their_pictures_do() {
    let workshop = Workshop::new();
    let data = workshop.run_dir("data");
    let coco = workshop.run_dir("coco");
    fs::create_dir_all(coco.join("test")).unwrap();
    fs::create_dir_all(coco.join("annotations")).unwrap();
    let (mut images, mut annotations, mut categories) = (Vec::new(), Vec::new(), Vec::new());
    for class in sorted(&data.join("test")) {
        let name = class.file_name().unwrap().to_str().unwrap();
        let category = categories.len();
        categories.push(json!({ "id": category, "name": name }));
        for image in sorted(&class) {
            let (id, file) = (images.len(), image.file_name().unwrap().to_str().unwrap());
            fs::copy(&image, coco.join("test").join(file)).unwrap();
            images.push(json!({ "id": id, "file_name": file, "width": 32, "height": 32 }));
            let mask = image::open(data.join("masks/test").join(name).join(file)).unwrap();
            let mask = mask.into_luma8();
            let segmentation = if id % 2 == 0 { rectangles(&mask) } else { runs(&mask) };
            let area = json!({ "id": id, "image_id": id, "category_id": category,
                "segmentation": segmentation });
            annotations.push(area);
        }
    }
    let list = json!({ "images": images, "annotations": annotations, "categories": categories });
    fs::write(coco.join("annotations/instances_test.json"), list.to_string()).unwrap();
    let score = |data: &str| {
        let flags = ["evaluate", "--method", "centre-gaussian", "--data", data, "--json"];
        let mut command = Command::cargo_bin("pinpoint").unwrap();
        document(&command.current_dir(workshop.folder.path()).args(flags).output().unwrap())
    };
    let [drawn, pictures] = ["coco", "data"].map(score);
    assert_eq!(drawn["images"], 4);
    for key in ["f1_foreground", "f1_background", "iou_foreground"] {
        assert!(drawn[key].is_number(), "{key}: {drawn}");
        assert_eq!(drawn[key], pictures[key], "{key}");
    }
}
