//! Features of training images that are computed beforehand, by any number of processes.
//!
//! A *shard* is a file with the features of some images. It records the images, settings, weights
//! and version that they were computed from, so that training finds the features of each of its
//! images, or refuses. The trained run is the same to the byte as one that computes the features
//! itself.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use burn::tensor::Device;
use half::{f16, slice::HalfFloatSliceExt as _};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::{eval_images, probe::open_backbone};
use crate::{
    config::{ClassView, Config, ProbeConfig, Stage},
    data::{Sample, loader::EvalImage, preprocess::check_smallest},
    error::{Error, Result},
    method::probe::{ImageCells, ImageFeatures, StageMap, StageMaps, backbone},
    model::{
        params::Array,
        resnet::Resnet,
        weights::{self, Arrays},
    },
    regular,
    run::{WeightFile, content_of, difference, write_atomically_by},
};

/// Ending of the file names of shards.
const ENDING: &str = "features.safetensors";

/// An image whose features are wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FeatureImage {
    /// Its name within the dataset.
    pub id: String,
    /// The image file.
    pub path: PathBuf,
}

/// What features depend on, beside their image.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Origin {
    /// Version of pinpoint that made them.
    version: String,
    /// SHA-256 of the weight file; none if the backbone was drawn.
    weights: Option<String>,
    /// The settings that features depend on; all others have their defaults.
    settings: Box<Config>,
    /// Whether the digest of an image is of all its bytes, or of a sample of them.
    every_byte: bool,
}

/// An image of a shard, by name and content.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct ShardImage {
    id: String,
    /// Length and digest of the file.
    content: (u64, String),
}

/// The note in a shard.
#[derive(Debug, Serialize, Deserialize)]
struct ShardNote {
    origin: Origin,
    images: Vec<ShardImage>,
    grids: Vec<Grids>,
    /// Where the last stage begins in a descriptor.
    last_stage: usize,
}

/// The grid of the kept cells of an image.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Grids {
    /// Rows and columns of the grid that all stages are brought to.
    common: [usize; 2],
    /// Distance between kept cells, in cells of that grid.
    spacing: usize,
}

impl Origin {
    /// For a training with these settings, which keeps at most `cells` cells of an image.
    pub(super) fn new(
        config: &Config,
        weights: Option<&WeightFile>,
        cells: usize,
        every_byte: bool,
    ) -> Self {
        let ProbeConfig { mask_stages, class_stages, views, scales, .. } = config.probe.clone();
        // Choosing the better view needs the same features as using the foreground.
        let class_view = match config.probe.class_view {
            ClassView::Image => ClassView::Image,
            ClassView::Best | ClassView::Foreground => ClassView::Best,
        };
        let probe = ProbeConfig {
            mask_stages,
            class_stages,
            views,
            scales,
            cells,
            class_view,
            ..Default::default()
        };
        let settings = Config {
            method: "probe".to_owned(),
            // Only a backbone with random weights depends on it.
            seed: if weights.is_some() { 0 } else { config.seed },
            model: backbone(&config.model),
            preprocess: config.preprocess.clone(),
            probe,
            ..Config::default()
        };
        Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            weights: weights.map(|file| file.sha256.clone()),
            settings: Box::new(settings),
            every_byte,
        }
    }

    /// How this origin differs from `other`, one difference per line.
    fn difference(&self, other: &Self) -> String {
        let weights = |origin: &Self| origin.weights.clone().unwrap_or("drawn".to_owned());
        let facts = [
            ("version", self.version.clone(), other.version.clone()),
            ("weights", weights(self), weights(other)),
            ("every byte read", self.every_byte.to_string(), other.every_byte.to_string()),
        ];
        let facts = facts.into_iter().filter(|(_, was, is)| was != is);
        let facts = facts.map(|(what, was, is)| format!("  {what} was {was}, is {is}"));
        let settings = difference(&self.settings, &other.settings);
        facts.chain(settings).collect::<Vec<_>>().join("\n")
    }
}

/// Makes shards, one after the other.
#[derive(Debug)]
pub struct FeatureMaker {
    config: Config,
    origin: Origin,
    backbone: Resnet,
    device: Device,
}

/// The outcome of making a shard.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Made {
    /// Images whose features were computed now.
    pub done: usize,
    /// Images whose features were in the shard already.
    pub kept: usize,
    /// Images that have no features, each with the reason.
    pub failed: Vec<(PathBuf, String)>,
}

impl FeatureMaker {
    /// Opens the backbone that a training with these settings would use.
    pub fn open(
        config: &Config,
        weights: Option<&Path>,
        cells: usize,
        every_byte: bool,
        device: &Device,
    ) -> Result<Self> {
        let file = weights.map(WeightFile::of).transpose()?;
        let origin = Origin::new(config, file.as_ref(), cells, every_byte);
        let backbone = open_backbone(config, weights, device, &mut ())?;
        Ok(Self { config: config.clone(), origin, backbone, device: device.clone() })
    }

    /// Writes the shard with this number for these images, unless it is there already; `None` if
    /// `goes_on` ended the work.
    ///
    /// Images that cannot be used are left out, and listed in the outcome.
    pub fn make(
        &self,
        folder: &Path,
        number: usize,
        images: &[FeatureImage],
        mut goes_on: impl FnMut() -> bool,
    ) -> Result<Option<Made>> {
        let path = folder.join(format!("{number:06}.{ENDING}"));
        let mut made = Made::default();
        let (mut known, mut paths) = (Vec::new(), Vec::new());
        for FeatureImage { id, path } in images {
            match content_of(path, self.origin.every_byte) {
                Ok(content) => {
                    known.push(ShardImage { id: id.clone(), content });
                    paths.push(path.clone());
                }
                Err(error) => made.failed.push((path.clone(), error.to_string())),
            }
        }
        if weights::read_note(&path)
            .is_ok_and(|note: ShardNote| note.origin == self.origin && note.images == known)
        {
            return Ok(Some(Made { kept: known.len(), ..made }));
        }
        let mut note = ShardNote {
            origin: self.origin.clone(),
            images: Vec::new(),
            grids: Vec::new(),
            last_stage: 0,
        };
        let mut arrays = Arrays::new();
        let mut read = eval_images(paths.clone(), &self.config, 1);
        for (known, path) in known.into_iter().zip(paths) {
            if !goes_on() {
                return Ok(None);
            }
            let features = read.next().expect("every image is handed over").and_then(|image| {
                let (cells, probe) = (self.origin.settings.probe.cells, &self.config.probe);
                features_of(&self.backbone, image, cells, probe, &self.device, &path)
            });
            match features {
                Ok(ImageFeatures { cells, descriptor, last_stage, class_maps }) => {
                    let index = note.images.len();
                    arrays.insert(name(index, CELLS), map_array(&cells.map));
                    for (stage, map) in &class_maps.stages {
                        arrays.insert(name(index, &of_stage(*stage)), map_array(map));
                    }
                    let shape = vec![descriptor.len()];
                    arrays.insert(name(index, DESCRIPTOR), Array { shape, values: descriptor });
                    note.last_stage = last_stage;
                    note.grids.push(Grids { common: class_maps.grid, spacing: cells.spacing });
                    note.images.push(known);
                }
                Err(error) => made.failed.push((path, error.to_string())),
            }
        }
        made.done = note.images.len();
        fs::create_dir_all(folder).map_err(Error::file("create", folder))?;
        let in_half = |name: &str| !name.ends_with(DESCRIPTOR);
        write_atomically_by(&path, |file| {
            weights::write_some_in_half(file, &arrays, in_half, &note)
        })?;
        Ok(Some(made))
    }
}

/// Passes an image through the backbone, and keeps at most `cells` cells of it.
pub(super) fn features_of(
    backbone: &Resnet,
    image: EvalImage,
    cells: usize,
    config: &ProbeConfig,
    device: &Device,
    path: &Path,
) -> Result<ImageFeatures> {
    let EvalImage { input, geometry, .. } = image;
    check_smallest(path, geometry.original)?;
    let maps = StageMaps::of(backbone, input, geometry.padded.rows_columns(), config, device);
    let features = ImageFeatures::of(&maps, cells, config).ok_or_else(|| {
        let problem = "the features of the image are no numbers, or too large to be kept";
        let remedy = "give weights that were trained on such images, as ImageNet's are";
        Error::image(path, problem, remedy)
    })?;
    maps.reuse();
    Ok(features)
}

const CELLS: &str = "cells";
const DESCRIPTOR: &str = "descriptor";

/// The name of a tensor of an image in its shard.
fn name(index: usize, what: &str) -> String {
    format!("{index}.{what}")
}

/// The name of the map of a stage.
fn of_stage(stage: Stage) -> String {
    format!("layer{}", stage.index() + 1)
}

fn map_array(map: &StageMap<f16>) -> Array {
    let StageMap { grid: [rows, columns], channels, ref values } = *map;
    Array { shape: vec![rows, columns, channels], values: values.to_f32_vec() }
}

/// Features of the images that a training learns from, on disk.
#[derive(Debug)]
pub(super) struct StoredFeatures {
    shards: Vec<(PathBuf, ShardNote)>,
    /// For each image, its shard and its index there.
    places: Vec<(usize, usize)>,
    /// Stages whose maps are kept for the class head.
    class_stages: Vec<Stage>,
}

impl StoredFeatures {
    /// Finds the features of all samples, or fails.
    ///
    /// Shards of other images or of another origin may lie in the folder too.
    pub(super) fn open(folder: &Path, origin: &Origin, samples: &[&Sample]) -> Result<Self> {
        let mut paths = regular::entries(folder).map_err(Error::file("read", folder))?;
        paths.retain(|path| path.to_string_lossy().ends_with(ENDING));
        let (mut shards, mut foreign) = (Vec::new(), None);
        for path in paths {
            let note: ShardNote =
                weights::read_note(&path).map_err(|error| unusable(&path, &error))?;
            if note.origin == *origin {
                shards.push((path, note));
            } else {
                foreign.get_or_insert(note.origin);
            }
        }
        let mut known = BTreeMap::new();
        for (shard, (_, note)) in shards.iter().enumerate() {
            for (place, ShardImage { id, content }) in note.images.iter().enumerate() {
                known.insert((id, content), (shard, place));
            }
        }
        let place = |sample: &&Sample| {
            let content = content_of(&sample.image, origin.every_byte)?;
            Ok(known.get(&(&sample.id, &content)).copied())
        };
        let places: Vec<Option<(usize, usize)>> =
            samples.par_iter().map(place).collect::<Result<_>>()?;
        let missing = places.iter().filter(|place| place.is_none()).count();
        let Some(first) = places.iter().position(Option::is_none) else {
            let class_stages = origin.settings.probe.stages_through_masks();
            let places = places.into_iter().flatten().collect();
            return Ok(Self { shards, places, class_stages });
        };
        let others = foreign.map_or(String::new(), |foreign| {
            format!("; others are there\n{}\n", foreign.difference(origin))
        });
        let problem = format!(
            "{missing} of {} training images, such as `{}`, have no features here that this \
             training could use{others}",
            samples.len(),
            samples[first].id
        );
        let remedy = "make them with the same settings, weights and version: only those that are \
                      missing are computed";
        Err(Error::data(folder, problem, remedy))
    }

    /// Reads the features of a sample, by its index among those that [`Self::open`] was given.
    pub(super) fn read(&self, index: usize) -> Result<ImageFeatures> {
        let (shard, place) = self.places[index];
        let (path, ShardNote { grids, last_stage, .. }) = &self.shards[shard];
        let mut names = vec![name(place, DESCRIPTOR), name(place, CELLS)];
        names.extend(self.class_stages.iter().map(|&stage| name(place, &of_stage(stage))));
        let arrays = weights::read_some(path, &names).map_err(|error| unusable(path, &error))?;
        let mut arrays = arrays.into_iter();
        let mut next = || arrays.next().expect("one array for each name");
        let descriptor = next().values;
        let mut map = || {
            let Array { shape, values } = next();
            let &[rows, columns, channels] = &*shape else {
                return Err(unusable(path, &"cells are not on a grid"));
            };
            let values = values.into_iter().map(f16::from_f32).collect();
            Ok(StageMap { grid: [rows, columns], channels, values })
        };
        let Some(&Grids { common, spacing }) = grids.get(place) else {
            return Err(unusable(path, &"an image has no grid"));
        };
        let cells = ImageCells { map: map()?, spacing };
        let stages = self.class_stages.iter().map(|&stage| Ok((stage, map()?)));
        let class_maps = StageMaps { grid: common, stages: stages.collect::<Result<_>>()? };
        Ok(ImageFeatures { cells, descriptor, last_stage: *last_stage, class_maps })
    }
}

fn unusable(path: &Path, reason: &dyn std::fmt::Display) -> Error {
    // The first line of an error says what is wrong.
    let reason = reason.to_string();
    let reason = reason.lines().next().unwrap_or_default();
    let problem = format!("features that cannot be used ({reason})");
    Error::data(path, problem, "remove the file, and make its features again")
}
