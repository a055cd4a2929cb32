//! What is done with one predicted image, on whichever thread is free.

use std::path::{Path, PathBuf};

use image::RgbImage;

use crate::{
    data::{
        MaskRule, Sample,
        mask::{self, Mask},
        npy,
    },
    error::{Error, Result},
    method::{ModelOutput, most_probable},
    metrics::{FeatureGrid, ImageCase, ImageSummary, PredictedClass, Protocol, ScoreMap, Sides},
    refine::{Preset, refine},
};

/// An image as it was scored.
#[derive(Debug, Clone, Copy)]
pub struct Case<'a> {
    /// Its place in the split.
    pub index: usize,
    /// Which sample it is.
    pub sample: &'a Sample,
    /// The image itself.
    pub image: &'a RgbImage,
    /// The map that was scored, row by row.
    pub map: &'a [f32],
    /// Where the object is, if known.
    pub truth: Option<&'a Mask>,
    /// What the image contributes to the scores.
    pub summary: &'a ImageSummary,
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

/// A scored image.
pub(super) struct Scored<'a> {
    index: usize,
    sample: &'a Sample,
    image: RgbImage,
    map: Vec<f32>,
    truth: Option<Mask>,
    summary: ImageSummary,
}

impl Scored<'_> {
    pub(super) fn case(&self) -> Case<'_> {
        let Self { index, sample, image, map, truth, summary } = self;
        Case { index: *index, sample, image, map, truth: truth.as_ref(), summary }
    }

    pub(super) fn into_summary(self) -> ImageSummary {
        self.summary
    }
}

/// How predictions are scored: all of a task that any thread may know.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scorer {
    pub(super) truth_rule: MaskRule,
    pub(super) max_megapixels: u32,
    pub(super) crf: Option<Preset>,
    pub(super) protocol: Protocol,
}

/// Refines the map if asked to, reads the truth, and compares them.
pub(super) fn score<'a>(scorer: &Scorer, job: Job<'a>) -> Result<Scored<'a>> {
    let Job { index, sample, image, output, features } = job;
    let (width, height) = image.dimensions();
    let limit = scorer.max_megapixels;
    let origin = Origin::of(sample, output.as_ref().err());
    let ModelOutput { classifier, localizer, scores: mut map } = match output {
        Ok(output) => output,
        Err(file) => saved(&file, (width as usize, height as usize), limit)?,
    };
    // Checked before it is refined, so that the message names the map's own number.
    ScoreMap::new(width as usize, height as usize, &map).map_err(|error| origin.error(&error))?;
    if let Some(preset) = scorer.crf {
        map = refine(&image, &map, preset).map_err(|error| origin.error(&error))?;
    }
    let truth = mask::read(&sample.truth, scorer.truth_rule, (width, height), limit)?;
    let scores = ScoreMap::new(width as usize, height as usize, &map);
    let case = ImageCase {
        id: &sample.id,
        label: sample.label,
        classifier: classifier.as_deref().map(predicted_class),
        localizer: localizer.as_deref().map(predicted_class),
        map: Some(scores.map_err(|error| origin.error(&error))?),
        truth: truth.as_ref(),
        boxes: &sample.truth.boxes,
    };
    let mut summary =
        ImageSummary::of(&case, &scorer.protocol).map_err(|error| origin.error(&error))?;
    if let (Some(map), Some(features)) = (&case.map, &features) {
        summary = summary.with_sides(Sides::pool(map, features));
    }
    Ok(Scored { index, sample, image, map, truth, summary })
}

/// The scores that a file holds; they must have the size of their image.
fn saved(file: &Path, size: (usize, usize), max_megapixels: u32) -> Result<ModelOutput> {
    let map = npy::read(file, max_megapixels)?;
    if (map.width, map.height) != size {
        return Err(Error::Image {
            path: file.to_owned(),
            problem: format!(
                "score map is {}×{} but its image is {}×{}",
                map.width, map.height, size.0, size.1
            ),
            remedy: "save score maps at the size of their image".to_owned(),
        });
    }
    Ok(ModelOutput { classifier: None, localizer: None, scores: map.values })
}

fn predicted_class(probabilities: &[f32]) -> PredictedClass {
    let class = most_probable(probabilities);
    PredictedClass { class, probability: probabilities[class] }
}

/// Where a map comes from, to be named if it cannot be used.
struct Origin {
    path: PathBuf,
    remedy: &'static str,
}

impl Origin {
    fn of(sample: &Sample, saved: Option<&PathBuf>) -> Self {
        match saved {
            Some(file) => Self { path: file.clone(), remedy: "save scores in [0, 1], without NaN" },
            None => Self {
                path: sample.image.clone(),
                remedy: "train again: the network gives no numbers",
            },
        }
    }

    fn error(&self, error: &dyn std::fmt::Display) -> Error {
        // The remedy here knows more than the one that may follow the first line.
        let problem = error.to_string();
        let problem = problem.lines().next().unwrap_or_default();
        Error::Image {
            path: self.path.clone(),
            problem: format!("unusable score map ({problem})"),
            remedy: self.remedy.to_owned(),
        }
    }
}
