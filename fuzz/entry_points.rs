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
        Dataset, Layout, MaskRule, OpenOptions, Sample, Truth, check,
        image::{read_rgb, read_size},
        mask, npy,
    },
    model::weights,
    report::compare::{self, Comparison, Format},
    run::{Position, RunDir},
};

/// The targets, as they are called in `fuzz_targets/` and `corpus/`.
pub(crate) const TARGETS: [&str; 17] = [
    "image",
    "mask",
    "npy",
    "settings",
    "safetensors",
    "pth",
    "run_state",
    "report",
    "list",
    "folds",
    "wsol",
    "glas",
    "cub",
    "mat",
    "pets",
    "voc",
    "coco",
];

/// A dataset of a few pictures whose lists are the bytes of a trial.
struct Listed {
    /// How it is read, if that is not to be found out.
    layout: Option<Layout>,
    /// What is opened, below the dataset's folder.
    opened: &'static str,
    lists: &'static [&'static str],
    pictures: &'static [&'static str],
}

/// Stands between the lists of a trial; where there are too few, the last one is all others.
const NEXT_LIST: &[u8] = b"\n\x0c\n";

/// What all pictures of datasets are: 3 × 2 pixels with the numbers of a palette.
const PICTURE: &[u8] = include_bytes!("corpus/image/palette-2bit.png");

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
        "npy" => {
            let _ = npy::read(&written(folder, "map.npy", bytes), MEGAPIXELS);
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
        "report" => {
            let root = folder.join("report");
            fs::create_dir_all(&root).expect("a temporary folder");
            written(&root, "report.json", bytes);
            if let Ok(comparison) = compare::open(&root).and_then(Comparison::of) {
                for form in [Format::Markdown, Format::Csv, Format::Latex, Format::Html] {
                    let _ = comparison.render(form);
                }
            }
        }
        _ => match listed(target) {
            Some(listed) => {
                listed.inspect(&folder.join(target), bytes);
            }
            None => panic!("there is no target `{target}`"),
        },
    }
}

/// How many images and masks the lists of a trial lead to; none if it is not about lists.
pub(crate) fn images_and_masks(folder: &Path, target: &str, bytes: &[u8]) -> Option<[usize; 2]> {
    Some(listed(target)?.inspect(&folder.join(target), bytes))
}

/// The dataset of a target, if it has one.
fn listed(target: &str) -> Option<Listed> {
    let (layout, opened, lists, pictures): (_, _, &[_], &[_]) = match target {
        "list" => (None, "list.csv", &["list.csv"], &["a.png", "b.png", "a_mask.png"]),
        "folds" => (
            Some(Layout::Folds),
            "split_0/fold_0",
            &[
                "split_0/fold_0/train_s_0_f_0.csv",
                "split_0/fold_0/valid_s_0_f_0.csv",
                "split_0/fold_0/test_s_0_f_0.csv",
                "split_0/fold_0/encoding.yaml",
            ],
            &["split_0/fold_0/a.png", "split_0/fold_0/a_mask.png"],
        ),
        "wsol" => (
            Some(Layout::Wsol),
            "",
            &[
                "train/image_ids.txt",
                "train/class_labels.txt",
                "test/image_ids.txt",
                "test/class_labels.txt",
                "test/localization.txt",
            ],
            &["a.png", "b.png", "mask.png", "ignore.png"],
        ),
        "glas" => (
            Some(Layout::Glas),
            "",
            &["Grade.csv"],
            &["train_1.png", "train_1_anno.png", "testA_1.png"],
        ),
        "cub" => (
            Some(Layout::Cub),
            "",
            &[
                "images.txt",
                "image_class_labels.txt",
                "train_test_split.txt",
                "classes.txt",
                "bounding_boxes.txt",
            ],
            &["images/1.A/a.png", "images/2.B/b.png", "segmentations/1.A/a.png"],
        ),
        "mat" => (
            Some(Layout::OxfordFlowers),
            "",
            &["imagelabels.mat", "setid.mat"],
            &["jpg/image_00001.jpg", "jpg/image_00002.jpg", "segmim/segmim_00001.jpg"],
        ),
        "pets" => (
            Some(Layout::OxfordPets),
            "",
            &["annotations/trainval.txt", "annotations/test.txt"],
            &["images/A_cat_1.jpg", "images/dog_2.jpg", "annotations/trimaps/dog_2.png"],
        ),
        "voc" => (
            Some(Layout::Voc),
            "",
            &[
                "ImageSets/Main/cat_train.txt",
                "ImageSets/Main/dog_train.txt",
                "ImageSets/Main/cat_val.txt",
            ],
            &["JPEGImages/1.jpg", "JPEGImages/2.jpg", "SegmentationClass/2.png"],
        ),
        "coco" => (
            Some(Layout::Coco),
            "",
            &["annotations/instances_train.json", "annotations/instances_val.json"],
            &["train/a.png", "train/b.png", "val/a.png"],
        ),
        _ => return None,
    };
    Some(Listed { layout, opened, lists, pictures })
}

impl Listed {
    /// Opens the dataset in a folder, and reads every image and mask that the lists lead to;
    /// gives how many of both could be read.
    fn inspect(&self, root: &Path, bytes: &[u8]) -> [usize; 2] {
        let place = |name: &str, content: &[u8]| {
            let path = root.join(name);
            fs::create_dir_all(path.parent().expect("below the root")).expect("a temporary folder");
            fs::write(path, content).expect("a temporary file");
        };
        self.pictures.iter().for_each(|picture| place(picture, PICTURE));
        let mut rest = Some(bytes);
        let mut part = bytes;
        for list in self.lists {
            if let Some(bytes) = rest {
                let end = bytes.windows(NEXT_LIST.len()).position(|window| window == NEXT_LIST);
                part = &bytes[..end.unwrap_or(bytes.len())];
                rest = end.map(|end| &bytes[end + NEXT_LIST.len()..]);
            }
            place(list, part);
        }
        let options = OpenOptions { layout: self.layout, ..OpenOptions::default() };
        if let Ok(dataset) = Dataset::open(&root.join(self.opened), &options) {
            let _ = dataset.require_usable();
            for (_, Sample { image, truth, .. }) in dataset.samples() {
                let mut files = truth.masks.iter().chain(&truth.ignore).chain([image]);
                assert!(
                    files.all(|file| file.starts_with(&dataset.root)),
                    "lists lead nowhere else"
                );
            }
            let read = check::inspect(&dataset, MEGAPIXELS, || {});
            return [read.sizes.len(), read.foreground.len()];
        }
        [0, 0]
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
