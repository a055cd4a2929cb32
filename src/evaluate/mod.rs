//! Evaluation: the images of a split are predicted and scored against the ground truth.
//!
//! ```text
//! decode ahead ─▶ predict ─▶ refine, read truth, score ─▶ accumulate ─▶ Evaluation
//!   threads     this thread          threads              in order
//! ```
//!
//! Images are scored while the network is run on the next ones. The number of images in memory is
//! bounded, whatever the length of the split.

mod case;
mod features;
mod maps;
mod problems;

use std::path::{Path, PathBuf};

pub use case::Case;
use case::{Job, score};
pub use features::Features;
pub use maps::map_names;
use problems::Problems;

use crate::{
    config::{DataConfig, PreprocessConfig},
    data::{
        Dataset, MaskRule, Sample, Split,
        loader::{EvalImage, EvalImages},
    },
    error::{Error, Result},
    metrics::{Bootstrap, Evaluation, Evaluator, Protocol, Threshold, ThresholdRule},
    ordered::OrderedJobs,
    predict::Predictor,
    refine::Preset,
};

/// Where score maps come from.
#[derive(Clone, Copy)]
pub enum MapSource<'a> {
    /// A model that is run on the images.
    Predictor(&'a Predictor),
    /// A folder of `.npy` files named after the samples, see [`map_names`].
    Maps(&'a Path),
}

impl<'a> MapSource<'a> {
    /// The model; `None` for saved maps.
    pub fn predictor(self) -> Option<&'a Predictor> {
        match self {
            Self::Predictor(predictor) => Some(predictor),
            Self::Maps(_) => None,
        }
    }
}

/// What an evaluation scores, and how.
#[derive(Clone, Copy)]
pub struct EvaluationTask<'a> {
    /// The model or the saved maps.
    pub source: MapSource<'a>,
    /// The dataset to score on.
    pub dataset: &'a Dataset,
    /// The split of it.
    pub split: Split,
    /// How the dataset is read.
    pub data: &'a DataConfig,
    /// How predictions are scored.
    pub protocol: Protocol,
    /// The CRF that refines maps before they are scored, if any.
    pub crf: Option<Preset>,
    /// Whether the method is given the true class, as in the paper for its baselines.
    pub oracle_label: bool,
    /// The backbone whose features decidability is computed from, if it is asked for.
    pub features: Option<&'a Features>,
    /// Number of threads that decode, and of threads that score.
    pub workers: usize,
}

/// Scores a method on a split.
///
/// `inspect` is called with every scored image, on any thread; its result is handed to `keep`, in
/// the order of the split. The outcome is the same for any number of workers.
pub fn evaluate<N: Send>(
    task: &EvaluationTask<'_>,
    inspect: impl Fn(&Case) -> Result<N> + Sync,
    mut keep: impl FnMut(N) -> Result<()>,
) -> Result<Evaluation> {
    let samples = task.dataset.split(task.split);
    // The saved map of each sample; empty if a model predicts.
    let maps = match task.source {
        MapSource::Predictor(_) => Vec::new(),
        MapSource::Maps(folder) => maps::find(folder, samples)?,
    };
    let paths = samples.iter().map(|sample| sample.image.clone()).collect();
    let limit = task.data.max_megapixels;
    let images = EvalImages::new(paths, task.preprocess(), limit, task.workers);
    // An image that could not be read keeps its place in the order.
    let work = |job: Result<Job<'_>>| {
        let (case, summary) = score(task, job?)?;
        Ok((summary, inspect(&case)?))
    };
    let mut evaluator = Evaluator::new(&task.dataset.classes, task.protocol);
    let mut problems = Problems::default();
    let workers = task.workers.max(1);
    OrderedJobs::scoped(workers, under_way(workers), &work, |scoring| {
        let mut take = |outcome: Result<_>, problems: &mut Problems| {
            match outcome {
                Ok((summary, seen)) => {
                    evaluator.accumulate(summary);
                    keep(seen)?;
                }
                Err(error) => problems.note(error),
            }
            Ok(())
        };
        for (index, image) in images.enumerate() {
            let sample = &samples[index];
            scoring.push(image.map(|image| task.job(index, image, sample, maps.get(index))));
            while let Some(outcome) = scoring.ready() {
                take(outcome, &mut problems)?;
            }
            if problems.are_enough() {
                break;
            }
        }
        scoring.try_for_each(|outcome| take(outcome, &mut problems))
    })?;
    problems.into_result()?;
    Ok(evaluator.compute())
}

/// Images that are scored or wait for it: two for each thread.
fn under_way(workers: usize) -> usize {
    2 * workers
}

/// The threshold of a rule, which is tuned on the rule's split if the rule needs tuning.
///
/// `advance` is called for every image, and may break off.
pub fn tune(
    rule: ThresholdRule,
    task: &EvaluationTask<'_>,
    mut advance: impl FnMut() -> Result<()>,
) -> Result<Threshold> {
    if let Some(threshold) = rule.ready() {
        return Ok(threshold);
    }
    let split = tuning_split(rule, task.split);
    // Only the sweep is needed.
    let bootstrap = Bootstrap { resamples: 0, ..Bootstrap::default() };
    let protocol = Protocol { curves: false, boxes: false, bootstrap, ..task.protocol };
    let sweep = evaluate(
        &EvaluationTask { split, protocol, features: None, ..*task },
        |_| Ok(()),
        |()| advance(),
    )?;
    let best = sweep.sweep.best().ok_or_else(|| {
        Error::data(
            &task.dataset.root,
            format!("no image of the `{split}` split has a mask to tune a threshold on"),
            "use a rule that needs no masks, such as `--threshold 0.5`",
        )
    })?;
    Ok(rule.tuned(best))
}

/// The split that a rule is tuned on when `scored` is scored.
pub fn tuning_split(rule: ThresholdRule, scored: Split) -> Split {
    if rule == ThresholdRule::BestOnValid { Split::Valid } else { scored }
}

impl EvaluationTask<'_> {
    /// What counts as foreground in mask files.
    pub fn truth_rule(&self) -> MaskRule {
        self.data.mask_rule.unwrap_or(self.dataset.mask_rule)
    }

    /// How images are preprocessed; not at all for saved maps.
    pub fn preprocess(&self) -> PreprocessConfig {
        let settings = self.source.predictor().map(|predictor| predictor.preprocess().clone());
        settings.unwrap_or_else(PreprocessConfig::unchanged)
    }

    /// Most images in memory beside the one in the network: decoded ahead, waiting or being scored.
    pub fn images_held(&self) -> usize {
        let workers = self.workers.max(1);
        workers + 1 + under_way(workers)
    }

    /// Runs the model on an image; the job that is left can be done by any thread.
    fn job<'s>(
        &self,
        index: usize,
        image: EvalImage,
        sample: &'s Sample,
        map: Option<&PathBuf>,
    ) -> Job<'s> {
        let EvalImage { input, geometry, rgb } = image;
        let output = match self.source {
            MapSource::Predictor(predictor) => {
                let class = self.oracle_label.then_some(sample.label);
                Ok(predictor.run(input, &geometry, class))
            }
            MapSource::Maps(_) => Err(map.cloned().unwrap_or_default()),
        };
        let features = self.features.map(|features| features.of(&rgb));
        Job { index, sample, image: rgb, output, features }
    }
}
