//! Scoring of one predicted image, on any thread.

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

/// A scored image.
#[derive(Debug)]
pub struct Case {
    /// Its index in the split.
    pub index: usize,
    /// The image itself.
    pub image: RgbImage,
    /// The map that was scored, row by row.
    pub map: Vec<f32>,
    /// The ground truth, if the image has any.
    pub truth: Option<Mask>,
}

/// A predicted image that is to be scored.
pub(super) struct Job<'a> {
    pub(super) index: usize,
    pub(super) sample: &'a Sample,
    pub(super) image: RgbImage,
    /// The output of the model, or else the file of the saved score map.
    pub(super) output: Result<ModelOutput, PathBuf>,
    /// Features to compute decidability from, if it is asked for.
    pub(super) features: Option<FeatureGrid>,
}

/// Refines the map if asked to, reads the ground truth, and scores the map against it.
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
        // The first line only: the remedy that may follow it is less specific than this one.
        let problem = error.to_string();
        let problem = problem.lines().next().unwrap_or_default();
        Error::image(&origin, format!("unusable score map ({problem})"), remedy)
    };
    let ModelOutput { classifier, localizer, scores: mut map } = match output {
        Ok(output) => output,
        Err(file) => saved(&file, size, limit)?,
    };
    // Checked before refinement, so that the message has the value in the file.
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

/// The score map in a file, which must have the size of its image.
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
