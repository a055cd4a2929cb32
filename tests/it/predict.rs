//! Prediction from outside: every kind of input, every kind of output, and what goes wrong.

use std::{
    collections::BTreeSet,
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    thread,
    time::Duration,
};

use assert_cmd::cargo::CommandCargoExt as _;
use image::{DynamicImage, GrayImage, ImageBuffer, ImageFormat, Luma, Rgb, RgbImage, Rgba};
use pinpoint::data::npy;
use serde_json::Value;
use tempfile::TempDir;

use crate::drawn_run;

/// A folder with a run in it, whose weights were drawn and not trained: quick, and as good here.
struct Workshop {
    folder: TempDir,
}

impl Workshop {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        drawn_run::write(folder.path(), &["benign", "malignant"]);
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Draws an image of a disc at `name`.
    fn image(&self, name: &str, width: u32, height: u32) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        picture(width, height).save(&path).unwrap();
        path
    }

    fn command(&self, more: &[&str]) -> Command {
        let mut command = Command::cargo_bin("pinpoint").unwrap();
        command.current_dir(self.folder.path()).args(["predict", "run"]).args(more);
        command
    }

    fn predict(&self, more: &[&str]) -> Output {
        self.command(more).output().unwrap()
    }

    fn lines(&self, more: &[&str]) -> Vec<Value> {
        let output = self.predict(&[more, &["--json"]].concat());
        assert!(output.status.success(), "{output:?}");
        lines(&output)
    }
}

fn picture(width: u32, height: u32) -> RgbImage {
    RgbImage::from_fn(width, height, |x, y| {
        let (dx, dy) = (f64::from(x) - f64::from(width) / 3.0, f64::from(y) - 20.0);
        let inside = dx * dx + dy * dy < 150.0;
        Rgb(if inside { [200, 60, 30] } else { [(x * 3) as u8, 90, (y * 5) as u8] })
    })
}

fn lines(output: &Output) -> Vec<Value> {
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn stderr(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!text.contains("panicked"), "{text}");
    text
}

fn text<'a>(line: &'a Value, key: &str) -> &'a str {
    line[key].as_str().unwrap_or_else(|| panic!("no `{key}` in {line}"))
}

/// The mask a line names, which must be black and white.
fn mask(workshop: &Workshop, line: &Value) -> GrayImage {
    let DynamicImage::ImageLuma8(mask) = image::open(workshop.path(text(line, "mask"))).unwrap()
    else {
        panic!("masks are grey with eight bits");
    };
    assert!(mask.iter().all(|&pixel| pixel == 0 || pixel == 255));
    mask
}

#[test]
fn a_line_says_what_and_where_and_the_mask_has_the_size_of_the_image() {
    let workshop = Workshop::new();
    for (width, height) in [(32, 32), (33, 47), (101, 35), (200, 64)] {
        workshop.image("a.png", width, height);
        let lines = workshop.lines(&["a.png", "--out", "out"]);
        let [line] = &lines[..] else { panic!("{lines:?}") };
        assert_eq!((text(line, "image"), text(line, "mask")), ("a.png", "out/a_mask.png"));
        let probabilities = line["probabilities"].as_object().unwrap();
        let sum: f64 = probabilities.values().map(|p| p.as_f64().unwrap()).sum();
        assert!((sum - 1.0).abs() < 1e-5, "{line}");
        let class = text(line, "class");
        assert_eq!(probabilities[class], line["probability"]);
        assert!(probabilities.values().all(|p| p.as_f64() <= line["probability"].as_f64()));

        let mask = mask(&workshop, line);
        assert_eq!(mask.dimensions(), (width, height));
        let white = mask.iter().filter(|&&pixel| pixel == 255).count() as f64;
        let foreground = line["foreground"].as_f64().unwrap();
        assert!((foreground - white / f64::from(width * height)).abs() < 1e-9, "{line}");
    }
}

#[test]
fn files_folders_patterns_and_lists_are_predicted() {
    let workshop = Workshop::new();
    for name in ["one.png", "set/two.png", "set/deep/three.jpg", "set/notes.png.txt"] {
        if name.ends_with("txt") {
            fs::write(workshop.path(name), "not an image").unwrap();
        } else {
            workshop.image(name, 40, 40);
        }
    }
    let named = |lines: &[Value]| -> Vec<String> {
        lines.iter().map(|line| text(line, "image").to_owned()).collect()
    };
    let found = workshop.lines(&["one.png", "set"]);
    assert_eq!(named(&found), ["one.png", "set/deep/three.jpg", "set/two.png"]);
    assert!(workshop.path("run/predictions/deep/three_mask.png").is_file());
    assert_eq!(named(&workshop.lines(&["set/*.png"])), ["set/two.png"]);
    assert_eq!(named(&workshop.lines(&["**/t*.*g"])), ["set/deep/three.jpg", "set/two.png"]);

    let mut command = workshop.command(&["-", "--json"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"set/two.png\r\n\none.png\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(named(&lines(&output)), ["set/two.png", "one.png"]);
}

#[test]
fn images_of_the_same_name_do_not_overwrite_each_other() {
    let workshop = Workshop::new();
    for (name, side) in [("x/a.png", 32), ("y/a.png", 40), ("x/a.bmp", 48), ("a-2.png", 56)] {
        workshop.image(name, side, side);
    }
    let found = workshop.lines(&["x/a.png", "y/a.png", "x/a.bmp", "a-2.png", "--out", "out"]);
    let files: BTreeSet<&str> = found.iter().map(|line| text(line, "mask")).collect();
    assert_eq!(files.len(), 4, "{files:?}");
    let widths: Vec<u32> = found.iter().map(|line| mask(&workshop, line).width()).collect();
    assert_eq!(widths, [32, 40, 48, 56]);
}

#[test]
fn an_output_never_replaces_an_input() {
    let workshop = Workshop::new();
    let (a, b) = (workshop.image("a.png", 32, 32), workshop.image("a_mask.png", 40, 40));
    let before = [fs::read(&a).unwrap(), fs::read(&b).unwrap()];
    let output = workshop.predict(&["a.png", "a_mask.png", "--out", "."]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(stderr(&output).contains("is not replaced"), "{output:?}");
    assert!(before == [fs::read(&a).unwrap(), fs::read(&b).unwrap()]);
}

#[test]
fn predictions_among_the_images_of_a_dataset_come_with_a_warning() {
    let workshop = Workshop::new();
    workshop.image("data/cat/1.png", 40, 40);
    let warned = |out: &str| {
        let output = workshop.predict(&["data/cat/1.png", "--out", out]);
        assert!(output.status.success(), "{output:?}");
        stderr(&output).contains("ground truth")
    };
    assert!(warned("data") && warned("data/cat") && !warned("data/predictions"));
}

#[test]
fn a_file_where_masks_are_to_be_written_is_told_once() {
    let workshop = Workshop::new();
    fs::write(workshop.path("taken"), "theirs").unwrap();
    workshop.image("one.png", 40, 40);
    workshop.image("two.png", 40, 40);
    let output = workshop.predict(&["one.png", "two.png", "--out", "taken"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let told = stderr(&output);
    assert_eq!(told.matches("cannot write into `taken`").count(), 1, "{told}");
    assert!(told.contains("another folder by `--out`"), "{told}");
    assert_eq!(fs::read(workshop.path("taken")).unwrap(), b"theirs");
}

#[test]
fn one_bad_image_does_not_stop_the_rest() {
    let workshop = Workshop::new();
    let good = workshop.image("good.png", 64, 48);
    workshop.image("last.jpg", 48, 64);
    let bytes = fs::read(&good).unwrap();
    fs::write(workshop.path("truncated.png"), &bytes[..bytes.len() / 2]).unwrap();
    fs::write(workshop.path("text.png"), "class,mask\n").unwrap();
    fs::write(workshop.path("empty.png"), "").unwrap();
    let mut huge = bytes.clone();
    // The header's width and height; the checksum is not what must save us.
    huge[16..24].copy_from_slice(&[0x7f, 0xff, 0xff, 0xff, 0x7f, 0xff, 0xff, 0xff]);
    fs::write(workshop.path("huge.png"), huge).unwrap();

    let asked = ["good.png", "truncated.png", "text.png", "empty.png", "huge.png", "missing.png"];
    let output = workshop.predict(&[&asked[..], &["*.bmp", "last.jpg", "--json"]].concat());
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let lines = lines(&output);
    assert_eq!(lines.len(), 7, "{lines:?}");
    for (line, name) in lines.iter().zip(asked.iter().chain(&["last.jpg"])) {
        assert_eq!(text(line, "image"), *name);
        let good = ["good.png", "last.jpg"].contains(name);
        assert_eq!(line.get("mask").is_some(), good, "{line}");
        assert_eq!(line.get("error").is_some(), !good, "{line}");
    }
    let messages = stderr(&output);
    for name in &asked[1..] {
        assert!(messages.contains(name), "{name} is not named: {messages}");
    }
    assert!(messages.contains("nothing matches `*.bmp`"), "{messages}");
}

#[test]
fn with_nothing_done_the_exit_code_is_two() {
    let workshop = Workshop::new();
    fs::write(workshop.path("text.png"), "x").unwrap();
    fs::create_dir(workshop.path("hollow")).unwrap();
    for asked in [&["text.png"][..], &["missing.png"], &["*.jpg"], &["hollow"]] {
        let output = workshop.predict(asked);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(!stderr(&output).is_empty());
    }
    workshop.image("a.png", 32, 32);
    for flags in [["--threshold", "oracle"], ["--threshold", "2"], ["--tile", "3"]] {
        let output = workshop.predict(&[&["a.png"], &flags[..]].concat());
        assert_eq!(output.status.code(), Some(2), "{output:?}");
    }
    fs::remove_file(workshop.path("run/weights/best.safetensors")).unwrap();
    let output = workshop.predict(&["a.png"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(stderr(&output).contains("best.safetensors"), "{output:?}");
}

#[test]
fn everything_that_can_be_written_agrees_with_the_mask() {
    let workshop = Workshop::new();
    workshop.image("a.png", 90, 61);
    let all = ["a.png", "--out", "out", "--overlay", "--heat-map", "--npy", "--threshold", "0.6"];
    for format in ["json", "csv", "geojson"] {
        let found = workshop.lines(&[&all[..], &["--boxes", format]].concat());
        let line = &found[0];
        let mask = mask(&workshop, line);
        for key in ["overlay", "heat_map"] {
            let drawn = image::open(workshop.path(text(line, key))).unwrap();
            assert_eq!((drawn.width(), drawn.height()), (90, 61), "{key}");
        }
        let map = npy::read(&workshop.path(text(line, "npy")), 1).unwrap();
        assert_eq!((map.width, map.height), (90, 61));
        let cut: Vec<u8> = map.values.iter().map(|&score| 255 * u8::from(score >= 0.6)).collect();
        assert!(&cut == mask.as_raw());

        let boxes = fs::read_to_string(workshop.path(text(line, "boxes"))).unwrap();
        let (area, count) = areas(&boxes, format);
        assert_eq!(area, mask.iter().filter(|&&pixel| pixel == 255).count() as u64);
        assert!(count > 0, "{boxes}");
    }
}

/// The sum of all areas in a file of boxes, and how many there are.
fn areas(boxes: &str, format: &str) -> (u64, usize) {
    let areas: Vec<u64> = match format {
        "csv" => {
            let column = |row: &str| row.split(',').nth(6).unwrap().parse().unwrap();
            boxes.lines().skip(1).map(column).collect()
        }
        "json" => {
            let document: Value = serde_json::from_str(boxes).unwrap();
            let boxes = document["boxes"].as_array().unwrap();
            boxes.iter().map(|found| found["area"].as_u64().unwrap()).collect()
        }
        _ => {
            let document: Value = serde_json::from_str(boxes).unwrap();
            assert_eq!(document["type"], "FeatureCollection");
            let features = document["features"].as_array().unwrap();
            for feature in features {
                let ring = feature["geometry"]["coordinates"][0].as_array().unwrap();
                assert_eq!((ring.len(), &ring[0]), (5, &ring[4]), "a closed ring");
            }
            features.iter().map(|found| found["properties"]["area"].as_u64().unwrap()).collect()
        }
    };
    (areas.iter().sum(), areas.len())
}

#[test]
fn the_crf_and_the_threshold_change_the_mask() {
    let workshop = Workshop::new();
    workshop.image("a.png", 96, 80);
    let mask_with = |flags: &[&str]| {
        let found = workshop.lines(&[&["a.png", "--out", "out"], flags].concat());
        mask(&workshop, &found[0]).into_raw()
    };
    let plain = mask_with(&[]);
    assert!(plain != mask_with(&["--crf", "glas"]));
    assert!(plain != mask_with(&["--threshold", "percentile:90"]));
    let tenth = mask_with(&["--threshold", "percentile:90"]);
    let white = tenth.iter().filter(|&&pixel| pixel == 255).count();
    assert!(white.abs_diff(96 * 80 / 10) <= 2, "{white}");
}

#[test]
fn images_are_read_as_everywhere_else() {
    let workshop = Workshop::new();
    let plain = picture(60, 44);
    let grey = DynamicImage::ImageRgb8(plain.clone()).into_luma8();
    let deep: ImageBuffer<Luma<u16>, _> =
        ImageBuffer::from_fn(60, 44, |x, y| Luma([u16::from(grey.get_pixel(x, y)[0]) * 257]));
    let alpha = image::RgbaImage::from_fn(60, 44, |x, y| {
        let Rgb([r, g, b]) = *plain.get_pixel(x, y);
        Rgba([r, g, b, (x * 4) as u8])
    });
    plain.save(workshop.path("rgb.png")).unwrap();
    alpha.save(workshop.path("alpha.png")).unwrap();
    grey.save(workshop.path("grey.png")).unwrap();
    deep.save(workshop.path("deep.png")).unwrap();
    DynamicImage::ImageLuma8(grey).into_rgb8().save(workshop.path("three.png")).unwrap();
    let names = ["rgb.png", "alpha.png", "grey.png", "deep.png", "three.png"];
    let found = workshop.lines(&[&names[..], &["--out", "out", "--npy"]].concat());
    let map = |line: &Value| fs::read(workshop.path(text(line, "npy"))).unwrap();
    let maps: Vec<_> = found.iter().map(map).collect();
    assert!(maps[0] == maps[1], "alpha is dropped");
    assert!(maps[2] == maps[3] && maps[2] == maps[4], "grey is three equal channels of 8 bits");
    assert!(maps[0] != maps[2]);
}

#[test]
fn the_mask_of_a_turned_photograph_is_upright() {
    let workshop = Workshop::new();
    let mut jpeg = std::io::Cursor::new(Vec::new());
    picture(64, 40).write_to(&mut jpeg, ImageFormat::Jpeg).unwrap();
    // An EXIF block that says "turn by 90°", behind the start of the file.
    let exif =
        b"\xff\xe1\x00\x22Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0";
    let mut turned = jpeg.into_inner();
    turned.splice(2..2, exif.iter().copied());
    fs::write(workshop.path("turned.jpg"), turned).unwrap();
    let found = workshop.lines(&["turned.jpg"]);
    assert_eq!(mask(&workshop, &found[0]).dimensions(), (40, 64));
}

#[test]
fn any_number_of_threads_gives_the_same_bytes() {
    let workshop = Workshop::new();
    let names = ["a.png", "b.png", "c.png"];
    for (name, side) in names.iter().zip([150, 70, 200]) {
        workshop.image(name, side, 120);
    }
    let answers = |threads: &str| {
        let flags = ["--out", "out", "--npy", "--tile", "96", "--threads", threads, "--json"];
        let output = workshop.predict(&[&names[..], &flags].concat());
        assert!(output.status.success(), "{output:?}");
        let read = |name: &str| fs::read(workshop.path(&format!("out/{name}"))).unwrap();
        (output.stdout, ["a.npy", "b.npy", "c.npy", "a_mask.png"].map(read))
    };
    let one = answers("1");
    assert!(one == answers("2") && one == answers("5"));
}

#[test]
fn tiles_with_a_full_halo_give_the_answer_of_the_whole_image() {
    let workshop = Workshop::new();
    workshop.image("a.png", 431, 263);
    let answer = |out: &str, flags: &[&str]| {
        let found = workshop.lines(&[&["a.png", "--npy", "--out", out], flags].concat());
        let map = npy::read(&workshop.path(text(&found[0], "npy")), 1).unwrap();
        (found[0]["probability"].as_f64().unwrap(), map.values)
    };
    let difference =
        |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    let (whole, tiled, torn) = (
        answer("whole", &[]),
        answer("tiled", &["--tile", "256"]),
        answer("torn", &["--tile", "64", "--halo", "0"]),
    );
    assert!(difference(&whole.1, &tiled.1) < 2e-5, "{}", difference(&whole.1, &tiled.1));
    assert!((whole.0 - tiled.0).abs() < 2e-6);
    assert!(difference(&whole.1, &torn.1) > 1e-3, "seams must show where there is no halo");
}

#[test]
#[cfg(target_os = "linux")]
fn a_large_image_is_predicted_within_the_stated_memory() {
    let workshop = Workshop::new();
    let (width, height) = (4000, 4000);
    RgbImage::from_fn(width, height, |x, y| Rgb([(x / 16) as u8, (y / 16) as u8, 7]))
        .save(workshop.path("large.png"))
        .unwrap();
    let mut command = workshop.command(&["large.png", "--tile", "512", "--halo", "16"]);
    let mut child = command.stdout(Stdio::null()).spawn().unwrap();
    let mut peak_mib = 0.0_f64;
    let status = loop {
        let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = peak.and_then(|peak| peak.trim().trim_end_matches(" kB").parse::<f64>().ok());
        peak_mib = peak_mib.max(kib.unwrap_or(0.0) / 1024.0);
        match child.try_wait().unwrap() {
            Some(status) => break status,
            None => thread::sleep(Duration::from_millis(5)),
        }
    };
    assert!(status.success());
    // `docs/predict.md`: 9 bytes a pixel, and what the network needs for a window. The input
    // alone would be 12 bytes a pixel, and the network needs several times that.
    let bound = 9.0 * f64::from(width * height) / f64::from(1 << 20) + 100.0;
    assert!(peak_mib < bound, "{peak_mib} MiB where {bound} MiB were promised");
    assert!(peak_mib > 40.0, "{peak_mib} MiB cannot be the peak");
}

#[test]
#[cfg(unix)]
fn a_signal_leaves_whole_files_and_as_many_lines() {
    let workshop = Workshop::new();
    for index in 0..300 {
        workshop.image(&format!("set/{index}.png"), 160, 160);
    }
    let mut command = workshop.command(&["set", "--out", "out", "--npy", "--json"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let masks = || -> Vec<PathBuf> {
        let Ok(entries) = fs::read_dir(workshop.path("out")) else { return Vec::new() };
        entries.map(|entry| entry.unwrap().path()).collect()
    };
    while masks().len() < 6 {
        thread::sleep(Duration::from_millis(5));
    }
    let killed = Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap();
    assert!(killed.success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    let found = lines(&output);
    assert!(!found.is_empty() && found.len() < 300, "{}", found.len());
    assert_eq!(masks().len(), 2 * found.len(), "nothing half done is left");
    for line in &found {
        assert_eq!(mask(&workshop, line).dimensions(), (160, 160));
        npy::read(Path::new(&workshop.path(text(line, "npy"))), 1).unwrap();
    }
}

#[test]
fn people_get_a_line_of_columns() {
    let workshop = Workshop::new();
    workshop.image("a.png", 40, 40);
    let output = workshop.predict(&["a.png", "--out", "out"]);
    assert!(output.status.success(), "{output:?}");
    let line = String::from_utf8(output.stdout.clone()).unwrap();
    assert!(line.contains("a.png") && line.contains("out/a_mask.png"), "{line}");
    assert!(line.starts_with("benign") || line.starts_with("malignant"), "{line}");
    let column = "malignant  100.0 %".len() - 1;
    assert_eq!(line.find('%'), Some(column), "as wide as the longest class: {line}");
    assert!(stderr(&output).is_empty(), "{output:?}");
}
