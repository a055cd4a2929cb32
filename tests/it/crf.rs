//! The dense CRF from outside.

use std::{
    fs,
    path::PathBuf,
    process::{Command, Output},
};

use assert_cmd::cargo::CommandCargoExt as _;
use image::{GrayImage, Luma, Rgb, RgbImage};
use pinpoint::data::npy;
use tempfile::TempDir;

/// A folder with an image, dark on the left and bright on the right, and a mask that is unsure.
struct Workshop {
    folder: TempDir,
}

const WIDTH: u32 = 48;
const HEIGHT: u32 = 32;

impl Workshop {
    fn new() -> Self {
        let workshop = Self { folder: tempfile::tempdir().unwrap() };
        let image =
            RgbImage::from_fn(WIDTH, HEIGHT, |x, _| Rgb(if x < 24 { [20; 3] } else { [230; 3] }));
        image.save(workshop.path("image.png")).unwrap();
        // Right half likely, with a hole; the border four pixels off the edge in the image.
        let mask = GrayImage::from_fn(WIDTH, HEIGHT, |x, y| {
            let hole = (30..33).contains(&x) && (10..13).contains(&y);
            Luma([if x < 28 || hole { 80 } else { 190 }])
        });
        mask.save(workshop.path("mask.png")).unwrap();
        workshop
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn crf(&self, arguments: &[&str]) -> Output {
        let mut command = Command::cargo_bin("pinpoint").unwrap();
        command.current_dir(self.folder.path()).arg("crf").args(arguments).output().unwrap()
    }

    fn refined(&self, more: &[&str]) -> GrayImage {
        let output = self.crf(&[&["image.png", "mask.png", "-o", "out.png"], more].concat());
        assert!(output.status.success(), "{output:?}");
        image::open(self.path("out.png")).unwrap().into_luma8()
    }
}

fn failure(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!message.contains("panicked"), "{message}");
    message
}

#[test]
fn a_mask_is_snapped_to_the_edge_and_its_hole_closed() {
    let workshop = Workshop::new();
    for preset in ["glas", "natural"] {
        let refined = workshop.refined(&["--preset", preset]);
        let wrong = refined
            .enumerate_pixels()
            .filter(|(x, _, pixel)| pixel.0[0] != if *x < 24 { 0 } else { 255 })
            .count();
        assert!(wrong <= 48 * 32 / 50, "{preset}: {wrong} pixels are wrong");
    }
}

#[test]
fn without_weights_or_updates_the_mask_comes_back() {
    let workshop = Workshop::new();
    let mask = image::open(workshop.path("mask.png")).unwrap().into_luma8();
    let off = ["--soft", "--smoothness-weight", "0", "--appearance-weight", "0"];
    assert!(workshop.refined(&off) == mask);
    assert!(workshop.refined(&["--soft", "--iterations", "0"]) == mask);
    assert!(workshop.refined(&["--soft"]) != mask);
}

#[test]
fn every_parameter_counts() {
    let workshop = Workshop::new();
    let refined = |flags: &[&str]| {
        let output = workshop.crf(&[&["image.png", "mask.png", "-o", "out.npy"], flags].concat());
        assert!(output.status.success(), "{output:?}");
        fs::read(workshop.path("out.npy")).unwrap()
    };
    let usual = refined(&["--preset", "glas"]);
    assert!(usual == refined(&["--preset", "glas", "--theta-alpha", "13"]), "what the preset says");
    for flags in [
        ["--smoothness-weight", "0.1"],
        ["--theta-gamma", "1"],
        ["--appearance-weight", "0.1"],
        ["--theta-alpha", "3"],
        ["--theta-beta", "200"],
        ["--iterations", "1"],
    ] {
        assert!(refined(&[&["--preset", "glas"], &flags[..]].concat()) != usual, "{flags:?}");
    }
}

#[test]
fn arrays_go_in_and_come_out() {
    let workshop = Workshop::new();
    let mask = image::open(workshop.path("mask.png")).unwrap().into_luma8();
    let values: Vec<f32> = mask.iter().map(|&grey| f32::from(grey) / 255.0).collect();
    fs::write(workshop.path("mask.npy"), npy::encode(48, &values)).unwrap();
    for input in ["mask.png", "mask.npy"] {
        let output = workshop.crf(&["image.png", input, "-o", "out.npy"]);
        assert!(output.status.success() && output.stdout.is_empty(), "{output:?}");
        let map = npy::read(&workshop.path("out.npy"), 1).unwrap();
        assert_eq!((map.width, map.height), (48, 32));
        let soft = workshop.refined(&["--soft"]);
        let same = soft.iter().zip(&map.values).all(|(&g, &p)| g == (255.0 * p).round() as u8);
        assert!(same, "{input}");
    }
}

#[test]
fn what_does_not_fit_is_refused_with_both_sides_named() {
    let workshop = Workshop::new();
    GrayImage::new(47, 32).save(workshop.path("small.png")).unwrap();
    let message = failure(&workshop.crf(&["image.png", "small.png", "-o", "out.png"]));
    assert!(message.contains("47×32") && message.contains("48×32"), "{message}");

    let message = failure(&workshop.crf(&["image.png", "image.jpg", "-o", "out.png"]));
    assert!(message.contains("image.jpg"), "{message}");
    let message = failure(&workshop.crf(&["image.png", "mask.png", "-o", "out.tif"]));
    assert!(message.contains(".npy"), "{message}");
    let message =
        failure(&workshop.crf(&["image.png", "mask.png", "-o", "out.png", "--theta-beta", "0"]));
    assert!(message.contains("theta_beta"), "{message}");
    fs::write(workshop.path("nan.npy"), npy::encode(48, &[f32::NAN; 48 * 32])).unwrap();
    failure(&workshop.crf(&["image.png", "nan.npy", "-o", "out.png"]));
    assert!(!workshop.path("out.png").exists());
}

#[test]
fn neither_the_image_nor_the_mask_is_replaced() {
    let workshop = Workshop::new();
    for out in ["image.png", "mask.png", "./mask.png"] {
        let before = fs::read(workshop.path(out)).unwrap();
        let message = failure(&workshop.crf(&["image.png", "mask.png", "-o", out]));
        assert!(message.contains(out) && message.contains("another `--out`"), "{message}");
        assert_eq!(fs::read(workshop.path(out)).unwrap(), before);
    }
}

#[test]
fn a_mask_of_labels_is_taken_at_its_word_but_not_silently() {
    let workshop = Workshop::new();
    GrayImage::from_fn(48, 32, |x, _| Luma([u8::from(x > 24)]))
        .save(workshop.path("labels.png"))
        .unwrap();
    let output = workshop.crf(&["image.png", "labels.png", "-o", "out.png"]);
    assert!(output.status.success(), "{output:?}");
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(message.contains("white (255) is foreground"), "{message}");
}
