//! `pinpoint reproduce` from outside: tables from data, gone on with, and other data refused.

use std::{
    fs,
    path::Path,
    process::{Command, Output},
};

use assert_cmd::cargo::CommandCargoExt as _;
use pinpoint::data::{Dataset, OpenOptions};

use crate::train::{Workshop, failure};

/// The rows that need no training, so that the built-in settings take no time.
const TRIVIAL: &[&str] = &["--methods", "all-ones,centre-gaussian", "--threads", "2"];

fn reproduce(workshop: &Workshop, dataset: &str, more: &[&str]) -> Output {
    let weights =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/fixtures/weights/f32.safetensors");
    let mut command = Command::cargo_bin("pinpoint").unwrap();
    command.current_dir(workshop.folder.path()).args(["reproduce", dataset, "--data", "data"]);
    command.arg("--weights").arg(weights).args(TRIVIAL).args(more).output().unwrap()
}

#[test]
fn tables_come_from_the_data_and_what_is_finished_is_not_done_again() {
    // Two classes, as GlaS has.
    let workshop = Workshop::new();
    let output = reproduce(&workshop, "glas", &[]);
    assert!(output.status.success(), "{output:?}");
    let tables = String::from_utf8_lossy(&output.stdout).into_owned();
    for part in ["Centre Gaussian (trivial)", "Pixel level, with CRF", "Diagnosis of the maps"] {
        assert!(tables.contains(part), "{part}: {tables}");
    }
    let runs = workshop.folder.path().join("runs/glas");
    assert!(runs.join("compare/comparison.html").is_file());
    let report = runs.join("all-ones/report/report.json");
    let written = fs::metadata(&report).unwrap().modified().unwrap();

    let again = reproduce(&workshop, "glas", &[]);
    assert!(String::from_utf8_lossy(&again.stderr).contains("all-ones: finished before"));
    assert_eq!(fs::metadata(&report).unwrap().modified().unwrap(), written);
    assert_eq!(String::from_utf8_lossy(&again.stdout), tables);
}

#[test]
fn what_cannot_be_reproduced_is_told() {
    let workshop = Workshop::new();
    let message = failure(&reproduce(&workshop, "cub5", &[]));
    assert!(message.contains("has 2 classes and not 5"), "{message}");
    let message = failure(&reproduce(&workshop, "cub6", &[]));
    assert!(message.contains("cub6") && message.contains("oxford-flowers"), "{message}");
    let mut command = Command::cargo_bin("pinpoint").unwrap();
    command.current_dir(workshop.folder.path());
    command.args(["reproduce", "glas", "--data", "data", "--weights", "gone.pth"]).args(TRIVIAL);
    assert!(failure(&command.output().unwrap()).contains("gone.pth"));
}

/// As many images as CUB has, of one drawn picture, in its layout.
fn as_large_as_cub(root: &Path, picture: &Path, mask: &Path) {
    const CLASSES: usize = 200;
    const IMAGES: usize = 11_788;
    let lists = root.join("CUB_200_2011");
    let [mut images, mut labels, mut splits, mut classes] = [(); 4].map(|()| String::new());
    for class in 1..=CLASSES {
        classes.push_str(&format!("{class} {class:03}.Bird\n"));
        for folder in [lists.join("images"), root.join("segmentations")] {
            fs::create_dir_all(folder.join(format!("{class:03}.Bird"))).unwrap();
        }
    }
    for image in 1..=IMAGES {
        let class = image % CLASSES + 1;
        let name = format!("{class:03}.Bird/{image:05}");
        images.push_str(&format!("{image} {name}.png\n"));
        labels.push_str(&format!("{image} {class}\n"));
        splits.push_str(&format!("{image} {}\n", image / CLASSES % 2));
        fs::hard_link(picture, lists.join(format!("images/{name}.png"))).unwrap();
        fs::hard_link(mask, root.join(format!("segmentations/{name}.png"))).unwrap();
    }
    let files = [
        ("images.txt", images),
        ("image_class_labels.txt", labels),
        ("train_test_split.txt", splits),
        ("classes.txt", classes),
    ];
    for (name, text) in files {
        fs::write(lists.join(name), text).unwrap();
    }
}

#[test]
fn a_dataset_of_the_size_of_cub_is_listed_whole() {
    let folder = tempfile::tempdir().unwrap();
    let (picture, mask) = (folder.path().join("picture.png"), folder.path().join("mask.png"));
    image::RgbImage::new(500, 375).save(&picture).unwrap();
    image::GrayImage::new(500, 375).save(&mask).unwrap();
    let root = folder.path().join("data");
    as_large_as_cub(&root, &picture, &mask);
    let dataset = Dataset::open(&root, &OpenOptions::default()).unwrap();
    assert_eq!((dataset.classes.len(), dataset.problems.len()), (200, 0));
    assert_eq!(dataset.train.len() + dataset.test.len(), 11_788);
    assert!(dataset.test.iter().all(|sample| sample.truth.masks.len() == 1));
}
