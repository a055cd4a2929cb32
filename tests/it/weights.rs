//! Weight files: every format reads the same, and none can do harm.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use assert_cmd::cargo::CommandCargoExt as _;
use pinpoint::{
    data::synthetic::{self, SyntheticSpec},
    model::weights::read,
};
use proptest::prelude::*;
use tempfile::TempDir;

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/fixtures/weights").join(name)
}

const READABLE: [&str; 6] = [
    "zip.pth",
    "legacy.pth",
    "nested.pth",
    "f32.safetensors",
    "f16.safetensors",
    "bf16.safetensors",
];

#[test]
fn every_format_gives_the_same_tensors_and_leaves_counters_out() {
    for name in READABLE {
        let arrays = read(&fixture(name)).unwrap();
        assert_eq!(arrays.keys().collect::<Vec<_>>(), ["bn1.bias", "conv1.weight"], "{name}");
        let weight = &arrays["conv1.weight"];
        assert_eq!(weight.shape, [2, 3, 2, 2], "{name}");
        let expected: Vec<f32> = (0..24).map(|i| i as f32 / 8.0 - 1.0).collect();
        assert_eq!(weight.values, expected, "{name}");
        assert_eq!(arrays["bn1.bias"].values, [0.5, -0.25], "{name}");
    }
}

#[test]
fn a_pickle_that_would_run_a_command_is_read_but_never_run() {
    let _ = read(&fixture("hostile.pth"));
    assert!(!Path::new("pinpoint-was-here").exists());
}

#[test]
fn what_is_no_weight_file_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    for (name, content) in [("empty.pth", &b""[..]), ("text.safetensors", b"hello, weights")] {
        let path = folder.path().join(name);
        fs::write(&path, content).unwrap();
        let message = read(&path).unwrap_err().to_string();
        assert!(message.contains(name) && message.contains("hint:"), "{message}");
    }
}

#[test]
fn a_safetensors_file_must_be_as_long_as_its_header_says() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("other.safetensors");
    let whole = fs::read(fixture("f32.safetensors")).unwrap();
    let cut = whole[..whole.len() - 1].to_vec();
    let longer = [&whole[..], &[0]].concat();
    let endless = [&u64::MAX.to_le_bytes(), &whole[8..]].concat();
    for bytes in [cut, longer, endless] {
        fs::write(&path, bytes).unwrap();
        let message = read(&path).unwrap_err().to_string();
        assert!(message.contains("other.safetensors") && message.contains("hint:"), "{message}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn damaged_files_are_errors_or_weights_but_never_a_crash(
        which in 0..READABLE.len(),
        cut in 0.0..1.0_f64,
        flips in prop::collection::vec((0.0..1.0_f64, any::<u8>()), 0..4),
        truncated in any::<bool>(),
    ) {
        let mut bytes = fs::read(fixture(READABLE[which])).unwrap();
        for (place, value) in flips {
            let place = (place * bytes.len() as f64) as usize;
            bytes[place] ^= value;
        }
        if truncated {
            bytes.truncate((cut * bytes.len() as f64) as usize);
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("damaged.pth");
        fs::write(&path, bytes).unwrap();
        let _ = read(&path);
    }
}

/// A folder with a cache, and a `curl` that serves what it is told to and reaches nothing.
#[cfg(unix)]
struct Desk {
    folder: TempDir,
}

#[cfg(unix)]
impl Desk {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("bin")).unwrap();
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Puts a downloader on the path: it notes what it was asked for, then does this.
    fn downloader(&self, name: &str, then: &str) {
        use std::os::unix::fs::PermissionsExt as _;
        let log = self.path("asked");
        let script = format!("#!/bin/sh\necho \"$0 $*\" >> '{}'\n{then}\n", log.display());
        let path = self.path("bin").join(name);
        fs::write(&path, script).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// A `curl` that copies a file to where it is asked to.
    fn serve(&self, file: &Path) {
        let copy = format!(
            "while [ \"$1\" != --output ]; do shift; done; /bin/cat '{}' > \"$2\"",
            file.display()
        );
        self.downloader("curl", &copy);
    }

    fn asked(&self) -> String {
        fs::read_to_string(self.path("asked")).unwrap_or_default()
    }

    fn cached(&self, name: &str) -> PathBuf {
        self.path("cache").join("pinpoint/weights").join(name)
    }

    fn cached_names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.cached("")).into_iter().flatten();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let mut command = Command::cargo_bin("pinpoint").unwrap();
        command.args(arguments).current_dir(self.folder.path());
        // Nothing but our own downloader can be found.
        command.env("PATH", self.path("bin")).env("XDG_CACHE_HOME", self.path("cache"));
        command.output().unwrap()
    }

    fn said(&self, code: i32, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert_eq!(output.status.code(), Some(code), "{output:?}");
        String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
    }
}

#[cfg(unix)]
fn digest(path: &Path) -> String {
    pinpoint::model::known::sha256(path).unwrap()
}

#[cfg(unix)]
#[test]
fn what_is_fetched_is_verified_and_every_verb_finds_it_by_name() {
    let desk = Desk::new();
    let spec = SyntheticSpec { classes: 2, train: 8, valid: 2, test: 2, side: 48, seed: 1 };
    synthetic::write(&desk.path("data"), &spec, || {}).unwrap();
    let small = ["--set", "model.backbone=tiny", "--set", "preprocess.upscale_short_side=0"];
    let train = |more: &[&str], code| {
        let probe = ["train", "--method", "probe", "--data", "data"];
        desk.said(code, &[&probe, &small[..], more].concat())
    };
    // Weights that some other training has left, offered somewhere.
    train(&["--out", "first"], 0);
    let offered = desk.path("first/weights/best.safetensors");
    desk.serve(&offered);
    let url = "https://weights.example/histology.safetensors";
    let sha256 = digest(&offered);
    let get = ["weights", "get", "histology", "--url", url, "--sha256", &sha256];
    let said = desk.said(0, &get);
    let cached = desk.cached("histology");
    assert!(said.contains(cached.to_str().unwrap()), "{said}");
    assert_eq!(fs::read(&cached).unwrap(), fs::read(&offered).unwrap());
    assert_eq!(desk.cached_names(), ["histology"], "nothing is left over");
    assert!(desk.asked().contains(&format!("-- {url}")), "{}", desk.asked());
    // Once is enough.
    desk.said(0, &get);
    assert_eq!(desk.asked().lines().count(), 1, "{}", desk.asked());

    let said = train(&["--out", "second", "--weights", "histology"], 0);
    assert!(!said.contains("drawn at random") && said.contains("tensors loaded"), "{said}");
    let run = desk.path("second");
    let evaluate = ["evaluate", run.to_str().unwrap(), "--data", "data", "--no-report"];
    desk.said(0, &[&evaluate[..], &["--decidability", "--weights", "histology"]].concat());
    // A file of that name here is what is meant first.
    fs::copy(&offered, desk.path("histology")).unwrap();
    let said = train(&["--out", "third", "--weights", "histology"], 0);
    assert!(said.contains("tensors loaded"), "{said}");
}

#[cfg(unix)]
#[test]
fn what_is_not_the_published_file_is_refused_and_leaves_nothing() {
    let desk = Desk::new();
    let page = desk.path("page.html");
    fs::write(&page, "<html>Please log in</html>").unwrap();
    desk.serve(&page);
    let said = desk.said(2, &["weights", "get", "resnet18"]);
    assert!(said.contains("Please log in") && said.contains(&digest(&page)), "{said}");
    assert!(said.contains("https://download.pytorch.org/models/resnet18-f37072fd.pth"), "{said}");
    assert!(desk.cached_names().is_empty(), "{:?}", desk.cached_names());
    // A damaged file in the cache is fetched again, and never used.
    fs::copy(&page, desk.cached("resnet18-f37072fd.pth")).unwrap();
    desk.said(2, &["weights", "get", "resnet18"]);
    assert_eq!(desk.asked().lines().count(), 2);
}

#[cfg(unix)]
#[test]
fn without_a_network_it_says_what_to_copy_where() {
    let desk = Desk::new();
    let address = "https://download.pytorch.org/models/resnet34-b627a593.pth";
    let place = desk.cached("resnet34-b627a593.pth");
    let tells = |said: &str| said.contains(address) && said.contains(place.to_str().unwrap());
    // Nothing to fetch with, and then nothing to fetch from.
    let said = desk.said(2, &["weights", "get", "resnet34"]);
    assert!(tells(&said) && said.contains("neither `curl` nor `wget`"), "{said}");
    desk.downloader("wget", "exit 4");
    let said = desk.said(2, &["weights", "get", "resnet34"]);
    assert!(tells(&said) && said.starts_with("note: fetching"), "{said}");
    let (problem, remedy) = said.split_once("\nhint: ").expect("a remedy");
    assert!(problem.contains("error: `wget` could not fetch it") && tells(remedy), "{said}");
    assert!(desk.cached_names().is_empty(), "{:?}", desk.cached_names());
    for verb in [
        &["train", "--data", "x", "--out", "y"][..],
        &["sweep", "x.toml", "--data", "x", "--out", "y"],
        &["reproduce", "glas", "--data", "x"],
        &["evaluate", "run", "--data", "x", "--decidability"],
    ] {
        let said = desk.said(2, &[verb, &["--weights", "resnet34"]].concat());
        assert!(tells(&said) && said.contains("pinpoint weights get resnet34"), "{said}");
    }
}

#[cfg(unix)]
#[test]
fn settings_follow_published_weights_or_a_warning_says_that_they_do_not() {
    let desk = Desk::new();
    let spec = SyntheticSpec { classes: 2, train: 4, valid: 2, test: 2, side: 48, seed: 1 };
    synthetic::write(&desk.path("data"), &spec, || {}).unwrap();
    let file = desk.path("resnet34-b627a593.pth");
    fs::write(&file, "not the published content").unwrap();
    let train = |more: &[&str]| {
        let known = ["train", "--method", "cam-avg", "--data", "data", "--out", "run"];
        let weights = ["--weights", file.to_str().unwrap()];
        desk.said(2, &[&known[..], &weights, more].concat())
    };
    let said = train(&[]);
    // Nothing to warn of; the content is what it ends with.
    assert!(said.contains("not the published file") && !said.contains("warning"), "{said}");
    let said = train(&["--set", "preprocess.normalization=half"]);
    assert!(said.contains("warning") && said.contains("\"imagenet\""), "{said}");
}

#[cfg(unix)]
#[test]
fn requests_that_make_no_sense_are_refused_before_anything_is_fetched() {
    let desk = Desk::new();
    desk.downloader("curl", "exit 0");
    let zeros = "0".repeat(64);
    for (arguments, expected) in [
        (&["vgg16"][..], "resnet18, resnet34, resnet50, resnet101"),
        (&["../x", "--url", "https://x", "--sha256", &zeros], "name of a file"),
        (&["x", "--url", "https://x"], "--sha256"),
        (&["x", "--url", "ftp:/x", "--sha256", &zeros], "no address"),
        (&["x", "--url", "https://x", "--sha256", "12"], "64 hexadecimal digits"),
        (&["resnet18", "--sha256", &zeros], "is known"),
    ] {
        let said = desk.said(2, &[&["weights", "get"], arguments].concat());
        assert!(said.contains(expected) && said.contains("hint:"), "{said}");
    }
    assert_eq!(desk.asked(), "");
}

#[test]
fn the_list_names_source_and_digest_of_every_file() {
    let output =
        Command::cargo_bin("pinpoint").unwrap().args(["weights", "--json"]).output().unwrap();
    let files: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let files = files.as_array().unwrap();
    assert_eq!(files.len(), 6);
    assert!(files.iter().all(|file| file["sha256"].as_str().unwrap().len() == 64));
}
