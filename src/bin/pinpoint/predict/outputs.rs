//! What `pinpoint predict` leaves on disk, and the line it prints, for each image.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, bail};
use image::RgbImage;
use pinpoint::{
    data::npy,
    metrics::{Component, ScoreMap, Threshold, boxes_at},
    predict::{Answer, most_probable},
    refine::{Preset, refine},
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
    pub(super) threshold: Threshold,
    pub(super) crf: Option<Preset>,
    pub(super) overlay: bool,
    pub(super) heat_map: bool,
    pub(super) npy: bool,
    pub(super) boxes: Option<BoxFormat>,
}

/// One line of the answer.
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
        answer: Answer,
    ) -> anyhow::Result<Line<'a>> {
        let Answer { classifier, localizer: _, mut map } = answer;
        let (width, height) = image.dimensions();
        // What CRF and threshold take for granted, so that they need not be asked.
        ScoreMap::new(width as usize, height as usize, &map)
            .context("the network gives no usable scores; train again")?;
        if let Some(preset) = self.wanted.crf {
            map = refine(image, &map, preset)?;
        }
        let threshold = self.wanted.threshold.at(&map);
        let class = classifier.as_deref().map(most_probable);
        let probability = classifier.as_ref().zip(class).map(|(found, class)| found[class]);
        let named = |found: Vec<f32>| self.classes.iter().map(String::as_str).zip(found).collect();

        let mut line = Line {
            image: input.path.display().to_string(),
            class: class.map(|class| self.classes[class].as_str()),
            probability,
            probabilities: classifier.map(named),
            width,
            height,
            threshold,
            foreground: 0.0,
            mask: String::new(),
            overlay: None,
            heat_map: None,
            npy: None,
            boxes: None,
        };
        self.write_maps(input, image, &map, &mut line)?;
        // Last, so that whoever finds a mask finds the rest beside it.
        let mask: Vec<u8> = map.iter().map(|&score| 255 * u8::from(score >= threshold)).collect();
        line.foreground =
            mask.iter().filter(|&&pixel| pixel > 0).count() as f64 / mask.len() as f64;
        drop(map);
        line.mask = self.save(input, "_mask.png", || encode_grey_png(width, &mask))?;
        Ok(line)
    }

    /// Writes what is made of the score map beside the mask.
    fn write_maps(
        &self,
        input: &Input,
        image: &RgbImage,
        map: &[f32],
        line: &mut Line<'_>,
    ) -> anyhow::Result<()> {
        let Wanted { overlay, heat_map, npy, boxes, .. } = self.wanted;
        if overlay {
            let picture = || {
                let inside: Vec<bool> = map.iter().map(|&score| score >= line.threshold).collect();
                let share =
                    |p: f32| format!("{} {:.0} %", line.class.unwrap_or_default(), 100.0 * p);
                let caption = line.probability.map(share);
                encode_png(&overlay::annotated(image, &inside, caption.as_deref()))
            };
            line.overlay = Some(self.save(input, "_overlay.png", picture)?);
        }
        if heat_map {
            let picture = || encode_png(&overlay::heat_map(image, map));
            line.heat_map = Some(self.save(input, "_heat.png", picture)?);
        }
        if npy {
            line.npy = Some(self.save(input, ".npy", || npy::encode(image.width() as usize, map))?);
        }
        if let Some(format) = boxes {
            line.boxes = Some(self.write_boxes(input, map, line, format)?);
        }
        Ok(())
    }

    fn write_boxes(
        &self,
        input: &Input,
        map: &[f32],
        line: &Line<'_>,
        format: BoxFormat,
    ) -> anyhow::Result<String> {
        let map = ScoreMap::new(line.width as usize, line.height as usize, map)?;
        let regions: Vec<Component> = boxes_at(&map, line.threshold);
        let size = (line.width, line.height);
        let found = Found { image: &line.image, size, class: line.class, regions: &regions };
        let (ending, text) = match format {
            BoxFormat::Json => ("_boxes.json", found.to_json()),
            BoxFormat::Csv => ("_boxes.csv", found.to_csv()),
            BoxFormat::Geojson => ("_boxes.geojson", found.to_geojson()),
        };
        self.save(input, ending, || text.into_bytes())
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
