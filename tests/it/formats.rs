//! Predictions in the formats of other programs: each gives the mask back, pixel by pixel.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use assert_cmd::cargo::CommandCargoExt as _;
use image::{Rgb, RgbImage};
use serde_json::Value;
use tempfile::TempDir;

use crate::drawn_run;

const SIZES: [(u32, u32); 2] = [(90, 70), (64, 101)];

/// A folder with a run whose weights were drawn, and two images.
struct Workshop {
    folder: TempDir,
}

impl Workshop {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        drawn_run::write(folder.path(), &["benign", "malignant", "unclear"]);
        for ((width, height), name) in SIZES.into_iter().zip(["a.png", "b.png"]) {
            let picture = RgbImage::from_fn(width, height, |x, y| {
                let wave = (f64::from(x) / 7.0).sin() + (f64::from(y) / 5.0).cos();
                let bright = (127.0 + 60.0 * wave) as u8;
                Rgb([bright, 255 - bright, ((x * y) % 251) as u8])
            });
            picture.save(folder.path().join(name)).unwrap();
        }
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Predicts both images, and gives one line for each.
    fn predict(&self, more: &[&str]) -> Vec<Value> {
        let mut command = Command::cargo_bin("pinpoint").unwrap();
        command.current_dir(self.folder.path());
        let output = command.args(["predict", "run", "a.png", "b.png", "--json", "--out", "out"]);
        // Cut where a map has many regions, with holes in them.
        let output = output.args(["--threshold", "percentile:25"]).args(more).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let lines = String::from_utf8(output.stdout).unwrap();
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    fn json(&self, name: &str) -> Value {
        serde_json::from_slice(&fs::read(self.path(name)).unwrap()).unwrap()
    }

    fn mask(&self, name: &str) -> Vec<bool> {
        let mask = image::open(self.path(name)).unwrap().into_luma8();
        mask.pixels().map(|pixel| pixel.0[0] > 0).collect()
    }
}

/// Turns the pixels within a ring round, by the rule of even and odd.
fn fill(ring: &[[u64; 2]], width: u32, mask: &mut [bool]) {
    for (a, b) in ring.iter().zip(ring.iter().cycle().skip(1)) {
        for y in a[1].min(b[1])..a[1].max(b[1]) {
            (a[0]..width.into()).for_each(|x| mask[(y * u64::from(width) + x) as usize] ^= true);
        }
    }
}

fn corners(ring: &Value) -> Vec<[u64; 2]> {
    let corner = |corner: &Value| [0, 1].map(|axis| corner[axis].as_u64().unwrap());
    ring.as_array().unwrap().iter().map(corner).collect()
}

#[test]
fn geojson_has_the_contours_of_the_mask_with_their_holes() {
    let workshop = Workshop::new();
    let lines = workshop.predict(&["--geojson"]);
    let mut rings_of_holes = 0;
    for (line, (width, height)) in lines.iter().zip(SIZES) {
        let document = workshop.json(line["geojson"].as_str().unwrap());
        assert_eq!(document["type"], "FeatureCollection");
        let mut found = vec![false; (width * height) as usize];
        for feature in document["features"].as_array().unwrap() {
            let geometry = &feature["geometry"];
            let polygons = match geometry["type"].as_str().unwrap() {
                "Polygon" => vec![geometry["coordinates"].clone()],
                "MultiPolygon" => geometry["coordinates"].as_array().unwrap().clone(),
                other => panic!("{other}"),
            };
            let mut region = vec![false; found.len()];
            for ring in polygons.iter().flat_map(|polygon| polygon.as_array().unwrap()) {
                let ring = corners(ring);
                assert_eq!(ring.first(), ring.last(), "rings are closed");
                fill(&ring[1..], width, &mut region);
            }
            rings_of_holes +=
                polygons.iter().map(|rings| rings.as_array().unwrap().len() - 1).sum::<usize>();
            let properties = &feature["properties"];
            let area = region.iter().filter(|&&inside| inside).count() as u64;
            assert_eq!(properties["measurements"]["Area px^2"].as_u64(), Some(area));
            assert_eq!(properties["objectType"], "annotation");
            assert_eq!(properties["classification"]["name"], line["class"]);
            for (found, inside) in found.iter_mut().zip(region) {
                assert!(!(*found && inside), "regions overlap");
                *found |= inside;
            }
        }
        assert!(found == workshop.mask(line["mask"].as_str().unwrap()));
    }
    assert!(rings_of_holes > 0, "the test wants holes");
}

/// The run lengths of COCO's compressed form.
fn decompressed(text: &str) -> Vec<i64> {
    let mut counts: Vec<i64> = Vec::new();
    let mut letters = text.bytes().map(|letter| i64::from(letter) - 48);
    while let Some(mut letter) = letters.next() {
        let (mut value, mut shift) = (0, 0);
        loop {
            value |= (letter & 0x1f) << shift;
            shift += 5;
            if letter & 0x20 == 0 {
                break;
            }
            letter = letters.next().unwrap();
        }
        if letter & 0x10 != 0 {
            value |= -1 << shift;
        }
        let before = if counts.len() > 2 { counts[counts.len() - 2] } else { 0 };
        counts.push(value + before);
    }
    counts
}

#[test]
fn coco_has_all_images_in_one_file_as_run_lengths_or_polygons() {
    let workshop = Workshop::new();
    for format in ["rle", "polygons"] {
        let lines = workshop.predict(&["--coco", format]);
        let document = workshop.json("out/coco.json");
        let names: Vec<&Value> =
            document["images"].as_array().unwrap().iter().map(|i| &i["file_name"]).collect();
        assert_eq!(names, ["a.png", "b.png"]);
        assert_eq!(document["categories"][1]["name"], "malignant");
        let annotations = document["annotations"].as_array().unwrap();
        let of_kind = |is: fn(&Value) -> bool| {
            annotations.iter().filter(|annotation| is(&annotation["segmentation"])).count()
        };
        let (polygons, runs) = (of_kind(Value::is_array), of_kind(Value::is_object));
        assert!(runs > 0 && (polygons > 0) == (format == "polygons"), "{polygons}, {runs}");
        for (index, (line, (width, height))) in lines.iter().zip(SIZES).enumerate() {
            let mut found = vec![false; (width * height) as usize];
            let image = &document["images"][index];
            assert_eq!((&image["width"], &image["height"]), (&width.into(), &height.into()));
            for annotation in annotations.iter().filter(|a| a["image_id"] == image["id"]) {
                let before = found.iter().filter(|&&inside| inside).count() as u64;
                let category = annotation["category_id"].as_u64().unwrap() as usize - 1;
                assert_eq!(document["categories"][category]["name"], line["class"]);
                let segmentation = &annotation["segmentation"];
                if let Some(polygons) = segmentation.as_array() {
                    for polygon in polygons {
                        let flat: Vec<u64> = serde_json::from_value(polygon.clone()).unwrap();
                        let (corners, _) = flat.as_chunks::<2>();
                        fill(corners, width, &mut found);
                    }
                } else {
                    assert_eq!(segmentation["size"], serde_json::json!([height, width]));
                    let mut place = 0;
                    let counts = decompressed(segmentation["counts"].as_str().unwrap());
                    for (index, count) in counts.into_iter().enumerate() {
                        for at in place..place + count as usize {
                            let (x, y) = (at / height as usize, at % height as usize);
                            found[y * width as usize + x] |= index % 2 == 1;
                        }
                        place += count as usize;
                    }
                    assert_eq!(place, found.len());
                }
                let after = found.iter().filter(|&&inside| inside).count() as u64;
                assert_eq!(annotation["area"].as_u64(), Some(after - before));
            }
            assert!(found == workshop.mask(line["mask"].as_str().unwrap()), "{format}");
        }
    }
}

#[test]
fn label_pictures_have_the_class_of_each_pixel() {
    let workshop = Workshop::new();
    for line in workshop.predict(&["--labels"]) {
        let file = fs::File::open(workshop.path(line["labels"].as_str().unwrap())).unwrap();
        let mut reader = png::Decoder::new(std::io::BufReader::new(file)).read_info().unwrap();
        assert_eq!(reader.info().color_type, png::ColorType::Indexed);
        let palette = reader.info().palette.as_ref().unwrap().to_vec();
        assert_eq!(palette.len(), 3 * 4, "background and three classes");
        let mut labels = vec![0; reader.output_buffer_size().unwrap()];
        reader.next_frame(&mut labels).unwrap();
        let classes = ["benign", "malignant", "unclear"];
        let class = classes.iter().position(|name| line["class"] == *name).unwrap() as u8;
        let mask = workshop.mask(line["mask"].as_str().unwrap());
        let expected: Vec<u8> =
            mask.iter().map(|&inside| if inside { class + 1 } else { 0 }).collect();
        assert!(labels == expected);
    }
}

#[test]
fn an_image_that_fails_is_not_in_the_file_and_an_image_is_never_replaced() {
    let workshop = Workshop::new();
    fs::write(workshop.path("broken.png"), "no picture").unwrap();
    let predict = |images: &[&str], out: &str| {
        let mut command = Command::cargo_bin("pinpoint").unwrap();
        command.current_dir(workshop.folder.path()).args(["predict", "run"]).args(images);
        command.args(["--coco", "rle", "--out", out]).output().unwrap()
    };
    let output = predict(&["broken.png", "b.png"], "out");
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let document = workshop.json("out/coco.json");
    assert_eq!(document["images"].as_array().unwrap().len(), 1);
    assert_eq!(document["images"][0]["file_name"], "b.png");
    // Nothing was done, so there is no file that says so.
    assert_eq!(predict(&["broken.png"], "none").status.code(), Some(2));
    assert!(!Path::new(&workshop.path("none/coco.json")).exists());
}
