//! What `pinpoint predict` leaves on disk, and the line it prints, for each image.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, bail};
use image::RgbImage;
use pinpoint::{
    Prediction,
    data::{npy, preprocess::Size},
    formats::{
        coco::{self, Segmentation},
        geojson::{self, About},
        label_png,
    },
    metrics::{ScoreMap, regions_at},
    report::{
        boxes::ImageRegions,
        overlay,
        picture::{encode_grey_png, encode_png},
    },
    run::write_atomically,
};
use serde::{Serialize, Serializer};

use super::inputs::{Input, Inputs, with_ending};
use crate::ui::pad_right;

/// Formats of a file of boxes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum BoxFormat {
    Json,
    Csv,
    Geojson,
}

/// Forms of a region in a COCO file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum CocoFormat {
    /// Run lengths
    Rle,
    /// Polygons, and run lengths where there are holes
    Polygons,
}

/// What is wanted of every image, beside its mask
#[derive(Debug, Clone, Copy, clap::Args)]
#[command(next_help_heading = "Outputs beside the mask")]
pub(super) struct Wanted {
    /// The image with its mask coloured and outlined, class and probability
    #[arg(long)]
    overlay: bool,

    /// The image with its scores as colours
    #[arg(long)]
    heat_map: bool,

    /// The score map as a NumPy array
    #[arg(long)]
    npy: bool,

    /// The mask's regions with their boxes, areas and scores
    #[arg(long, value_enum, value_name = "FORMAT")]
    boxes: Option<BoxFormat>,

    /// The mask's contours as GeoJSON, which QuPath opens as annotations
    #[arg(long)]
    geojson: bool,

    /// The class of each pixel as an indexed PNG: 0 is background, 1 the first class
    #[arg(long)]
    labels: bool,

    /// The regions of all images in one COCO file, `coco.json`
    #[arg(long, value_enum, value_name = "FORMAT")]
    coco: Option<CocoFormat>,
}

/// One line of what is printed.
#[derive(Debug, Serialize)]
pub(super) struct Line<'a> {
    image: String,
    class: Option<&'a str>,
    probability: Option<f32>,
    probabilities: Option<BTreeMap<&'a str, f32>>,
    width: u32,
    height: u32,
    /// Where the score map was cut.
    threshold: f32,
    /// Share of the pixels that are foreground.
    foreground: f64,
    mask: String,
    /// What was written beside the mask: the flag that asked for it, and where it is.
    #[serde(flatten, serialize_with = "as_map")]
    files: Vec<(&'static str, String)>,
}

fn as_map<S: Serializer>(files: &[(&str, String)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(files.iter().map(|(name, path)| (name, path)))
}

impl Line<'_> {
    /// The line for programs.
    pub(super) fn to_json(&self) -> String {
        serde_json::to_string(self).expect("plain data")
    }

    /// The line for people, in columns; that of classes is as wide as the longest of them.
    pub(super) fn to_text(&self, class_width: usize) -> String {
        let percent = |share: f64| format!("{:5.1} %", 100.0 * share);
        let probability = self.probability.map_or_else(|| "-".to_owned(), |p| percent(p.into()));
        let class = pad_right(self.class.unwrap_or("-"), class_width);
        let foreground = percent(self.foreground);
        format!("{class}  {probability:>7}  {foreground} foreground  {}  {}", self.image, self.mask)
    }
}

/// Writes the outputs of images below one folder.
#[derive(Debug)]
pub(super) struct Writer<'a> {
    out: &'a Path,
    inputs: &'a Inputs,
    classes: &'a [String],
    wanted: Wanted,
    /// The regions of all images so far.
    coco: Option<coco::Document>,
}

impl<'a> Writer<'a> {
    pub(super) fn new(
        out: &'a Path,
        inputs: &'a Inputs,
        classes: &'a [String],
        wanted: Wanted,
    ) -> Self {
        let coco = wanted.coco.map(|format| {
            let segmentation = match format {
                CocoFormat::Rle => Segmentation::RunLengths,
                CocoFormat::Polygons => Segmentation::Polygons,
            };
            coco::Document::new("masks predicted by pinpoint", classes, segmentation)
        });
        Self { out, inputs, classes, wanted, coco }
    }

    /// Writes what is about all images, if there was one.
    pub(super) fn finish(self) -> anyhow::Result<()> {
        let Some(document) = self.coco.as_ref().filter(|document| !document.is_empty()) else {
            return Ok(());
        };
        let path = self.out.join("coco.json");
        self.require_no_image(&path)?;
        Ok(write_atomically(&path, document.to_json().as_bytes())?)
    }

    /// Writes everything wanted of one image; each file appears whole or not at all.
    pub(super) fn write(
        &mut self,
        input: &Input,
        image: &RgbImage,
        prediction: &Prediction,
    ) -> anyhow::Result<Line<'a>> {
        let Prediction { size, class, ref scores, ref mask, threshold, .. } = *prediction;
        let Size { width, height } = size;
        let classes: &'a [String] = self.classes;
        let class_name = class.map(|class| classes[class].as_str());
        let probability = prediction.probability();
        let path = input.path.display().to_string();
        let mut files = Vec::new();
        let mut save = |name, ending, content: Vec<u8>| {
            files.push((name, self.save(input, ending, &content)?));
            anyhow::Ok(())
        };
        let Wanted { overlay, heat_map, npy, boxes, geojson, labels, .. } = self.wanted;
        if overlay {
            let class = class_name.unwrap_or_default();
            let caption = probability.map(|p| format!("{class} {:.0} %", 100.0 * p));
            let picture = overlay::annotated(image, mask, caption.as_deref());
            save("overlay", "_overlay.png", encode_png(&picture))?;
        }
        if heat_map {
            save("heat_map", "_heat.png", encode_png(&overlay::heat_map(image, scores)))?;
        }
        if npy {
            save("npy", ".npy", npy::encode(width as usize, scores))?;
        }
        if let Some(format) = boxes {
            let (regions, size) = (&prediction.regions(), (width, height));
            let found = ImageRegions { image: &path, size, class: class_name, regions };
            let (ending, text) = match format {
                BoxFormat::Json => ("_boxes.json", found.to_json()),
                BoxFormat::Csv => ("_boxes.csv", found.to_csv()),
                BoxFormat::Geojson => ("_boxes.geojson", found.to_geojson()),
            };
            save("boxes", ending, text.into_bytes())?;
        }
        let regions = match geojson || self.coco.is_some() {
            true => {
                let [height, width] = size.rows_columns();
                regions_at(&ScoreMap::new(width, height, scores)?, threshold)
            }
            false => Vec::new(),
        };
        if geojson {
            // The first colour is the background's.
            let colour = class.map(|class| label_png::colour(class + 1));
            let about = About { class: class_name, colour, probability };
            save("geojson", ".geojson", geojson::document(&regions, about).into_bytes())?;
        }
        if labels {
            // Where a method does not classify, the first label is the foreground.
            let picture = label_png::encode(width, mask, class.unwrap_or(0), classes.len());
            save("labels", "_labels.png", picture)?;
        }
        // Last, so that whoever finds a mask finds the rest beside it.
        let grey: Vec<u8> = mask.iter().map(|&inside| 255 * u8::from(inside)).collect();
        let mask = self.save(input, "_mask.png", &encode_grey_png(width, &grey))?;
        if let Some(document) = &mut self.coco {
            document.add(&path, (width, height).into(), class, &regions);
        }
        let named = |found: &Vec<f32>| {
            classes.iter().map(String::as_str).zip(found.iter().copied()).collect()
        };
        Ok(Line {
            image: path,
            class: class_name,
            probability,
            probabilities: prediction.probabilities.as_ref().map(named),
            width,
            height,
            threshold,
            foreground: prediction.foreground(),
            mask,
            files,
        })
    }

    fn require_no_image(&self, path: &Path) -> anyhow::Result<()> {
        if self.inputs.contains(path) {
            bail!(
                "`{}` is one of the images and is not replaced\nhint: give another `--out`",
                path.display()
            );
        }
        Ok(())
    }

    /// Writes one file, and gives its path.
    fn save(&self, input: &Input, ending: &str, content: &[u8]) -> anyhow::Result<String> {
        let path: PathBuf = with_ending(&self.out.join(&input.name), ending);
        self.require_no_image(&path)?;
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)
                .with_context(|| format!("cannot create `{}`", folder.display()))?;
        }
        write_atomically(&path, content)?;
        Ok(path.display().to_string())
    }
}
