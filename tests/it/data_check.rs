//! `pinpoint data check` and `doctor`, as a user meets them.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use assert_cmd::Command;
use image::{GrayImage, ImageBuffer, Luma, Rgb, RgbImage};
use serde_json::Value;
use tempfile::TempDir;

/// Runs `pinpoint data check` and returns exit code, stdout and stderr.
fn check(path: &Path, flags: &[&str]) -> (i32, String, String) {
    let mut command = Command::cargo_bin("pinpoint").unwrap();
    let output = command.args(["data", "check"]).arg(path).args(flags).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

fn check_json(path: &Path) -> (i32, Value) {
    let (code, stdout, stderr) = check(path, &["--json"]);
    let json = serde_json::from_str(&stdout).unwrap_or_else(|_| panic!("{stdout}\n{stderr}"));
    (code, json)
}

fn place(folder: &TempDir, name: &str) -> PathBuf {
    let path = folder.path().join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    path
}

/// Writes an image that no other `seed` gives.
fn write_image(folder: &TempDir, name: &str, seed: u8) {
    let image = RgbImage::from_fn(40, 36, |x, y| Rgb([seed, x as u8, y as u8]));
    image.save(place(folder, name)).unwrap();
}

fn write_mask(folder: &TempDir, name: &str, width: u32) {
    let mask = GrayImage::from_fn(width, 36, |x, _| Luma([u8::from(x < 10)]));
    mask.save(place(folder, name)).unwrap();
}

/// Two classes, three training images and a test image, all with masks.
fn sound() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (seed, name) in
        ["train/cat/1", "train/cat/2", "train/dog/3", "test/dog/4"].iter().enumerate()
    {
        write_image(&folder, &format!("{name}.png"), seed as u8);
        write_mask(&folder, &format!("masks/{name}.png"), 40);
    }
    folder
}

#[test]
fn values_of_12_bits_in_files_of_16_are_told() {
    let folder = sound();
    for (name, highest) in [("train/cat/12", 4095_u16), ("train/dog/16", 60_000)] {
        let image = ImageBuffer::from_fn(40, 36, |x, _| Luma([highest / 40 * x as u16]));
        image.save(place(&folder, &format!("{name}.png"))).unwrap();
    }
    let (code, stdout, _) = check(folder.path(), &[]);
    let told = "1 of the images have 16 bits and use less than a quarter of their range";
    assert!(code == 0 && stdout.contains(told) && stdout.contains("12.png"), "{stdout}");
}

#[test]
fn a_sound_dataset_is_counted_and_exits_with_0() {
    let (code, json) = check_json(sound().path());
    let expected = serde_json::json!({
        "layout": "folders",
        "splits": {
            "train": {"images": 3, "masks": 3, "classes": {"cat": 2, "dog": 1}},
            "test": {"images": 1, "masks": 1, "classes": {"cat": 0, "dog": 1}},
        },
        "problems": [],
        "notes": [
            "no `valid` split: methods that choose an epoch by one set aside 20 % of each class of \
             `train`, 1 of 3 images; the probe learns from all of them"
        ],
    });
    assert_eq!((code, json), (0, expected));
}

#[test]
fn people_get_a_table() {
    let (code, stdout, stderr) = check(sound().path(), &[]);
    let table = stdout.split_once("\n\n").unwrap().1;
    assert_eq!(
        table,
        "         train    test
images       3       1
masks        3       1
cat          2       0
dog          1       1

image size  40×36 to 40×36, median 40×36
foreground  25.0 % to 25.0 % of an image, median 25.0 %

no problems
note: no `valid` split: methods that choose an epoch by one set aside 20 % of each class of `train`, 1 of 3 images; the probe learns from all of them
"
    );
    assert_eq!((code, stderr.as_str()), (0, ""));
}

#[test]
fn all_problems_are_told_at_once_with_file_and_remedy_and_exit_with_1() {
    let folder = sound();
    fs::remove_file(folder.path().join("masks/train/cat/1.png")).unwrap();
    write_mask(&folder, "masks/train/cat/2.png", 39);
    fs::write(place(&folder, "train/dog/broken.jpg"), "no image").unwrap();
    fs::write(place(&folder, "test/dog/huge.bmp"), bmp_header(20_000, 20_000)).unwrap();
    RgbImage::new(1, 1).save(place(&folder, "test/cat/tiny.png")).unwrap();
    fs::create_dir_all(folder.path().join("train/emu")).unwrap();

    let (code, json) = check_json(folder.path());
    assert_eq!(code, 1);
    let problems: Vec<_> = json["problems"].as_array().unwrap().iter().collect();
    let counts: Vec<_> = problems
        .iter()
        .map(|problem| (problem["kind"].as_str().unwrap(), problem["count"].as_u64().unwrap()))
        .collect();
    let expected = [
        ("unreadable-image", 1),
        ("image-too-large", 1),
        ("image-too-small", 1),
        ("empty-class", 1),
        ("missing-mask", 2),
        ("mask-size", 1),
    ];
    assert_eq!(counts, expected);
    let example = problems[1]["example"].as_str().unwrap();
    assert!(example.contains("huge.bmp: image is 20000×20000"), "{example}");
    assert!(example.contains("--max-megapixels"), "{example}");
}

#[test]
fn every_problem_is_listed_on_demand() {
    let folder = sound();
    for seed in [5, 6] {
        write_image(&folder, &format!("test/cat/{seed}.png"), seed);
    }
    let (code, brief, _) = check(folder.path(), &[]);
    assert_eq!((code, brief.matches("does not exist").count()), (1, 1));
    let (_, full, _) = check(folder.path(), &["--all"]);
    assert_eq!(full.matches("does not exist").count(), 2);
}

#[test]
fn masks_that_only_training_images_lack_are_counted_and_no_problem() {
    let folder = sound();
    fs::remove_dir_all(folder.path().join("masks/train")).unwrap();
    let (code, json) = check_json(folder.path());
    assert_eq!((code, &json["problems"]), (0, &serde_json::json!([])));
    assert_eq!(
        (&json["splits"]["train"]["masks"], &json["splits"]["test"]["masks"]),
        (&0.into(), &1.into())
    );
    let notes = json["notes"].to_string();
    assert!(notes.contains("training images without a mask: 3"), "{notes}");
}

/// Writes a picture with as many colours as a photo has.
fn write_photo(folder: &TempDir, name: &str, seed: u8) {
    let image = RgbImage::from_fn(40, 36, |x, y| {
        Rgb([seed.wrapping_mul(31), (x * 6) as u8, (y * 7) as u8 ^ seed])
    });
    image.save(place(folder, name)).unwrap();
}

#[test]
fn breast_ultrasound_images_are_read_as_shipped() {
    let folder = tempfile::tempdir().unwrap();
    for (seed, (class, masks)) in
        [("benign", 2), ("malignant", 1), ("normal", 1)].into_iter().enumerate()
    {
        write_photo(&folder, &format!("BUSI/{class}/{class} (1).png"), seed as u8);
        for number in 0..masks {
            let end = if number == 0 { String::new() } else { format!("_{number}") };
            let level = u8::from(class != "normal");
            let column = |x: u32| x / 10 == number && level > 0;
            GrayImage::from_fn(40, 36, |x, _| Luma([if column(x) { 255 } else { 0 }]))
                .save(place(&folder, &format!("BUSI/{class}/{class} (1)_mask{end}.png")))
                .unwrap();
        }
    }
    let (code, json) = check_json(folder.path());
    assert_eq!((code, &json["problems"]), (0, &serde_json::json!([])));
    let train = &json["splits"]["train"];
    assert_eq!((&train["images"], &train["masks"]), (&3.into(), &3.into()));
    let notes = json["notes"].to_string();
    assert!(notes.contains("read as masks: 4"), "{notes}");
    assert!(notes.contains("the masks of class `normal` are all empty"), "{notes}");
    // Two columns of ten pixels are the lesion: the masks are united.
    let (_, table, _) = check(folder.path(), &[]);
    assert!(table.contains("foreground  0.0 % to 50.0 % of an image, median 25.0 %"), "{table}");
}

#[test]
fn columns_line_up_under_class_names_of_any_script() {
    let folder = sound();
    for split in ["train", "masks/train"] {
        let split = folder.path().join(split);
        std::fs::rename(split.join("cat"), split.join("猫の写真")).unwrap();
    }
    let (_, table, _) = check(folder.path(), &[]);
    // Each of the four letters is two columns wide, so that the name takes eight.
    for row in
        ["猫の写真       2       0\n", "dog            1       1\n", "images         3       1\n"]
    {
        assert!(table.contains(row), "{row}: {table}");
    }
}

#[test]
fn a_mask_without_an_image_is_asked_about() {
    let folder = sound();
    write_mask(&folder, "train/cat/lost_mask.png", 40);
    let (code, stdout, _) = check(folder.path(), &[]);
    assert_eq!(code, 1);
    assert!(stdout.contains("mask-among-images: 1"), "{stdout}");
    assert!(stdout.contains("there is no image `lost`"), "{stdout}");
    let (code, stdout, _) = check(folder.path(), &["--no-mask-names"]);
    assert_eq!(code, 0, "{stdout}");
    assert!(stdout.contains("images       4       1"), "{stdout}");
}

#[test]
fn a_table_with_other_columns_is_told_which_it_has_and_which_it_needs() {
    let folder = sound();
    let list = folder.path().join("labels.csv");
    fs::write(&list, "picture;diagnosis\ntrain/cat/1.png;cat\n").unwrap();
    let (code, _, stderr) = check(&list, &[]);
    assert_eq!(code, 2);
    for part in ["labels.csv", "`picture`, `diagnosis`", "`image`", "`label`"] {
        assert!(stderr.contains(part), "{part}: {stderr}");
    }
}

#[test]
fn masks_of_one_two_and_three_are_read_as_trimaps() {
    let folder = sound();
    for name in ["train/cat/1", "train/cat/2", "train/dog/3", "test/dog/4"] {
        let level = |x: u32| {
            if x < 10 {
                1
            } else if x < 12 {
                3
            } else {
                2
            }
        };
        GrayImage::from_fn(40, 36, |x, _| Luma([level(x)]))
            .save(place(&folder, &format!("masks/{name}.png")))
            .unwrap();
    }
    let (code, stdout, _) = check(folder.path(), &[]);
    assert_eq!(code, 0, "{stdout}");
    assert!(stdout.contains("`--mask-rule non-zero` says otherwise"), "{stdout}");
    assert!(stdout.contains("median 26.3 %"), "10 of 38 scored columns\n{stdout}");
    let (code, stdout, _) = check(folder.path(), &["--mask-rule", "non-zero"]);
    assert!(code == 1 && stdout.contains("full-mask: 4"), "{stdout}");
}

#[test]
fn shades_of_grey_in_masks_are_told_with_what_they_may_mean() {
    let folder = sound();
    // Shares of votes, from none at the left to all at the right.
    let votes = GrayImage::from_fn(40, 36, |x, _| Luma([(x / 8 * 51 + x / 39 * 51) as u8]));
    votes.save(place(&folder, "masks/test/dog/4.png")).unwrap();
    let (_, stdout, _) = check(folder.path(), &[]);
    assert!(stdout.contains("masks hold shades of grey"), "{stdout}");
    let (_, stdout, _) = check(folder.path(), &["--mask-rule", "votes"]);
    assert!(!stdout.contains("shades of grey"), "{stdout}");
}

#[test]
fn pets_are_read_as_distributed() {
    let folder = tempfile::tempdir().unwrap();
    let names = ["Abyssinian_1", "Abyssinian_2", "great_pyrenees_10", "great_pyrenees_11"];
    for (seed, name) in names.iter().enumerate() {
        write_image(&folder, &format!("images/{name}.jpg"), seed as u8);
        GrayImage::from_fn(40, 36, |x, _| Luma([if x < 10 { 1 } else { 2 }]))
            .save(place(&folder, &format!("annotations/trimaps/{name}.png")))
            .unwrap();
    }
    let list = |name: &str, rows: &str| {
        fs::write(place(&folder, &format!("annotations/{name}")), rows).unwrap();
    };
    list("trainval.txt", "Abyssinian_1 1 1 1\ngreat_pyrenees_10 2 2 1\n");
    list("test.txt", "Abyssinian_2 1 1 1\ngreat_pyrenees_11 2 2 1\n");
    let (code, json) = check_json(folder.path());
    assert_eq!((code, json["layout"].as_str()), (0, Some("oxford-pets")), "{json}");
    let classes = r#"{"Abyssinian":1,"great_pyrenees":1}"#;
    for split in ["train", "test"] {
        assert_eq!(json["splits"][split]["classes"].to_string(), classes);
        assert_eq!(json["splits"][split]["masks"], 2);
    }
}

#[test]
fn a_table_with_every_mistake_in_it_is_still_read() {
    let folder = sound();
    let rows = "\u{FEFF}image,label,mask,split\r\n\
        \"train/cat/1.png\" , cat ,,train\r\n\
        train\\dog\\3.png,dog,,train\r\n\
        train/cat/1.png,cat,,train\r\n\
        train/cat/1.png,dog,,train\r\n\
        train/dog/3.png,dog,,test\r\n\
        gone.png,cat,,train\r\n\
        ../../etc/passwd,cat,,train\r\n\
        train,cat,,train\r\n\
        train/cat/2.png,cat,,someday\r\n\
        test/dog/4.png,emu,,test\r\n";
    fs::write(folder.path().join("labels.csv"), rows).unwrap();
    let (code, json) = check_json(&folder.path().join("labels.csv"));
    let kinds: Vec<_> =
        json["problems"].as_array().unwrap().iter().map(|p| p["kind"].as_str().unwrap()).collect();
    let expected = [
        "bad-row",
        "outside-root",
        "missing-image",
        "not-a-file",
        "conflicting-label",
        "duplicate-row",
        "shared-image",
        "unseen-class",
    ];
    assert_eq!((code, kinds), (1, expected.to_vec()));
    assert_eq!(json["splits"]["train"]["images"], 2);
    let notes = json["notes"].to_string();
    assert!(notes.contains("byte-order mark") && notes.contains("in place of"), "{notes}");
}

#[test]
fn nothing_readable_exits_with_2_and_says_where_it_looked() {
    let folder = tempfile::tempdir().unwrap();
    let (code, stdout, stderr) = check(folder.path(), &["--json"]);
    assert_eq!((code, stdout.as_str()), (2, ""));
    assert!(stderr.starts_with("error: cannot tell how the dataset is laid out"), "{stderr}");
    assert!(stderr.contains(folder.path().to_str().unwrap()), "{stderr}");

    fs::write(place(&folder, "a/1.png"), "no image").unwrap();
    fs::write(place(&folder, "b/2.png"), "no image").unwrap();
    let (code, stdout, stderr) = check(folder.path(), &["--json"]);
    assert_eq!(code, 2, "{stderr}");
    assert!(stdout.contains("unreadable-image"), "{stdout}");
}

#[test]
fn layout_and_mask_rule_can_be_overruled() {
    let folder = sound();
    let (code, _, stderr) = check(folder.path(), &["--layout", "glas"]);
    assert_eq!(code, 2);
    assert!(stderr.contains("this is no `glas` dataset"), "{stderr}");
    // Masks of 0 and 1 hold no majority of votes.
    let (code, stdout, _) = check(folder.path(), &["--mask-rule", "votes"]);
    assert_eq!(code, 1);
    assert!(stdout.contains("empty-mask: 4"), "{stdout}");
}

#[test]
fn the_doctor_knows_version_and_threads() {
    let doctor = |flags: &[&str]| {
        let mut command = Command::cargo_bin("pinpoint").unwrap();
        let output = command.arg("doctor").args(flags).output().unwrap();
        assert!(output.status.success());
        String::from_utf8(output.stdout).unwrap()
    };
    let json: Value = serde_json::from_str(&doctor(&["--json"])).unwrap();
    assert_eq!(json["version"], env!("CARGO_PKG_VERSION"));
    assert!(json["threads"].as_u64().unwrap() >= 1);
    assert_eq!(json["devices"][0], "cpu");
    assert!(doctor(&[]).contains("CPU features"));
}

#[test]
#[cfg(unix)]
fn a_reader_that_leaves_early_is_no_error() {
    use std::process::{Command, Stdio};
    let folder = sound();
    let mut child = Command::new(assert_cmd::cargo::cargo_bin!("pinpoint"))
        .args(["data", "check"])
        .arg(folder.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
#[ignore = "needs the research data; run with PINPOINT_DATA=DIR cargo test --release -- --ignored"]
fn the_published_datasets_are_read_as_they_are() {
    let Some(data) = env::var_os("PINPOINT_DATA").map(PathBuf::from) else {
        println!("skipped: PINPOINT_DATA does not name the folder of the research data");
        return;
    };
    let count = |json: &Value, split: &str, what: &str| json["splits"][split][what].as_u64();

    let (code, glas) = check_json(&data.join("glas"));
    assert_eq!((code, &glas["problems"]), (0, &Value::Array(Vec::new())));
    assert_eq!(glas["splits"]["train"]["classes"].to_string(), r#"{"benign":37,"malignant":48}"#);
    assert_eq!(glas["splits"]["test"]["classes"].to_string(), r#"{"benign":37,"malignant":43}"#);
    for (split, images) in [("train", 85), ("test", 80)] {
        assert_eq!(count(&glas, split, "images"), Some(images));
        assert_eq!(count(&glas, split, "masks"), Some(images));
    }

    let (code, folds) = check_json(&data.join("folds/glas"));
    let sizes = ["train", "valid", "test"].map(|split| count(&folds, split, "images"));
    assert_eq!((code, sizes), (0, [Some(67), Some(18), Some(80)]));

    let (code, cub5) = check_json(&data.join("cub5"));
    let sizes = ["train", "test"].map(|split| count(&cub5, split, "images"));
    let masks: u64 =
        ["train", "test"].iter().filter_map(|split| count(&cub5, split, "masks")).sum();
    assert_eq!((code, sizes, masks), (1, [Some(150), Some(145)], 248));
    assert_eq!(cub5["problems"][0]["kind"], "missing-mask");
    assert_eq!(cub5["problems"][0]["count"], 22, "of the test images");
}

/// The start of a BMP file that claims to be this large.
fn bmp_header(width: u32, height: u32) -> Vec<u8> {
    let mut file = b"BM".to_vec();
    for word in [54, 0, 54, 40, width, height, 1 | 24 << 16, 0, 0, 0, 0, 0, 0] {
        file.extend(u32::to_le_bytes(word));
    }
    file
}
