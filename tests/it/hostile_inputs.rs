//! Names, files and numbers that mean harm, or that a slip of the hand made.

use std::{
    collections::HashMap,
    fs,
    path::Path,
    process::{Command, Output, Stdio},
    thread,
    time::{Duration, Instant},
};

use assert_cmd::cargo::CommandCargoExt as _;
use image::{GrayImage, Luma, RgbImage};
use pinpoint::data::image::{read_rgb, read_size};
use safetensors::{SafeTensors, tensor::TensorView};

use crate::train::{Workshop, failure};

fn pinpoint(arguments: &[&str]) -> Output {
    Command::cargo_bin("pinpoint").unwrap().args(arguments).output().unwrap()
}

/// A dataset of two classes of two test images each, with masks of one value.
fn dataset(folder: &Path, classes: [&str; 2], mask: u8) {
    for class in classes {
        for split in ["train", "test"] {
            for number in 0..2 {
                let name = format!("{split}/{class}/=cmd {number}.png");
                let [image, truth] = [folder.join(&name), folder.join("masks").join(&name)];
                for path in [&image, &truth] {
                    fs::create_dir_all(path.parent().unwrap()).unwrap();
                }
                RgbImage::new(16, 16).save(image).unwrap();
                GrayImage::from_pixel(16, 16, Luma([mask])).save(truth).unwrap();
            }
        }
    }
}

fn all_ones(data: &Path, report: &Path) -> Output {
    let (data, report) = (data.to_str().unwrap(), report.to_str().unwrap());
    pinpoint(&["evaluate", "--method", "all-ones", "--data", data, "--report", report])
}

#[test]
fn masks_that_are_all_full_or_all_empty_are_warned_of() {
    for (mask, told) in [(255, "every pixel of every mask"), (0, "no pixel of any mask")] {
        let folder = tempfile::tempdir().unwrap();
        dataset(folder.path(), ["a", "b"], mask);
        let output = all_ones(folder.path(), &folder.path().join("report"));
        assert!(output.status.success(), "{output:?}");
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(stderr.contains("warning:") && stderr.contains(told), "{stderr}");
    }
}

#[test]
#[cfg(unix)]
fn names_neither_steer_the_terminal_nor_become_formulas() {
    let folder = tempfile::tempdir().unwrap();
    dataset(folder.path(), ["=HYPERLINK(1)", "b\x1b[2J"], 255);
    fs::write(folder.path().join("test/b\x1b[2J/bad\x1b]0;x\x07.png"), "no image").unwrap();
    let report = folder.path().join("report");
    let data = folder.path().to_str().unwrap();
    let outputs = [all_ones(folder.path(), &report), pinpoint(&["data", "check", data])];
    for output in outputs {
        for stream in [&output.stdout, &output.stderr] {
            let hostile = stream.iter().any(|byte| [0x1b, 0x07].contains(byte));
            assert!(!hostile, "{:?}", String::from_utf8_lossy(stream));
        }
    }
    fs::remove_file(folder.path().join("test/b\x1b[2J/bad\x1b]0;x\x07.png")).unwrap();
    let output = all_ones(folder.path(), &report);
    assert!(output.status.success(), "{output:?}");
    for table in ["metrics.csv", "classes.csv"] {
        let text = fs::read_to_string(report.join(table)).unwrap();
        assert!(text.contains("'=HYPERLINK(1)"), "{table}: {text}");
        for cell in text.lines().flat_map(|line| line.split(',')) {
            assert!(!cell.trim_matches('"').starts_with('='), "{table}: {cell}");
        }
    }
}

/// A lossless WebP of one colour, `side`² pixels in a few bytes, and some that mean nothing.
pub(crate) fn blank_webp(side: u32, padding: usize) -> Vec<u8> {
    // Signature, sizes less one, no alpha, version 0; no transform, no cache, no meta codes.
    let mut bits: Vec<bool> = Vec::new();
    let mut push = |value: u32, count: u32| bits.extend((0..count).map(|i| value >> i & 1 == 1));
    push(0x2f, 8);
    push(side - 1, 14);
    push(side - 1, 14);
    push(0, 4);
    push(0, 3);
    for _ in 0..5 {
        // A simple code of one symbol of one bit: it takes no bits per pixel.
        push(0b0001, 4);
    }
    let mut data: Vec<u8> = bits
        .chunks(8)
        .map(|byte| byte.iter().enumerate().map(|(i, bit)| u8::from(*bit) << i).sum())
        .collect();
    data.resize(data.len().next_multiple_of(2), 0);
    let mut chunks = [b"VP8L", &(data.len() as u32).to_le_bytes()[..], &data].concat();
    if padding > 0 {
        chunks.extend(b"JUNK");
        chunks.extend((padding as u32).to_le_bytes());
        chunks.resize(chunks.len() + padding, 0);
    }
    let length = chunks.len() as u32 + 4;
    [b"RIFF", &length.to_le_bytes()[..], b"WEBP", &chunks].concat()
}

#[test]
fn a_picture_of_millions_of_pixels_in_a_few_bytes_is_refused_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bomb.webp");
    fs::write(&path, blank_webp(64, 0)).unwrap();
    assert_eq!(read_rgb(&path, 200).unwrap().dimensions(), (64, 64));
    fs::write(&path, blank_webp(12_960, 0)).unwrap();
    let started = Instant::now();
    for message in [
        read_size(&path, 200).unwrap_err().to_string(),
        read_rgb(&path, 200).unwrap_err().to_string(),
    ] {
        assert!(message.contains("12960×12960") && message.contains("bomb.webp"), "{message}");
    }
    assert!(started.elapsed() < Duration::from_secs(1));
}

#[test]
#[cfg(unix)]
fn a_signal_does_not_wait_for_a_file_that_takes_long_to_decode() {
    let workshop = Workshop::new();
    assert!(workshop.train("run", &["--epochs", "1"]).status.success());
    // Long enough for its pixels not to look hostile, and slow all the same.
    let slow = workshop.run_dir("slow.webp");
    fs::write(&slow, blank_webp(14_000, 14_000 * 14_000 / 1000)).unwrap();
    let mut command = Command::cargo_bin("pinpoint").unwrap();
    command.arg("predict").arg(workshop.run_dir("run")).arg(&slow);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    while child.try_wait().unwrap().is_none() && !catches_signals(child.id()) {
        thread::sleep(Duration::from_millis(10));
    }
    thread::sleep(Duration::from_millis(500));
    if child.try_wait().unwrap().is_some() {
        eprintln!("skipped: this machine decodes 196 megapixels in half a second");
        return;
    }
    let asked = Instant::now();
    Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap();
    let status = child.wait().unwrap();
    eprintln!("the signal was obeyed within {:?}", asked.elapsed());
    assert!(asked.elapsed() < Duration::from_secs(3), "{:?}", asked.elapsed());
    assert_eq!(status.code(), Some(130), "stopped by a signal");
}

/// Whether a process has come so far that it answers to a request to end, where that can be told.
#[cfg(unix)]
fn catches_signals(process: u32) -> bool {
    const SIGTERM: u32 = 15;
    let Ok(status) = fs::read_to_string(format!("/proc/{process}/status")) else { return true };
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    caught
        .is_none_or(|mask| u64::from_str_radix(mask.trim(), 16).unwrap() >> (SIGTERM - 1) & 1 == 1)
}

/// Runs a command that must end by itself, and soon.
#[cfg(unix)]
fn within(mut command: Command, limit: Duration) -> Output {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let started = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if started.elapsed() > limit {
            child.kill().unwrap();
            panic!("{command:?} hangs");
        }
        thread::sleep(Duration::from_millis(10));
    }
    child.wait_with_output().unwrap()
}

#[test]
#[cfg(unix)]
fn pipes_and_devices_are_no_files() {
    let workshop = Workshop::new();
    assert!(workshop.train("run", &["--epochs", "1"]).status.success());
    let pipe = workshop.run_dir("pipe.npy");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let limit = Duration::from_secs(20);
    for file in [pipe.to_str().unwrap(), "/dev/zero"] {
        for flag in ["--config", "--weights"] {
            let message = failure(&within(workshop.command("new", &[flag, file]), limit));
            assert!(message.contains("not a regular file") && message.contains(file), "{message}");
        }
        let mut refine = Command::cargo_bin("pinpoint").unwrap();
        let image = workshop.run_dir("image.png");
        RgbImage::new(8, 8).save(&image).unwrap();
        refine.arg("crf").arg(image).arg(file).arg("--out").arg(workshop.run_dir("out.npy"));
        let refused = within(refine, limit);
        assert!(!refused.status.success(), "{refused:?}");
    }
    let checkpoint = workshop.run_dir("run/state/checkpoint.safetensors");
    fs::remove_file(&checkpoint).unwrap();
    fs::rename(&pipe, &checkpoint).unwrap();
    let message = failure(&within(workshop.command("run", &["--epochs", "1", "--resume"]), limit));
    assert!(message.contains("not a regular file"), "{message}");
}

#[test]
fn more_threads_or_memory_than_there_is_are_refused_with_what_to_change() {
    let workshop = Workshop::new();
    let message = failure(&workshop.train("run", &["--threads", "100000"]));
    assert!(message.contains("--threads 100000") && message.contains("hint:"), "{message}");
    let message = failure(&workshop.train("run", &["--set", "pool.maps_per_class=1000000000"]));
    assert!(message.contains("pool.maps_per_class"), "{message}");
    if cfg!(target_os = "linux") {
        let huge = [
            "--set",
            "model.backbone=resnet101",
            "--set",
            "preprocess.crop=16384",
            "--set",
            "train.batch_size=12",
        ];
        let message = failure(&workshop.train("run", &huge));
        assert!(message.contains("GiB") && message.contains("preprocess.crop"), "{message}");
    }
    assert!(!workshop.run_dir("run").exists());
}

/// A file that says it is a picture of this many pixels each way, and has none of them.
fn claim(path: &Path, side: u32) {
    let mut header = b"BM\0\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0".to_vec();
    header.extend([side.to_le_bytes(), side.to_le_bytes()].as_flattened());
    header.extend([1, 0, 24, 0]);
    header.resize(54, 0);
    fs::write(path, header).unwrap();
}

#[test]
#[cfg(target_os = "linux")]
fn images_that_need_more_memory_than_there_is_are_refused_before_one_is_decoded() {
    let workshop = Workshop::new();
    let data = workshop.folder.path().join("data");
    let images = data.join("test");
    let class = fs::read_dir(&images).unwrap().next().unwrap().unwrap().path();
    let huge = class.join("huge.bmp");
    claim(&huge, 14_000);
    let data = data.to_str().unwrap();
    let evaluate = ["evaluate", "--method", "all-ones", "--no-report", "--data", data];
    let message = failure(&pinpoint(&[&evaluate[..], &["--threads", "256"]].concat()));
    assert!(message.contains("huge.bmp") && message.contains("GiB"), "{message}");
    assert!(message.contains("lower `--threads`"), "{message}");

    assert!(workshop.train("run", &["--epochs", "1"]).status.success());
    let (run, out) = (workshop.run_dir("run"), workshop.run_dir("masks"));
    let predict = |more: &[&str]| {
        let mut command = Command::cargo_bin("pinpoint").unwrap();
        command.arg("predict").arg(&run).arg(&images).arg("--out").arg(&out).args(more);
        command.output().unwrap()
    };
    let message = failure(&predict(&["--tile", "16384", "--threads", "256"]));
    assert!(message.contains("huge.bmp") && message.contains("`--tile`"), "{message}");
    assert!(!out.exists(), "nothing was predicted");
    // Small images need little, however large a window might be.
    fs::remove_file(&huge).unwrap();
    let output = predict(&["--tile", "16384", "--threads", "2"]);
    assert!(output.status.success(), "{output:?}");
}

/// Writes a weight file anew without its note, each tensor's bytes changed.
fn rewritten(from: &Path, to: &Path, change: impl Fn(&str, &[u8]) -> Option<Vec<u8>>) {
    let whole = fs::read(from).unwrap();
    let file = SafeTensors::deserialize(&whole).unwrap();
    let (_, header) = SafeTensors::read_metadata(&whole).unwrap();
    let text: serde_json::Value =
        serde_json::from_str(&header.metadata().as_ref().unwrap()["pinpoint"]).unwrap();
    // As a version without checksums wrote it.
    let note = HashMap::from([("pinpoint".to_owned(), text["note"].to_string())]);
    let changed: Vec<(String, Vec<usize>, Vec<u8>)> = file
        .tensors()
        .into_iter()
        .filter_map(|(name, tensor)| {
            let bytes = change(&name, tensor.data())?;
            Some((name, vec![bytes.len() / 4], bytes))
        })
        .collect();
    let views = changed.iter().map(|(name, shape, bytes)| {
        let original = file.tensor(name).unwrap();
        let same = original.data().len() == bytes.len();
        let shape = if same { original.shape().to_vec() } else { shape.clone() };
        (name, TensorView::new(original.dtype(), shape, bytes).unwrap())
    });
    fs::write(to, safetensors::serialize(views, Some(note)).unwrap()).unwrap();
}

#[test]
fn a_probe_on_weights_that_are_no_numbers_is_refused_with_the_image_s_name() {
    let workshop = Workshop::new();
    let method = ["--method", "cam-avg", "--epochs", "1"];
    assert!(workshop.train("run", &method).status.success());
    let broken = workshop.run_dir("broken.safetensors");
    let not_a_number = |_: &str, bytes: &[u8]| Some(f32::NAN.to_le_bytes().repeat(bytes.len() / 4));
    rewritten(&workshop.run_dir("run/weights/last.safetensors"), &broken, not_a_number);
    let probe = ["--method", "probe", "--weights", broken.to_str().unwrap()];
    let message = failure(&workshop.train("probe", &probe));
    assert!(message.contains(".png") && message.contains("are no numbers"), "{message}");
}

#[test]
fn absurd_settings_of_a_probe_and_damaged_heads_are_refused_by_name() {
    let workshop = Workshop::new();
    for (key, value) in [
        ("probe.dimensions", "0"),
        ("probe.cells", "0"),
        ("probe.memory_mib", "1000000000"),
        ("probe.heads", "1000000"),
        ("probe.scales", "[0.0]"),
        ("probe.smoothing", "nan"),
        ("probe.own_image", "2.0"),
    ] {
        let setting = format!("{key}={value}");
        let message = failure(&workshop.train("probe", &["--method", "probe", "--set", &setting]));
        assert!(message.contains(key), "{message}");
    }
    assert!(!workshop.run_dir("probe").exists());

    let output = workshop.train("probe", &["--method", "probe"]);
    assert!(output.status.success(), "{output:?}");
    let best = workshop.run_dir("probe/weights/best.safetensors");
    let whole = workshop.run_dir("whole.safetensors");
    fs::copy(&best, &whole).unwrap();
    let names: Vec<String> = {
        let bytes = fs::read(&whole).unwrap();
        let file = SafeTensors::deserialize(&bytes).unwrap();
        file.names().into_iter().map(|name| (*name).to_owned()).collect()
    };
    let of_heads = names.iter().filter(|name| !name.contains("layer") && !name.contains("bn"));
    let image = workshop.run_dir("data/test");
    let image = image.to_str().unwrap();
    let run = workshop.run_dir("probe");
    let mut trials = 0;
    for name in of_heads {
        // Missing, and cut short.
        for kept in [None, Some(4)] {
            rewritten(&whole, &best, |found, bytes| match (found == name, kept) {
                (false, _) => Some(bytes.to_vec()),
                (true, None) => None,
                (true, Some(_)) if bytes.len() <= 4 => Some(bytes.to_vec()),
                (true, Some(kept)) => Some(bytes[..bytes.len() - kept].to_vec()),
            });
            let output = pinpoint(&["predict", run.to_str().unwrap(), image]);
            let told = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(!told.contains("panicked"), "{name}: {told}");
            if !output.status.success() {
                assert!(told.contains("best.safetensors"), "{name}: {told}");
                trials += 1;
            }
        }
    }
    assert!(trials > 5, "{trials} damaged files were refused");
}
