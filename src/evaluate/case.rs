//! What is done with one predicted image, on whichever thread is free.

use std::{
    fmt::Display,
    path::{Path, PathBuf},
};

use image::RgbImage;

use super::EvaluationTask;
use crate::{
    data::{
        Sample,
        mask::{self, Mask},
        npy,
    },
    error::{Error, Result},
    method::{ModelOutput, most_probable},
    metrics::{FeatureGrid, ImageCase, ImageSummary, PooledFeatures, PredictedClass, ScoreMap},
    refine::refine,
};

/// An image as it was scored.
#[derive(Debug)]
pub struct Case {
    /// Its place in the split.
    pub index: usize,
    /// The image itself.
    pub image: RgbImage,
    /// The map that was scored, row by row.
    pub map: Vec<f32>,
    /// Where the object is, if known.
    pub truth: Option<Mask>,
}

/// A predicted image on its way to be scored.
pub(super) struct Job<'a> {
    pub(super) index: usize,
    pub(super) sample: &'a Sample,
    pub(super) image: RgbImage,
    /// What the model gave, or the file that has it.
    pub(super) output: Result<ModelOutput, PathBuf>,
    /// What decidability is told from, if it is asked for.
    pub(super) features: Option<FeatureGrid>,
}

/// Refines the map if asked to, reads the truth, and compares them.
pub(super) fn score(task: &EvaluationTask<'_>, job: Job<'_>) -> Result<(Case, ImageSummary)> {
    let Job { index, sample, image, output, features } = job;
    let (width, height) = image.dimensions();
    let size = (width as usize, height as usize);
    let limit = task.data.max_megapixels;
    let (origin, remedy) = match &output {
        Err(file) => (file.clone(), "save scores in [0, 1], without NaN"),
        Ok(_) => (sample.image.clone(), "train again: the network gives no numbers"),
    };
    let unusable = |error: &dyn Display| {
        // The remedy here knows more than the one that may follow the first line.
        let problem = error.to_string();
        let problem = problem.lines().next().unwrap_or_default();
        Error::image(&origin, format!("unusable score map ({problem})"), remedy)
    };
    let ModelOutput { classifier, localizer, scores: mut map } = match output {
        Ok(output) => output,
        Err(file) => saved(&file, size, limit)?,
    };
    // Checked before it is refined, so that the message names the map's own number.
    ScoreMap::new(size.0, size.1, &map).map_err(|error| unusable(&error))?;
    if let Some(preset) = task.crf {
        map = refine(&image, &map, preset).map_err(|error| unusable(&error))?;
    }
    let truth = mask::read(&sample.truth, task.truth_rule(), (width, height), limit)?;
    let scores = ScoreMap::new(size.0, size.1, &map).map_err(|error| unusable(&error))?;
    let case = ImageCase {
        id: &sample.id,
        label: sample.label,
        classifier: classifier.as_deref().map(predicted_class),
        localizer: localizer.as_deref().map(predicted_class),
        map: Some(scores),
        truth: truth.as_ref(),
        boxes: &sample.truth.boxes,
    };
    let mut summary = ImageSummary::of(&case, &task.protocol).map_err(|error| unusable(&error))?;
    summary.features = features.map(|features| PooledFeatures::of(&scores, &features));
    Ok((Case { index, image, map, truth }, summary))
}

/// The scores that a file holds; they must have the size of their image.
fn saved(file: &Path, size: (usize, usize), max_megapixels: u32) -> Result<ModelOutput> {
    let map = npy::read(file, max_megapixels)?;
    if (map.width, map.height) != size {
        let (npy::Map { width, height, .. }, (columns, rows)) = (map, size);
        return Err(Error::image(
            file,
            format!("score map is {width}×{height} but its image is {columns}×{rows}"),
            "save score maps at the size of their image",
        ));
    }
    Ok(ModelOutput { classifier: None, localizer: None, scores: map.values })
}

fn predicted_class(probabilities: &[f32]) -> PredictedClass {
    let class = most_probable(probabilities);
    PredictedClass { class, probability: probabilities[class] }
}
