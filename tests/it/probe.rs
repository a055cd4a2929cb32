//! The probe from outside: trained, stopped, resumed, evaluated, predicted, and given nonsense.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use assert_cmd::cargo::CommandCargoExt as _;
use image::{GrayImage, Luma, Rgb, RgbImage};
use pinpoint::data::synthetic::{self, SyntheticSpec};
use serde_json::Value;
use tempfile::TempDir;

use crate::train::{failure, kill_until_done, weights};

struct Workshop {
    folder: TempDir,
}

impl Workshop {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let spec = SyntheticSpec { classes: 3, train: 18, valid: 6, test: 6, side: 64, seed: 1 };
        synthetic::write(&folder.path().join("data"), &spec, || {}).unwrap();
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn command(&self, run: &str, more: &[&str]) -> Command {
        self.command_on("data", run, more)
    }

    fn command_on(&self, data: &str, run: &str, more: &[&str]) -> Command {
        let mut command = Command::cargo_bin("pinpoint").unwrap();
        command.args(["train", "--method", "probe", "--data"]).arg(self.path(data));
        command.arg("--out").arg(self.path(run)).args(["--set", "model.backbone=tiny"]);
        // Larger than the images are: a grid of 12 × 12 cells.
        command.args(["--set", "preprocess.upscale_short_side=96"]).args(more);
        command
    }

    fn train(&self, run: &str, more: &[&str]) -> Output {
        self.command(run, more).output().unwrap()
    }

    fn trained(&self, run: &str, more: &[&str]) -> String {
        let output = self.train(run, more);
        assert!(output.status.success(), "{output:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    }

    fn json(&self, verb: &str, more: &[&str]) -> Value {
        let mut command = Command::cargo_bin("pinpoint").unwrap();
        let output = command.arg(verb).args(more).arg("--json").output().unwrap();
        assert!(output.status.success(), "{output:?}");
        serde_json::from_slice(&output.stdout).unwrap()
    }
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn the_same_seed_gives_the_same_bytes_on_any_number_of_threads() {
    let workshop = Workshop::new();
    for threads in ["1", "2", "5"] {
        workshop.trained(threads, &["--threads", threads]);
    }
    let one = weights(&workshop.path("1"));
    assert!(one == weights(&workshop.path("2")), "2 threads differ from 1");
    assert!(one == weights(&workshop.path("5")), "5 threads differ from 1");
    workshop.trained("other", &["--seed", "1"]);
    assert!(one != weights(&workshop.path("other")), "another seed must give other weights");
}

#[test]
fn a_run_killed_at_any_moment_resumes_to_the_same_bytes() {
    let workshop = Workshop::new();
    workshop.trained("whole", &[]);
    let command = || {
        let resumed = workshop.path("killed/config.toml").exists();
        workshop.command("killed", if resumed { &["--resume"] } else { &[] })
    };
    kill_until_done(command, |attempt| 50 + 150 * attempt);
    assert!(weights(&workshop.path("whole")) == weights(&workshop.path("killed")));
    // One that is finished is left alone.
    workshop.trained("killed", &["--resume"]);
    assert!(weights(&workshop.path("whole")) == weights(&workshop.path("killed")));
}

#[test]
fn a_trained_probe_is_evaluated_and_predicts() {
    let workshop = Workshop::new();
    let said = workshop.trained("run", &[]);
    assert!(said.contains("drawn at random") && said.contains("pinpoint weights"), "{said}");
    assert!(said.contains("held-out training images"), "{said}");

    let (run, data) = (workshop.path("run"), workshop.path("data"));
    let scores = workshop.json("evaluate", &[text(&run), "--data", text(&data)]);
    assert_eq!(scores["method"], "probe");
    for key in ["classification_error", "f1_foreground", "f1_background"] {
        let score = scores[key].as_f64().unwrap();
        assert!((0.0..=100.0).contains(&score), "{key}: {score}");
    }

    let (image, out) = (workshop.path("flat.png"), workshop.path("out"));
    RgbImage::from_pixel(70, 50, Rgb([90, 120, 60])).save(&image).unwrap();
    let found = workshop.json("predict", &[text(&run), text(&image), "--out", text(&out)]);
    assert!(found["probability"].as_f64().unwrap() > 0.0, "{found}");
    let mask = image::open(found["mask"].as_str().unwrap()).unwrap();
    assert_eq!((mask.width(), mask.height()), (70, 50));
}

#[test]
fn tiles_give_the_answer_of_the_whole_image() {
    let workshop = Workshop::new();
    let image = workshop.path("large.png");
    let wave = |x: u32, y: u32, step: f64| (f64::from(x) * step + f64::from(y) * 0.05).sin();
    let colour = |x, y| [0.02, 0.05, 0.11].map(|step| (128.0 + 100.0 * wave(x, y, step)) as u8);
    RgbImage::from_fn(700, 300, |x, y| Rgb(colour(x, y))).save(&image).unwrap();
    for view in ["image", "foreground"] {
        workshop.trained(view, &["--set", &format!("probe.class_view={view}")]);
        let run = workshop.path(view);
        let mask = |name: &str, more: &[&str]| -> (GrayImage, f64) {
            let out = workshop.path(&format!("{view}-{name}"));
            let arguments = [&[text(&run), text(&image), "--out", text(&out)], more].concat();
            let found = workshop.json("predict", &arguments);
            let mask = image::open(found["mask"].as_str().unwrap()).unwrap().to_luma8();
            (mask, found["probability"].as_f64().unwrap())
        };
        let (whole, probability) = mask("whole", &[]);
        let (tiled, tiled_probability) = mask("tiled", &["--tile", "512"]);
        let different = whole.pixels().zip(tiled.pixels()).filter(|(a, b)| a != b).count();
        // Rounding may move a pixel that lies on the cut.
        assert!(different < 700 * 300 / 500, "{different} pixels differ");
        assert!(
            (probability - tiled_probability).abs() < 1e-3,
            "{probability} {tiled_probability}"
        );
        assert!(whole.pixels().any(|&pixel| pixel == Luma([255])));
    }
}

#[test]
fn maps_that_find_no_room_in_the_memory_are_computed_again_and_change_nothing() {
    let workshop = Workshop::new();
    let spec = SyntheticSpec { classes: 2, train: 60, valid: 1, test: 1, side: 64, seed: 1 };
    synthetic::write(&workshop.path("many"), &spec, || {}).unwrap();
    // A third of 16 MiB holds the vectors of all images, and the maps of half of them.
    let tensors = |memory: &str| {
        let size = ["--set", "preprocess.upscale_short_side=512", "--set", "probe.cells=64"];
        let view = ["--set", "probe.class_view=foreground", "--set", memory];
        let output = workshop.command_on("many", memory, &[&size[..], &view].concat()).output();
        let output = output.unwrap();
        assert!(output.status.success(), "{output:?}");
        let [best, _] = weights(&workshop.path(memory));
        // The header has the settings, which differ.
        let header = u64::from_le_bytes(best[..8].try_into().unwrap()) as usize;
        best[8 + header..].to_vec()
    };
    assert!(tensors("probe.memory_mib=1024") == tensors("probe.memory_mib=16"));
}

#[test]
fn views_and_parts_are_settings() {
    let workshop = Workshop::new();
    let plain = {
        workshop.trained("plain", &[]);
        weights(&workshop.path("plain"))
    };
    for setting in [
        "probe.views=turned",
        "probe.teachers=held-out",
        "probe.sharpening=0",
        "probe.generations=1",
        "probe.mask_stages=[\"layer3\"]",
        // More than there are channels: as many as there are axes.
        "probe.dimensions=500",
    ] {
        let run = setting.replace(['.', '=', '"', '[', ']'], "-");
        workshop.trained(&run, &["--set", setting]);
        assert!(weights(&workshop.path(&run)) != plain, "{setting} changes nothing");
        let found = workshop.json(
            "evaluate",
            &[text(&workshop.path(&run)), "--data", text(&workshop.path("data"))],
        );
        assert!(found["f1_foreground"].as_f64().is_some(), "{setting}");
    }
}

#[test]
fn masks_are_snapped_to_edges_unless_told_otherwise() {
    let workshop = Workshop::new();
    workshop.trained("edges", &[]);
    workshop.trained("none", &["--set", "probe.refine=none"]);
    let score = |run: &str| {
        let (run, data) = (workshop.path(run), workshop.path("data"));
        let found = workshop.json("evaluate", &[text(&run), "--data", text(&data)]);
        found["f1_foreground"].as_f64().unwrap()
    };
    assert_ne!(score("edges").to_bits(), score("none").to_bits());
}

#[test]
fn what_no_head_could_learn_from_is_refused_with_a_remedy_and_leaves_nothing() {
    let workshop = Workshop::new();
    let train = workshop.path("data/train");
    let mut classes: Vec<PathBuf> =
        fs::read_dir(&train).unwrap().map(|entry| entry.unwrap().path()).collect();
    classes.sort();
    // One image is left of each class but the first.
    for class in &classes[1..] {
        for file in fs::read_dir(class).unwrap().skip(1) {
            fs::remove_file(file.unwrap().path()).unwrap();
        }
    }
    let message = failure(&workshop.train("few", &[]));
    assert!(message.contains("two training images") && message.contains("hint"), "{message}");
    assert!(!workshop.path("few").exists(), "a failed start leaves nothing behind");

    let message = failure(&workshop.train("none", &["--set", "probe.mask_stages=[]"]));
    assert!(message.contains("`probe.mask_stages`"), "{message}");
}

#[test]
fn edited_settings_of_a_trained_probe_are_refused() {
    let workshop = Workshop::new();
    workshop.trained("run", &[]);
    let config = workshop.path("run/config.toml");
    let whole = fs::read_to_string(&config).unwrap();
    assert!(whole.contains("own_image = 0.7"), "{whole}");
    fs::write(&config, whole.replace("own_image = 0.7", "own_image = 0.1")).unwrap();
    let mut command = Command::cargo_bin("pinpoint").unwrap();
    let (run, data) = (workshop.path("run"), workshop.path("data"));
    let message =
        failure(&command.args(["evaluate", text(&run), "--data", text(&data)]).output().unwrap());
    assert!(message.contains("own_image"), "{message}");
}

#[test]
fn images_of_any_size_are_learned_from_and_images_that_are_all_alike_are_not() {
    let workshop = Workshop::new();
    let draw = |data: &str, picture: &dyn Fn(u32, u32, u32) -> RgbImage| {
        for (index, class) in ["a", "b"].iter().cycle().take(8).enumerate() {
            let folder = workshop.path(&format!("{data}/train/{class}"));
            fs::create_dir_all(&folder).unwrap();
            let index = index as u32;
            let (width, height) = (40 + 37 * index, 150 - 13 * index);
            picture(index, width, height).save(folder.join(format!("{index}.png"))).unwrap();
        }
    };
    let train =
        |data: &str| workshop.command_on(data, &format!("{data}-run"), &[]).output().unwrap();
    draw("mixed", &|index, width, height| {
        RgbImage::from_fn(width, height, |x, y| Rgb([(x * (index + 1)) as u8, y as u8, 40]))
    });
    let output = train("mixed");
    assert!(output.status.success(), "{output:?}");
    draw("flat", &|_, width, height| RgbImage::from_pixel(width, height, Rgb([9, 9, 9])));
    let output = train("flat");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    // Borders are padded, so that even flat images may give features that vary a little.
    assert!(output.status.success() || said.contains("look the same everywhere"), "{said}");
    assert!(!said.contains("panicked"), "{said}");
}
