//! A method's answers on a split, scored against the truth.

use burn::{module::Module as _, tensor::Device};

use crate::{
    config::{Config, DataConfig, PreprocessConfig},
    data::{
        Dataset, Split,
        loader::{EvalImage, EvalLoader, EvalSettings},
        mask,
        preprocess::Size,
    },
    error::{Error, Result},
    metrics::{Evaluation, Evaluator, ImageCase, ImageSummary, Protocol, ScoreMap, Verdict},
    model::{Model, weights},
    predict::{Examination, examine, most_probable},
    train::run::{RunDir, WeightsNote},
};

/// What a method says about one image, at the image's own resolution.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// What the classifier said; none for a method without one.
    pub classifier: Option<Verdict>,
    /// What the localizer said; none for a method without one.
    pub localizer: Option<Verdict>,
    /// Soft mask, row by row, 1 is foreground.
    pub map: Vec<f32>,
}

/// Something that says where the object is.
pub trait Method {
    /// How images are prepared for it.
    fn preprocess(&self) -> &PreprocessConfig;

    /// Its answer for one image.
    fn answer(&self, image: &EvalImage) -> Answer;
}

/// A trained network.
#[derive(Debug)]
pub struct Trained {
    classes: Vec<String>,
    config: Config,
    model: Model,
    device: Device,
}

/// The trivial answer: everything is foreground.
#[derive(Debug, Default)]
pub struct AllOnes {
    preprocess: PreprocessConfig,
}

impl Trained {
    /// Opens the best weights of a run.
    pub fn open(run: &RunDir, device: &Device) -> Result<Self> {
        let config = run.config()?;
        let path = run.best();
        let (arrays, note) = weights::read_with_note::<WeightsNote>(&path)?;
        let model = Model::new(&config, note.classes.len(), device);
        let (model, _) = weights::load(model, &path, &arrays)?;
        Ok(Self { classes: note.classes, config, model: model.valid(), device: device.clone() })
    }

    /// Refuses a dataset whose classes are not those the network was trained to tell apart.
    pub fn require_classes(&self, dataset: &Dataset) -> Result<()> {
        if self.classes == dataset.classes {
            return Ok(());
        }
        Err(Error::Data {
            path: dataset.root.clone(),
            problem: format!(
                "the dataset's classes ({}) are not those of the run ({})",
                dataset.classes.join(", "),
                self.classes.join(", ")
            ),
            remedy: "score on data with the same class names, in the same order".to_owned(),
        })
    }
}

impl Method for Trained {
    fn preprocess(&self) -> &PreprocessConfig {
        &self.config.preprocess
    }

    fn answer(&self, image: &EvalImage) -> Answer {
        let Size { width, height } = image.geometry.padded;
        let size = [height as usize, width as usize];
        let Examination { classifier, localizer, mask } =
            examine(&self.model, &self.config, image.input.clone(), size, &self.device);
        let verdict = |probabilities: &[f32]| {
            let class = most_probable(probabilities);
            Some(Verdict { class, probability: probabilities[class] })
        };
        Answer {
            classifier: verdict(&classifier),
            localizer: verdict(&localizer),
            map: image.geometry.restore(&mask),
        }
    }
}

impl Method for AllOnes {
    fn preprocess(&self) -> &PreprocessConfig {
        &self.preprocess
    }

    fn answer(&self, image: &EvalImage) -> Answer {
        Answer { classifier: None, localizer: None, map: vec![1.0; image.geometry.original.area()] }
    }
}

/// Scores a method on a split; `see` is shown every image with its answer, in order.
pub fn evaluate(
    method: &dyn Method,
    dataset: &Dataset,
    split: Split,
    data: &DataConfig,
    protocol: Protocol,
    workers: usize,
    mut see: impl FnMut(&EvalImage, &Answer),
) -> Result<Evaluation> {
    let samples = dataset.split(split);
    let paths = samples.iter().map(|sample| sample.image.clone()).collect();
    let settings = EvalSettings { workers, max_megapixels: data.max_megapixels };
    let images = EvalLoader::new(paths, method.preprocess().clone(), settings);
    let mut evaluator = Evaluator::new(&dataset.classes, protocol);
    for (image, sample) in images.images().zip(samples) {
        let image = image?;
        let answer = method.answer(&image);
        let Size { width, height } = image.geometry.original;
        let rule = data.mask_rule.unwrap_or(dataset.mask_rule);
        let truth = mask::read(&sample.truth, rule, (width, height), data.max_megapixels)?;
        let broken = |error: &dyn std::fmt::Display| Error::Image {
            path: sample.image.clone(),
            problem: format!("unusable score map ({error})"),
            remedy: "train again: the network gives no numbers".to_owned(),
        };
        let map = ScoreMap::new(width as usize, height as usize, &answer.map);
        let case = ImageCase {
            id: &sample.id,
            label: sample.label,
            classifier: answer.classifier,
            localizer: answer.localizer,
            map: Some(map.map_err(|error| broken(&error))?),
            truth: truth.as_ref(),
            boxes: &sample.truth.boxes,
        };
        let summary = ImageSummary::of(&case, &protocol).map_err(|error| broken(&error))?;
        see(&image, &answer);
        evaluator.accumulate(summary);
    }
    Ok(evaluator.compute())
}
