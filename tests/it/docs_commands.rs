//! Every command of the pages is run as a reader would paste it, on small things of the same names.
#![cfg(unix)]

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use assert_cmd::cargo::cargo_bin;
use image::{DynamicImage, GrayImage, Luma};
use pinpoint::data::{
    image::read_rgb,
    synthetic::{self, SyntheticSpec},
};
use tempfile::TempDir;

use crate::masks::sorted;

/// How the commands begin that are not run, and why.
const NOT_RUN: &[(&str, &str)] = &[
    ("pinpoint weights get resnet18", "network; `weights.rs` has a downloader of its own"),
    ("mpirun -n 4 pinpoint train", "another build; `mpi.rs` runs it where there is one"),
    ("srun --mpi=pmix", "Slurm"),
    ("srun ray", "Slurm, and Ray"),
    ("more=", "a line of the job for Slurm"),
    ("[ -f \"$RUN/config.toml\" ]", "a line of the job for Slurm"),
    ("code=", "a line of the job for Slurm"),
    ("[ \"$code\" = 130 ]", "a line of the job for Slurm"),
    ("exit ", "a line of the job for Slurm"),
    ("head=$(scontrol", "a line of the job for Slurm"),
    ("pip install", "network"),
    ("apt-get install", "network"),
    ("python bench/", "PyTorch"),
    ("PYTHONPATH=peer python bench/", "a package from the network"),
    ("python/build-wheel", "maturin, and minutes of compiling"),
    ("cargo ", "minutes of compiling"),
    ("RUSTC_BOOTSTRAP=1 RUSTFLAGS=-Zsanitizer=address cargo test", "minutes of compiling"),
    (".ci/run", "runs this test"),
];

/// What stands in for the command: itself, with a small network, few and small images, one epoch
/// and few rows.
const STAND_IN: &str = r#"#!/bin/sh
verb=$1
shift
left=$#
while [ "$left" -gt 0 ]; do
    case $1 in
    --weights) set -- "$@" --weights "WEIGHTS" && shift 2 && left=$((left - 2)) ;;
    --train) set -- "$@" --train 8 && shift 2 && left=$((left - 2)) ;;
    --size) set -- "$@" --size 48 && shift 2 && left=$((left - 2)) ;;
    *) set -- "$@" "$1" && shift && left=$((left - 1)) ;;
    esac
done
small="--epochs 1 --set model.backbone=tiny --set model.stem=classic --set model.output_stride=8
    --set model.classifier_scale=1.0 --set unet.width=4 --set unet.depth=3
    --set preprocess.crop=32 --set preprocess.upscale_short_side=0
    --set preprocess.shrink_short_side=0 --set preprocess.eval_multiple=8 --set train.batch_size=4"
case $verb in
demo) exec "PINPOINT" demo "$@" --epochs 1 ;;
train) exec "PINPOINT" train "$@" $small ;;
sweep)
    case " $* " in *" --seeds "*) ;; *) small="--seeds 0 $small" ;; esac
    exec "PINPOINT" sweep "$@" $small
    ;;
reproduce) exec "PINPOINT" reproduce "$@" --methods all-ones,centre-gaussian ;;
view)
    # Without end, so that it is ended once it serves.
    "PINPOINT" view "$@" --no-open >served &
    until grep -q http:// served; do
        kill -0 $! || exit 1
        sleep 0.1
    done
    kill $!
    ;;
*) exec "PINPOINT" "$verb" "$@" ;;
esac
"#;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The pages with commands, by their path in the repository.
fn pages() -> Vec<(String, String)> {
    let mut paths: Vec<PathBuf> =
        ["README.md", "CONTRIBUTING.md", "configs/README.md", "python/README.md"]
            .iter()
            .map(|page| root().join(page))
            .collect();
    paths.extend(sorted(&root().join("docs")));
    paths.extend(sorted(&root().join("crates")).iter().map(|folder| folder.join("README.md")));
    paths.retain(|path| path.extension().is_some_and(|end| end == "md"));
    let name = |path: &Path| path.strip_prefix(root()).unwrap().display().to_string();
    paths.iter().map(|path| (name(path), fs::read_to_string(path).unwrap())).collect()
}

/// The lines of a page's shell blocks, with lines that go on put together and comments left out.
fn shell_lines(page: &str) -> Vec<String> {
    let blocks = page.split("```").skip(1).step_by(2);
    let blocks = blocks.filter_map(|block| block.strip_prefix("sh\n"));
    let text: String = blocks.map(|block| block.replace("\\\n", " ")).collect();
    let command = |line: &str| {
        let line = line.split(" #").next().unwrap_or_default().trim();
        (!line.is_empty() && !line.starts_with('#')).then(|| line.to_owned())
    };
    text.lines().filter_map(command).collect()
}

fn reason_not_to_run(line: &str) -> Option<usize> {
    NOT_RUN.iter().position(|(start, _)| line.starts_with(start))
}

/// A folder with everything that the pages name, and a `pinpoint` on the path.
struct Sandbox {
    folder: TempDir,
}

impl Sandbox {
    fn new() -> Self {
        let sandbox = Self { folder: tempfile::tempdir().unwrap() };
        let path = |name: &str| sandbox.folder.path().join(name);
        let spec = SyntheticSpec { classes: 2, train: 6, valid: 4, test: 4, side: 40, seed: 1 };
        synthetic::write(&path("data"), &spec, || {}).unwrap();
        fs::create_dir_all(path("bin")).unwrap();
        let start = path("start/weights/best.safetensors");
        let stand_in = STAND_IN
            .replace("PINPOINT", cargo_bin("pinpoint").to_str().unwrap())
            .replace("WEIGHTS", start.to_str().unwrap());
        fs::write(path("bin/pinpoint"), stand_in).unwrap();
        fs::set_permissions(path("bin/pinpoint"), fs::Permissions::from_mode(0o755)).unwrap();
        sandbox.must(".", "pinpoint train --method cam-avg --data data --out start");
        for (run, more) in [
            ("birds", "--weights start"),
            ("mine", "--method cam-avg"),
            ("others", "--method cam-avg --seed 1"),
        ] {
            sandbox.must(".", &format!("pinpoint train --data data --out runs/{run} {more}"));
            sandbox.must(".", &format!("pinpoint evaluate runs/{run}"));
        }
        sandbox
    }

    /// A reader's folder for one page, with the runs that it takes for granted.
    fn folder_for(&self, page: &str, lines: &[String]) -> String {
        let name = page.replace('/', "-");
        let at = self.folder.path().join(&name);
        for folder in ["folds", "photos", "holiday", "slides", "runs"] {
            fs::create_dir_all(at.join(folder)).unwrap();
        }
        let data = self.folder.path().join("data");
        for link in ["birds", "GLAS", "IMAGES", "folds/glas", "folds/cub5"] {
            symlink(&data, at.join(link)).unwrap();
        }
        symlink(root().join("configs"), at.join("configs")).unwrap();
        let class = sorted(&data.join("test")).remove(0);
        let photo = DynamicImage::from(read_rgb(&sorted(&class)[0], 1).unwrap());
        for file in ["photo.jpg", "photos/a.png", "photos/b.jpg", "holiday/c.png", "slides/d.tif"] {
            photo.save(at.join(file)).unwrap();
        }
        let left = |x, _| Luma([if x < photo.width() / 2 { 255 } else { 0 }]);
        let mask = GrayImage::from_fn(photo.width(), photo.height(), left);
        mask.save(at.join("mask.png")).unwrap();
        for run in ["birds", "mine", "others"] {
            let target = format!("runs/{run}");
            if !lines.iter().any(|line| line.contains(&format!("--out {target}"))) {
                let copied =
                    format!("cp -r {} {target}", self.folder.path().join(&target).display());
                self.must(&name, &copied);
            }
        }
        name
    }

    fn sh(&self, folder: &str, script: &str) -> Output {
        let bin = self.folder.path().join("bin");
        let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
        let mut shell = Command::new("sh");
        shell.current_dir(self.folder.path().join(folder)).env("PATH", path);
        shell.stdin(Stdio::null()).args(["-e", "-c", script]).output().unwrap()
    }

    fn must(&self, folder: &str, script: &str) {
        let output = self.sh(folder, script);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{folder}: {script}\n{}\n{said}", output.status);
    }
}

#[test]
fn every_command_in_the_pages_runs_or_is_listed_with_the_reason() {
    let sandbox = Sandbox::new();
    let (mut run, mut listed) = (BTreeSet::new(), vec![0; NOT_RUN.len()]);
    for (page, text) in pages() {
        let lines: Vec<String> = shell_lines(&text)
            .iter()
            .map(|line| line.replace("cargo run --release -- ", "pinpoint "))
            .collect();
        let (skipped, lines): (Vec<_>, Vec<_>) =
            lines.into_iter().partition(|line| reason_not_to_run(line).is_some());
        for line in &skipped {
            listed[reason_not_to_run(line).unwrap()] += 1;
            exists(&page, line);
        }
        // What another page has said already is not run again.
        let lines: Vec<String> =
            lines.into_iter().filter(|line| run.insert(line.clone())).collect();
        if lines.is_empty() {
            continue;
        }
        let folder = sandbox.folder_for(&page, &lines);
        let mut variables = String::new();
        for line in lines {
            if line.split_once('=').is_some_and(|(name, _)| name.chars().all(char::is_uppercase)) {
                variables.push_str(&format!("{line}\n"));
                continue;
            }
            sandbox.must(&folder, &format!("{variables}{line}"));
        }
    }
    assert!(run.len() > 15, "{run:#?}");
    let unused: Vec<_> = NOT_RUN.iter().zip(&listed).filter(|(_, count)| **count == 0).collect();
    assert!(unused.is_empty(), "no page has a command like these: {unused:?}");
}

/// What a command that is not run can be checked for: its scripts and examples are there.
fn exists(page: &str, line: &str) {
    let words: Vec<&str> = line.split_whitespace().collect();
    let ours =
        |word: &&&str| ["bench/", ".ci/", "python/"].iter().any(|start| word.starts_with(start));
    for word in words.iter().filter(ours) {
        assert!(root().join(word).exists(), "{page}: {line}: no `{word}`");
    }
    let after = |flag: &str| words.iter().position(|word| *word == flag).map(|at| words[at + 1]);
    if let (Some(package), Some(example)) = (after("-p"), after("--example")) {
        let examples = root().join("crates").join(package).join("examples");
        assert!(examples.join(example).with_extension("rs").exists(), "{page}: {line}");
    }
}

/// The words of commands within sentences, and those of blocks that are not run.
fn mentioned(page: &str) -> Vec<Vec<String>> {
    let outside: String = page.split("```").step_by(2).collect();
    let spans = outside.split('`').skip(1).step_by(2).map(str::to_owned);
    let skipped = shell_lines(page).into_iter().filter(|line| reason_not_to_run(line).is_some());
    let commands = spans.chain(skipped);
    let words = |text: String| -> Option<Vec<String>> {
        let mut words = text.split_whitespace().skip_while(|word| *word != "pinpoint").skip(1);
        let verb = words.next()?.to_owned();
        Some([verb].into_iter().chain(words.map(str::to_owned)).collect())
    };
    commands.filter_map(words).collect()
}

#[test]
fn every_verb_and_flag_that_the_pages_mention_exists() {
    let mut helps: BTreeMap<Vec<String>, String> = BTreeMap::new();
    let mut seen = 0;
    for (page, text) in pages() {
        for words in mentioned(&text) {
            let depth = if ["data", "bench", "weights"].contains(&&*words[0]) { 2 } else { 1 };
            let name = |word: &&String| word.chars().all(|c| c.is_lowercase() || c == '|');
            let verb: Vec<String> = words
                .iter()
                .take(depth)
                .take_while(name)
                .map(|word| word.split('|').next().unwrap().to_owned())
                .collect();
            let help = helps.entry(verb.clone()).or_insert_with(|| {
                let mut command = Command::new(cargo_bin("pinpoint"));
                let output = command.args(&verb).arg("--help").output().unwrap();
                assert!(output.status.success(), "{page}: {words:?}: {output:?}");
                String::from_utf8(output.stdout).unwrap()
            });
            for flag in words.iter().filter(|word| word.starts_with("--")) {
                seen += 1;
                let known = help.split([' ', ',', '\n']).any(|word| word == flag);
                assert!(known, "{page}: {words:?}: no `{flag}`");
            }
        }
    }
    assert!(seen > 20, "{seen} flags were found");
}
