//! Runs exported to ONNX say what the command says, by the runtime that others use.

use std::{
    env,
    fs::{self, File},
    path::{Path, PathBuf},
    process::Command,
};

use assert_cmd::cargo::CommandCargoExt as _;
use image::{Rgb, RgbImage};
use pinpoint::{
    config::{
        Alignment, Backbone, Cells, Config, Decision, Evidence, Normalization, Semantics,
        Statistics, Stem,
    },
    data::{
        npy,
        synthetic::{self, SyntheticSpec},
    },
    device, method,
    model::{Model, cam::CamNetwork, params, weights},
    run::{RunDir, WeightsNote},
};
use serde_json::Value;
use tempfile::TempDir;

/// What the outputs of both may differ by.
const CLOSE: f64 = 1e-4;

/// The Python that has onnxruntime; none where there is none, which must be allowed.
fn python() -> Option<String> {
    let python = env::var("PINPOINT_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let found = Command::new(&python).args(["-c", "import onnxruntime, numpy"]).output();
    if found.is_ok_and(|output| output.status.success()) {
        return Some(python);
    }
    assert!(
        env::var_os("PINPOINT_REQUIRE_ONNXRUNTIME").is_none(),
        "`{python}` cannot import onnxruntime and numpy"
    );
    eprintln!("skipped: `{python}` cannot import onnxruntime and numpy");
    None
}

fn succeeds(arguments: &[&str]) -> String {
    let output = Command::cargo_bin("pinpoint").unwrap().args(arguments).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// A folder with a run whose weights were drawn, statistics of batch norm included.
struct Drawn {
    folder: TempDir,
    config: Config,
}

impl Drawn {
    fn new(name: &str, classes: usize, change: impl FnOnce(&mut Config)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut config = method::published(name).unwrap();
        config.model.backbone = Backbone::Tiny;
        config.model.output_stride = 16;
        config.preprocess.upscale_short_side = 0;
        config.preprocess.eval_multiple = 8;
        config.preprocess.crop = 64;
        change(&mut config);
        config.check().unwrap();
        let run = RunDir::plan(&folder.path().join("run")).unwrap();
        run.begin(&config, None).unwrap();
        let mut arrays = match name {
            "minmax" => params::collect(&Model::new(&config, classes, &device::cpu())),
            _ => params::collect(&CamNetwork::new(&config, classes, &device::cpu())),
        };
        for (name, array) in &mut arrays {
            let variance = name.ends_with("_var");
            if variance || name.ends_with("_mean") {
                let seed = name.len() * if name.contains("foreground") { 3 } else { 1 };
                for (i, value) in array.values.iter_mut().enumerate() {
                    let drawn = ((i * 37 + seed * 11) % 101) as f32 / 101.0;
                    *value = if variance { 0.5 + drawn } else { drawn - 0.5 };
                }
            }
        }
        let names: Vec<String> = (0..classes).map(|class| format!("class {class}")).collect();
        let note = WeightsNote::new(&config, &names, 1);
        weights::write(&mut File::create(run.best()).unwrap(), &arrays, &note).unwrap();
        Self { folder, config }
    }

    fn agrees(&self, python: &str) {
        let run = self.folder.path().join("run");
        for (width, height) in [(96, 64), (72, 104)] {
            compare(python, &run, &picture(width, height));
        }
    }
}

/// A disc on a gradient.
fn picture(width: u32, height: u32) -> RgbImage {
    RgbImage::from_fn(width, height, |x, y| {
        let (dx, dy) = (f64::from(x) - 40.0, f64::from(y) - 30.0);
        let inside = (dx * dx + dy * dy).sqrt() < 20.0;
        let texture = ((x * 7 + y * 13) % 31) as u8;
        if inside { Rgb([200, 60 + texture, 40]) } else { Rgb([texture, x as u8, 2 * y as u8]) }
    })
}

/// Exports the run, and compares what both say about an image.
fn compare(python: &str, run: &Path, image: &RgbImage) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| -> PathBuf { folder.path().join(name) };
    let text = |name: &str| path(name).to_str().unwrap().to_owned();
    image.save(path("a.png")).unwrap();
    let run = run.to_str().unwrap();
    succeeds(&["export", run, "--onnx", &text("m.onnx")]);
    let line = succeeds(&["predict", run, &text("a.png"), "--npy", "--json", "--out", &text("o")]);
    let line: Value = serde_json::from_str(&line).unwrap();

    let (width, height) = (image.width() as usize, image.height() as usize);
    let plane =
        |channel: usize| image.pixels().map(move |pixel| f32::from(pixel.0[channel]) / 255.0);
    let planes: Vec<f32> = (0..3).flat_map(plane).collect();
    fs::write(path("in.npy"), npy::encode(width, &planes)).unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/fixtures/export/run_onnx.py");
    let output = Command::new(python).arg(script).args([text("m.onnx"), text("in.npy")]).output();
    let output = output.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();

    let expected = npy::read(&path("o/a.npy"), 1).unwrap();
    let mask = found["mask"].as_array().unwrap();
    assert_eq!(mask.len(), width * height);
    let far = mask
        .iter()
        .zip(&expected.values)
        .map(|(a, b)| (a.as_f64().unwrap() - f64::from(*b)).abs())
        .fold(0.0, f64::max);
    assert!(far < CLOSE, "masks differ by {far}");
    let (lowest, highest) = expected
        .values
        .iter()
        .fold((1.0_f32, 0.0_f32), |(low, high), &score| (low.min(score), high.max(score)));
    assert!(highest - lowest > 0.05, "a mask that says something: {lowest} to {highest}");
    let classes: Vec<String> =
        serde_json::from_str(found["metadata"]["classes"].as_str().unwrap()).unwrap();
    for (class, probability) in classes.iter().zip(found["probabilities"].as_array().unwrap()) {
        let expected = line["probabilities"][class].as_f64().unwrap();
        let far = (probability.as_f64().unwrap() - expected).abs();
        assert!(far < CLOSE, "{class}: {probability} and {expected}");
    }
    found
}

#[test]
fn minmax_says_the_same_in_onnxruntime() {
    let Some(python) = python() else { return };
    let plain = Drawn::new("minmax", 2, |_| {});
    let found = compare(&python, &plain.folder.path().join("run"), &picture(64, 64));
    let metadata = &found["metadata"];
    assert_eq!(metadata["normalization"], "half");
    assert_eq!((&metadata["threshold"], &metadata["method"]), (&"0.5".into(), &"minmax".into()));
    assert!(metadata["settings"].as_str().unwrap().contains("[model]"));
    assert_eq!(plain.config.preprocess.normalization, Normalization::Half);
    plain.agrees(&python);
    Drawn::new("minmax", 3, |config| {
        config.model.statistics = Statistics::Separate;
        config.model.stem = Stem::Classic;
        config.model.classifier_scale = 1.0;
        config.model.output_stride = 8;
        config.mask.alignment = Alignment::Centres;
        config.pool.maps_per_class = 1;
        config.pool.top = Cells::Fraction(0.2);
        config.pool.bottom = Cells::Count(3);
        config.pool.bottom_weight = 0.5;
    })
    .agrees(&python);
    Drawn::new("minmax", 4, |config| {
        config.semantics = Semantics::Reference;
        config.mask.low_percentile = 5.0;
        config.mask.high_percentile = 90.0;
        config.preprocess.normalization = Normalization::Imagenet;
    })
    .agrees(&python);
}

#[test]
fn class_maps_say_the_same_in_onnxruntime() {
    let Some(python) = python() else { return };
    for method in ["cam-avg", "cam-max", "cam-lse", "wildcat"] {
        Drawn::new(method, 3, |_| {}).agrees(&python);
    }
    Drawn::new("cam-avg", 3, |config| {
        config.mask.rule = Decision::MinMax;
        config.mask.evidence = Evidence::Centred;
        config.mask.alignment = Alignment::Centres;
    })
    .agrees(&python);
}

#[test]
fn a_trained_probe_says_the_same_in_onnxruntime() {
    let Some(python) = python() else { return };
    let folder = tempfile::tempdir().unwrap();
    let spec = SyntheticSpec { classes: 3, train: 18, valid: 6, test: 3, side: 64, seed: 1 };
    synthetic::write(&folder.path().join("data"), &spec, || {}).unwrap();
    let text = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    for (name, more) in [
        ("plain", &["--set", "probe.class_view=image"][..]),
        ("masked", &["--set", "probe.class_view=foreground"]),
        ("deep", &["--set", "model.stem=deep", "--set", "probe.smoothing=0"]),
        ("all", &["--set", "probe.mask_stages=['layer1','layer4']", "--set", "probe.own_image=1"]),
        ("unrefined", &["--set", "probe.refine=none"]),
    ] {
        let mut arguments =
            vec!["train", "--method", "probe", "--set", "model.backbone=tiny", "--set"];
        arguments.extend(["preprocess.upscale_short_side=0", "--set"]);
        let (data, run) = (text("data"), text(name));
        arguments.extend(["preprocess.shrink_short_side=0", "--data", &data, "--out", &run]);
        succeeds(&[&arguments, more].concat());
        for (width, height) in [(96, 64), (64, 128)] {
            compare(&python, Path::new(&run), &picture(width, height));
        }
    }
}

#[test]
fn what_cannot_be_exported_is_refused_with_what_can() {
    let drawn = Drawn::new("grad-cam", 2, |_| {});
    let run = drawn.folder.path().join("run");
    let refused = |expected: &str| {
        let model = drawn.folder.path().join("m.onnx");
        let mut command = Command::cargo_bin("pinpoint").unwrap();
        let output = command.arg("export").arg(&run).arg("--onnx").arg(&model).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(expected) && said.contains("hint:"), "{said}");
        assert!(!model.exists());
    };
    refused("gradient");
    let settings = fs::read_to_string(run.join("config.toml")).unwrap();
    let unet = settings.replace("method = \"grad-cam\"", "method = \"unet\"");
    fs::write(run.join("config.toml"), unet).unwrap();
    refused("no ONNX export of `unet`");
}

#[test]
fn the_same_run_gives_the_same_file() {
    let drawn = Drawn::new("minmax", 2, |_| {});
    let path = |name: &str| drawn.folder.path().join(name).to_str().unwrap().to_owned();
    for name in ["one", "two"] {
        succeeds(&["export", &path("run"), "--onnx", &path(name)]);
    }
    let one = fs::read(path("one")).unwrap();
    assert!(one == fs::read(path("two")).unwrap());
    // Weights are written once, though the network looks twice: floats, and little else.
    let weights = fs::metadata(path("run/weights/best.safetensors")).unwrap().len();
    assert!((one.len() as u64) < weights + (1 << 18), "{} for {weights}", one.len());
}
