//! Saved score maps, ours and those of other tools, and truth of every kind.

use std::{fs, path::PathBuf, process::Command};

use assert_cmd::cargo::CommandCargoExt as _;
use image::{GrayImage, Luma};
use pinpoint::data::npy;
use serde_json::Value;

use crate::{
    evaluate::{document, evaluate},
    train::{Workshop, failure},
};

/// Test images of the workshop, relative to its data, sorted.
fn test_images(workshop: &Workshop) -> Vec<PathBuf> {
    let data = workshop.folder.path().join("data");
    let mut images = Vec::new();
    for class in fs::read_dir(data.join("test")).unwrap() {
        for image in fs::read_dir(class.unwrap().path()).unwrap() {
            images.push(image.unwrap().path().strip_prefix(&data).unwrap().to_owned());
        }
    }
    images.sort();
    images
}

/// Saves a map of 32 × 32 pixels for every test image, mirroring their folders.
fn save_maps(workshop: &Workshop, value: impl Fn(usize, usize) -> f32) {
    for (index, image) in test_images(workshop).iter().enumerate() {
        let file = workshop.run_dir("maps").join(image).with_extension("npy");
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        let values: Vec<f32> = (0..32 * 32).map(|pixel| value(index, pixel)).collect();
        fs::write(file, npy::encode(32, &values)).unwrap();
    }
}

fn score_maps(workshop: &Workshop) -> Value {
    document(&evaluate(workshop, &["--maps", "maps", "--json"]))
}

#[test]
fn saved_maps_score_as_the_network_that_made_them() {
    let workshop = Workshop::new();
    assert!(workshop.train("run", &[]).status.success());
    let network = document(&evaluate(&workshop, &["run", "--save-maps", "--json"]));
    let saved = document(&evaluate(&workshop, &["--maps", "run/report/maps", "--json"]));
    for score in ["f1_foreground", "f1_background", "pxap", "roc_auc", "max_box_acc_v2"] {
        assert_eq!(network[score], saved[score], "{score}");
    }
    assert!(saved["classification_error"].is_null());
    assert_eq!(saved["conditions"]["maps"], "run/report/maps");
}

#[test]
fn what_is_scored_must_be_said_and_where_its_images_are() {
    let pinpoint = |arguments: &[&str]| {
        let mut command = Command::cargo_bin("pinpoint").unwrap();
        failure(&command.arg("evaluate").args(arguments).output().unwrap())
    };
    let message = pinpoint(&[]);
    assert!(message.contains("<RUN>") && !message.contains("--data"), "{message}");
    let message = pinpoint(&["--method", "all-ones"]);
    assert!(message.contains("--data <PATH>"), "{message}");
    let message = pinpoint(&["--maps", "maps"]);
    assert!(message.contains("of which dataset") && message.contains("`--data`"), "{message}");
}

#[test]
fn foreign_maps_may_lie_flat_and_hold_other_numbers() {
    let workshop = Workshop::new();
    save_maps(&workshop, |_, pixel| (pixel % 256) as f32 / 255.0);
    let expected = score_maps(&workshop);
    fs::remove_dir_all(workshop.run_dir("maps")).unwrap();
    fs::create_dir(workshop.run_dir("maps")).unwrap();
    for (index, image) in test_images(&workshop).iter().enumerate() {
        let header = |kind: &str| {
            let text =
                format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': (32, 32), }}");
            let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
            bytes.extend((text.len() as u16).to_le_bytes());
            bytes.extend(text.bytes());
            bytes
        };
        let levels = (0..32 * 32).map(|pixel| (pixel % 256) as u8);
        let bytes: Vec<u8> = if index % 2 == 0 {
            header("|u1").into_iter().chain(levels).collect()
        } else {
            let wide = levels.flat_map(|level| (f64::from(level) / 255.0).to_le_bytes());
            header("<f8").into_iter().chain(wide).collect()
        };
        let name = image.file_name().unwrap().to_str().unwrap();
        fs::write(workshop.run_dir("maps").join(format!("{name}.npy")), bytes).unwrap();
    }
    let found = score_maps(&workshop);
    assert_eq!(found["f1_foreground"], expected["f1_foreground"]);
    assert_eq!(found["roc_auc"], expected["roc_auc"]);
}

#[test]
fn unusable_maps_are_listed_together_with_what_is_wrong() {
    let workshop = Workshop::new();
    save_maps(&workshop, |index, pixel| match (index, pixel) {
        (0, 33) => f32::NAN,
        (1, 0) => 1.5,
        _ => 0.5,
    });
    let images = test_images(&workshop);
    let map = |index: usize| workshop.run_dir("maps").join(&images[index]).with_extension("npy");
    fs::write(map(2), npy::encode(16, &[0.5; 256])).unwrap();
    fs::write(map(3), b"\x93NUMPY\x01\x00\xff\xff").unwrap();
    let message = failure(&evaluate(&workshop, &["--maps", "maps"]));
    for part in
        ["NaN at column 1, row 1", "1.5 at column 0", "16×16 but its image is 32×32", "ends early"]
    {
        assert!(message.contains(part), "{part}: {message}");
    }
    for index in 0..4 {
        let name = map(index).file_name().unwrap().to_str().unwrap().to_owned();
        assert!(message.contains(&name), "{name}: {message}");
    }
    assert!(message.contains("hint: save scores in [0, 1]"), "{message}");

    fs::remove_file(map(1)).unwrap();
    let message = failure(&evaluate(&workshop, &["--maps", "maps"]));
    assert!(message.contains("1 of 4 images have no score map"), "{message}");
    let message = failure(&evaluate(&workshop, &["--maps", "nowhere"]));
    assert!(message.contains("no such folder"), "{message}");
}

#[test]
fn a_constant_map_has_a_defined_score_under_every_rule() {
    let workshop = Workshop::new();
    save_maps(&workshop, |_, _| 0.25);
    for (rule, marked) in [("0.5", false), ("0.25", true), ("otsu", false), ("percentile:80", true)]
    {
        let more = ["--maps", "maps", "--json", "--crf", "glas", "--threshold", rule];
        let plain = document(&evaluate(&workshop, &[&more[..3], &more[5..]].concat()));
        let recall = if marked { 100.0 } else { 0.0 };
        assert_eq!(plain["recall"], recall, "{rule}");
        assert_eq!(plain["roc_auc"], 50.0, "a constant map ranks nothing");
        let refined = document(&evaluate(&workshop, &more));
        assert!(refined["f1_foreground"].is_number(), "{rule}");
    }
}

#[test]
fn empty_truth_counts_and_missing_truth_is_left_out() {
    let workshop = Workshop::new();
    save_maps(&workshop, |_, _| 0.0);
    let masks = workshop.folder.path().join("data/masks");
    let images = test_images(&workshop);
    let mask = |index: usize| masks.join(&images[index]).with_extension("png");
    assert!(mask(0).is_file(), "{}", mask(0).display());
    GrayImage::from_pixel(32, 32, Luma([0])).save(mask(0)).unwrap();
    fs::remove_file(mask(1)).unwrap();
    let found = score_maps(&workshop);
    assert_eq!((found["images"].as_u64(), found["images_with_truth"].as_u64()), (Some(4), Some(3)));
    assert_eq!(found["images_without_foreground"], 1);
    let third = 100.0 / 3.0;
    assert!((found["f1_foreground"].as_f64().unwrap() - third).abs() < 1e-9, "{found}");

    fs::remove_dir_all(masks.join("test")).unwrap();
    let output = evaluate(&workshop, &["--maps", "maps", "--json", "--report", "out"]);
    let found = document(&output);
    assert!(found["f1_foreground"].is_null() && found["images_with_truth"] == 0, "{found}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("has a mask"), "{output:?}");
    assert!(workshop.run_dir("out/report.html").is_file());
    let message = failure(&evaluate(&workshop, &["--maps", "maps", "--threshold", "oracle"]));
    assert!(message.contains("no image of the `test` split has a mask"), "{message}");
}
