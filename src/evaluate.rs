//! A method's answers on a split, scored against the truth.

use crate::{
    config::DataConfig,
    data::{
        Dataset, Split,
        loader::{EvalImage, EvalLoader, EvalSettings},
        mask,
        preprocess::Size,
    },
    error::{Error, Result},
    metrics::{Evaluation, Evaluator, ImageCase, ImageSummary, Protocol, ScoreMap, Verdict},
    predict::{Answer, Method, most_probable},
};

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
        let answer = method.answer(&image, None);
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
            classifier: answer.classifier.as_deref().map(verdict),
            localizer: answer.localizer.as_deref().map(verdict),
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

fn verdict(probabilities: &[f32]) -> Verdict {
    let class = most_probable(probabilities);
    Verdict { class, probability: probabilities[class] }
}
