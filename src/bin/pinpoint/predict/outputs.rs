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
    report::{
        boxes::Found,
        overlay,
        picture::{encode_grey_png, encode_png},
    },
    run::write_atomically,
};
use serde::Serialize;

use super::inputs::{Input, Inputs, with_ending};

/// Formats of a file of boxes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum BoxFormat {
    Json,
    Csv,
    Geojson,
}

/// What is wanted of every image, beside its mask.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted {
    pub(super) overlay: bool,
    pub(super) heat_map: bool,
    pub(super) npy: bool,
    pub(super) boxes: Option<BoxFormat>,
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
    #[serde(skip_serializing_if = "Option::is_none")]
    overlay: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    heat_map: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    npy: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    boxes: Option<String>,
}

impl Line<'_> {
    /// The line for programs.
    pub(super) fn to_json(&self) -> String {
        serde_json::to_string(self).expect("plain data")
    }

    /// The line for people, in columns.
    pub(super) fn to_text(&self) -> String {
        let percent = |share: f64| format!("{:5.1} %", 100.0 * share);
        let probability = self.probability.map_or_else(|| "-".to_owned(), |p| percent(p.into()));
        let class = self.class.unwrap_or("-");
        let foreground = percent(self.foreground);
        format!(
            "{class:16} {probability:>7}  {foreground} foreground  {}  {}",
            self.image, self.mask
        )
    }
}

/// Writes the outputs of images below one folder.
#[derive(Debug)]
pub(super) struct Writer<'a> {
    pub(super) out: &'a Path,
    pub(super) inputs: &'a Inputs,
    pub(super) classes: &'a [String],
    pub(super) wanted: Wanted,
}

impl<'a> Writer<'a> {
    /// Writes everything wanted of one image; each file appears whole or not at all.
    pub(super) fn write(
        &self,
        input: &Input,
        image: &RgbImage,
        prediction: Prediction,
    ) -> anyhow::Result<Line<'a>> {
        let Size { width, height } = prediction.size;
        let name = |class: usize| self.classes[class].as_str();
        let probabilities = prediction.probabilities.as_ref();
        let mut line = Line {
            image: input.path.display().to_string(),
            class: prediction.class.map(name),
            probability: prediction.probability(),
            probabilities: probabilities.map(|found| {
                self.classes.iter().map(String::as_str).zip(found.iter().copied()).collect()
            }),
            width,
            height,
            threshold: prediction.threshold,
            foreground: prediction.foreground(),
            mask: String::new(),
            overlay: None,
            heat_map: None,
            npy: None,
            boxes: None,
        };
        self.write_scores(input, image, &prediction, &mut line)?;
        // Last, so that whoever finds a mask finds the rest beside it.
        let Prediction { mask, .. } = prediction;
        let mask: Vec<u8> = mask.into_iter().map(|inside| 255 * u8::from(inside)).collect();
        line.mask = self.save(input, "_mask.png", || encode_grey_png(width, &mask))?;
        Ok(line)
    }

    /// Writes what is made of the scores beside the mask.
    fn write_scores(
        &self,
        input: &Input,
        image: &RgbImage,
        prediction: &Prediction,
        line: &mut Line<'_>,
    ) -> anyhow::Result<()> {
        let Wanted { overlay, heat_map, npy, boxes } = self.wanted;
        let Prediction { scores, mask, .. } = prediction;
        if overlay {
            let picture = || {
                let share =
                    |p: f32| format!("{} {:.0} %", line.class.unwrap_or_default(), 100.0 * p);
                let caption = line.probability.map(share);
                encode_png(&overlay::annotated(image, mask, caption.as_deref()))
            };
            line.overlay = Some(self.save(input, "_overlay.png", picture)?);
        }
        if heat_map {
            let picture = || encode_png(&overlay::heat_map(image, scores));
            line.heat_map = Some(self.save(input, "_heat.png", picture)?);
        }
        if npy {
            let array = || npy::encode(image.width() as usize, scores);
            line.npy = Some(self.save(input, ".npy", array)?);
        }
        if let Some(format) = boxes {
            let regions = prediction.regions();
            let size = (line.width, line.height);
            let found = Found { image: &line.image, size, class: line.class, regions: &regions };
            let (ending, text) = match format {
                BoxFormat::Json => ("_boxes.json", found.to_json()),
                BoxFormat::Csv => ("_boxes.csv", found.to_csv()),
                BoxFormat::Geojson => ("_boxes.geojson", found.to_geojson()),
            };
            line.boxes = Some(self.save(input, ending, || text.into_bytes())?);
        }
        Ok(())
    }

    /// Writes one file, and gives its path.
    fn save(
        &self,
        input: &Input,
        ending: &str,
        content: impl FnOnce() -> Vec<u8>,
    ) -> anyhow::Result<String> {
        let path: PathBuf = with_ending(&self.out.join(&input.name), ending);
        if self.inputs.contains(&path) {
            bail!(
                "`{}` is one of the images and is not replaced\nhint: give another `--out`",
                path.display()
            );
        }
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)
                .with_context(|| format!("cannot create `{}`", folder.display()))?;
        }
        write_atomically(&path, &content())?;
        Ok(path.display().to_string())
    }
}
