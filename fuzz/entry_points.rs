//! Everything that reads a file of somebody else's, by the name of its fuzz target.
//!
//! `fuzz_targets/` gives these to libFuzzer, and `tests/it/fuzz_corpus.rs` runs them over the
//! corpus and its mutations with the stable compiler. Whatever the bytes, reading ends in a
//! value or in an error: a panic is a finding.
#![allow(dead_code, reason = "a fuzz target knows its name, and the test its folder")]

use std::{
    fs,
    path::{Path, PathBuf},
    sync::LazyLock,
};

use pinpoint::{
    config::{Config, Experiment},
    data::{
        Dataset, Layout, MaskRule, OpenOptions, Truth,
        image::{read_rgb, read_size},
        mask, npy,
    },
    model::weights,
    run::{Position, RunDir},
};

/// The targets, as they are called in `fuzz_targets/` and `corpus/`.
pub(crate) const TARGETS: [&str; 10] =
    ["image", "mask", "mat", "npy", "list", "folds", "settings", "safetensors", "pth", "run_state"];

/// Images above this are refused, which keeps a trial short.
const MEGAPIXELS: u32 = 1;

/// A folder of this process's own.
static FOLDER: LazyLock<tempfile::TempDir> =
    LazyLock::new(|| tempfile::tempdir().expect("a temporary folder"));

/// Reads bytes as the target does.
pub(crate) fn run(target: &str, bytes: &[u8]) {
    run_in(FOLDER.path(), target, bytes);
}

/// The same, in a folder that nobody else uses meanwhile.
pub(crate) fn run_in(folder: &Path, target: &str, bytes: &[u8]) {
    match target {
        "image" => {
            let path = written(folder, "image", bytes);
            let size = read_size(&path, MEGAPIXELS);
            if let Ok(image) = read_rgb(&path, MEGAPIXELS) {
                assert_eq!(Some(image.dimensions()), size.ok(), "the header tells the size");
            }
        }
        "mask" => {
            let truth = Truth { masks: vec![written(folder, "mask", bytes)], ..Truth::default() };
            for rule in [MaskRule::NonZero, MaskRule::Votes, MaskRule::NotBlue, MaskRule::Trimap] {
                let _ = mask::read(&truth, rule, (16, 16), MEGAPIXELS);
            }
        }
        "mat" => {
            let root = folder.join("flowers");
            fs::create_dir_all(root.join("jpg")).expect("a temporary folder");
            for name in ["imagelabels.mat", "setid.mat"] {
                written(&root, name, bytes);
            }
            open(&root, Some(Layout::OxfordFlowers));
        }
        "npy" => {
            let _ = npy::read(&written(folder, "map.npy", bytes), MEGAPIXELS);
        }
        "list" => open(&written(folder, "list.csv", bytes), None),
        "folds" => {
            let root = folder.join("split_0/fold_0");
            fs::create_dir_all(&root).expect("a temporary folder");
            for name in
                ["train_s_0_f_0.csv", "valid_s_0_f_0.csv", "test_s_0_f_0.csv", "encoding.yaml"]
            {
                written(&root, name, bytes);
            }
            open(&root, Some(Layout::Folds));
        }
        "settings" => {
            let path = written(folder, "settings.toml", bytes);
            if let Ok(config) = Config::load(&path) {
                let _ = config.check();
            }
            if let Ok(experiment) = Experiment::load(&path) {
                let _ = experiment.settings("minmax", &Config::default());
            }
        }
        "safetensors" | "pth" => {
            let _ = weights::read(&written(folder, &format!("weights.{target}"), bytes));
        }
        "run_state" => {
            let root = folder.join("run");
            for folder in ["state", "weights"] {
                fs::create_dir_all(root.join(folder)).expect("a temporary folder");
            }
            let config = toml_of_small_run();
            fs::write(root.join("config.toml"), config).expect("a temporary file");
            let files = ["state/checkpoint.safetensors", "inputs.json", "metrics.jsonl"];
            files.iter().for_each(|file| drop(written(&root, file, bytes)));
            let run = RunDir::started(&root).expect("there are settings");
            if let Ok(Some(checkpoint)) = run.restore() {
                let _ = checkpoint.position.check(3, 7);
            }
            let _ = weights::read_note::<Position>(&root.join(files[0]));
            let _ = (run.inputs(), run.records());
        }
        _ => panic!("there is no target `{target}`"),
    }
}

fn open(path: &Path, layout: Option<Layout>) {
    let options = OpenOptions { layout, ..OpenOptions::default() };
    if let Ok(dataset) = Dataset::open(path, &options) {
        let _ = dataset.require_usable();
    }
}

fn toml_of_small_run() -> &'static str {
    "[model]\nbackbone = 'tiny'\n"
}

fn written(folder: &Path, name: &str, bytes: &[u8]) -> PathBuf {
    let path = folder.join(name);
    fs::write(&path, bytes).expect("a temporary file");
    path
}
