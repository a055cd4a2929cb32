//! The training loop and what it leaves on disk.

mod core_shares;
pub(crate) mod distributed;
pub mod event;
mod features;
mod mean_colour;
pub mod optimizer;
mod probe;
pub mod schedule;
mod start;
mod validate;

use std::{
    ops::ControlFlow,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use burn::{module::Module, tensor::Device};

use self::{
    distributed::{FirstRank, require_same_start, require_shareable, summed},
    mean_colour::mean_colour,
    optimizer::Optimizer,
    schedule::learning_rate,
    start::{Start, impossible},
    validate::{Validation, validate},
};
pub use self::{
    event::{EpochRecord, Event, Observer},
    features::{FeatureImage, FeatureMaker, Made},
    probe::wanted_features,
};
use crate::{
    collective::{Ranks, Share},
    config::{Config, Keep, Tie},
    data::{
        Dataset,
        loader::{EvalImages, Supervision},
    },
    error::{Error, Result},
    method::{
        Learner, StepContext,
        learner::{BatchOf, images},
        with_method,
    },
    model::{
        Pass, params,
        weights::{self, Arrays},
    },
    run::{Best, DataSource, Inputs, Position, RunDir, Sums, WeightsNote, write_atomically_by},
};

/// How often the observer is asked whether to stop while an image is decoded.
const PATIENCE: Duration = Duration::from_millis(100);

/// Everything a training run is given.
#[derive(Debug)]
pub struct TrainingTask<'a> {
    /// Settings that passed [`Config::check`].
    pub config: &'a Config,
    /// What to learn from; its validation split chooses the epoch to keep.
    pub dataset: &'a Dataset,
    /// Where the dataset is, for the run to record.
    pub source: Option<&'a DataSource>,
    /// Weights to start from.
    pub weights: Option<&'a Path>,
    /// A folder with features that were computed beforehand; `None` to compute them now.
    pub features: Option<&'a Path>,
    /// Where tensors live.
    pub device: Device,
    /// Threads that decode and augment images.
    pub workers: usize,
    /// Whether the fingerprint of the images is of all their bytes, or of a sample of each file.
    pub every_byte: bool,
    /// The processes that train together, each given the same task.
    pub ranks: Ranks,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Ending {
    /// All epochs are done, or patience ran out; with the best epoch, if any was validated.
    Finished(Option<usize>),
    /// The observer asked to stop; the run can be resumed.
    Interrupted,
}

/// Trains the settings' method until the last epoch, or until the observer wants to stop.
///
/// Resumes from the run's checkpoint if there is one. The outcome depends on the
/// settings, the seed, the data and the number of ranks only: not on the number of threads, nor
/// on how often the run was interrupted. Only the first rank writes the run.
pub fn fit(task: &TrainingTask<'_>, run: &RunDir, observer: &mut dyn Observer) -> Result<Ending> {
    require_shareable(task)?;
    if task.features.is_some() && task.config.method != "probe" {
        return Err(Error::Setting(vec![format!(
            "`method = \"{}\"` learns from images: features are for `method = \"probe\"`",
            task.config.method
        )]));
    }
    let observer = &mut FirstRank { observer, is_first: task.ranks.is_first() };
    with_method!(
        task.config.method.as_str(),
        learner => fit_with(learner, task, run, observer)?,
        probe => probe::fit(task, run, observer)?
    )
}

fn fit_with<L: Learner>(
    learner: L,
    task: &TrainingTask<'_>,
    run: &RunDir,
    observer: &mut dyn Observer,
) -> Result<Ending> {
    let ranks = task.ranks;
    let prepared = ranks.agree(Training::prepare(learner, task, run, observer))?;
    let stops = ranks.any(prepared.is_none());
    let Some((mut training, inputs)) = prepared.filter(|_| !stops) else {
        return Ok(Ending::Interrupted);
    };
    let Training { position, .. } = &training;
    require_same_start(&ranks, &training.model, &training.optimizer, position, task.config)?;
    // Nothing more can fail before the first step.
    ranks.on_first(|| run.begin(task.config, inputs.as_ref()))?;
    let (epochs, steps) = (task.config.train.epochs, training.supervision.batches());
    let from = (training.position.epoch, training.position.step);
    observer.observe(&Event::Started { epochs, steps, from });
    if from == (0, 0) {
        // So that there is a checkpoint even if the first step diverges.
        training.save(observer)?;
    }

    while training.position.epoch < epochs && !training.out_of_patience() {
        let epoch = training.position.epoch;
        let started = Instant::now();
        training = training.freeze_or_thaw();
        let mut batches = training.supervision.epoch(epoch as u64, training.position.step);
        loop {
            // Stopping must not wait for a file that takes long to decode; several ranks stop after
            // the same step.
            let ready = batches.wait(PATIENCE);
            if ready {
                let Some(batch) = batches.next() else { break };
                training = training.learn(&ranks.agree(batch)?, observer)?;
            }
            if (ready || ranks.is_alone()) && ranks.any(observer.wants_to_stop()) {
                training.position.sums.seconds += started.elapsed().as_secs_f64();
                training.save(observer)?;
                return Ok(Ending::Interrupted);
            }
            let every = task.config.train.checkpoint_steps;
            if ready && every > 0 && training.position.step.is_multiple_of(every) {
                training.save(observer)?;
            }
        }
        training.position.sums.seconds += started.elapsed().as_secs_f64();
        if training.end_epoch(observer)?.is_break() {
            training.save(observer)?;
            return Ok(Ending::Interrupted);
        }
    }
    training.finish(observer)
}

/// Images, preprocessed as for prediction by so many threads, ahead of time.
fn eval_images(paths: Vec<PathBuf>, config: &Config, workers: usize) -> EvalImages {
    EvalImages::new(paths, config.preprocess.clone(), config.data.max_megapixels, workers)
}

/// A run in progress.
struct Training<'a, L: Learner> {
    learner: L,
    task: &'a TrainingTask<'a>,
    run: &'a RunDir,
    model: L::Network,
    backbone_learns: bool,
    optimizer: Optimizer,
    supervision: L::Supervision,
    mean_colour: [f32; 3],
    position: Position,
}

impl<'a, L: Learner> Training<'a, L> {
    /// Does all that can fail before a run begins, on each rank by itself, and writes nothing;
    /// `None` if asked to stop.
    fn prepare(
        learner: L,
        task: &'a TrainingTask<'a>,
        run: &'a RunDir,
        observer: &mut dyn Observer,
    ) -> Result<Option<(Self, Option<Inputs>)>> {
        let TrainingTask { config, dataset, ranks, .. } = task;
        let masks_of = L::Supervision::masks_of;
        let inputs = || run.require_inputs(dataset, masks_of, task.weights, task.every_byte);
        let inputs = ranks.is_first().then(inputs).transpose()?;
        let inputs = inputs.map(|inputs| inputs.with_data(task.source));
        let Start { model, optimizer, position } = Start::of(&learner, task, run, observer)?;
        let supervision = L::Supervision::open(dataset, config, task.workers, ranks.part())?;
        position
            .check(config.train.epochs, supervision.batches())
            .map_err(|problem| impossible(run, problem))?;
        if let Some(note) = supervision.note() {
            observer.observe(&Event::Note(&note));
        }
        let stop = || observer.wants_to_stop();
        let Some(mean_colour) = mean_colour(task, stop)? else { return Ok(None) };
        if (position.epoch, position.step) == (0, 0) {
            // Images or settings that cannot work mostly fail in the first batch.
            let mut batches = supervision.epoch(0, 0);
            while !batches.wait(PATIENCE) {
                if observer.wants_to_stop() {
                    return Ok(None);
                }
            }
            batches.next().transpose()?;
        }
        let training = Self {
            learner,
            task,
            run,
            model,
            backbone_learns: true,
            optimizer,
            supervision,
            mean_colour,
            position,
        };
        Ok(Some((training, inputs)))
    }

    /// Freezes or unfreezes the backbone for the epoch: without gradients it costs no backward
    /// pass.
    fn freeze_or_thaw(self) -> Self {
        let backbone_learns = !self.context().backbone_is_frozen();
        if backbone_learns == self.backbone_learns {
            return self;
        }
        let model = params::let_backbone_learn(self.model, backbone_learns);
        Self { model, backbone_learns, ..self }
    }

    /// Learns from one batch.
    fn learn(mut self, batch: &BatchOf<L>, observer: &mut dyn Observer) -> Result<Self> {
        let config = self.task.config;
        let epoch = self.position.epoch;
        let ranks = self.task.ranks;
        let share = Share::of(ranks, batch.as_ref().count());
        let context = StepContext { share, ..self.context() };
        let learned = summed(self.learner.learn(&self.model, batch, &context), &ranks);
        if !learned.terms.total().is_finite() {
            return Err(Error::Diverged {
                epoch,
                step: self.position.step,
                loss: learned.terms.total(),
                saved: self.run.checkpoint(),
            });
        }
        let rate = learning_rate(&config.optimizer, config.semantics, epoch);
        // Passed by value, so that the weights have one owner and can be updated in place.
        self.model = self.optimizer.update(self.model, learned.gradients, rate);

        let images = share.all;
        let event = Event::Step {
            epoch,
            step: self.position.step,
            terms: learned.terms,
            images,
            mistakes: learned.mistakes,
        };
        observer.observe(&event);
        self.position.step += 1;
        let sums = &mut self.position.sums;
        sums.images += images;
        sums.localizer_passes += learned.localizer_passes;
        sums.mistakes += learned.mistakes;
        sums.terms.add(&learned.terms, images as f64);
        Ok(self)
    }

    fn context(&self) -> StepContext<'_> {
        StepContext {
            config: self.task.config,
            epoch: self.position.epoch,
            device: &self.task.device,
            mean_colour: self.mean_colour,
            share: Share::whole(1),
        }
    }

    /// Validates, keeps the weights if they are the best, and moves to the next epoch.
    ///
    /// If asked to stop while validating, it breaks off, and the end of the epoch is done when the
    /// run is resumed.
    fn end_epoch(&mut self, observer: &mut dyn Observer) -> Result<ControlFlow<()>> {
        let started = Instant::now();
        let ControlFlow::Continue(validation) = self.validate(&*observer)? else {
            return Ok(ControlFlow::Break(()));
        };
        let epoch = self.position.epoch;
        let best = self.is_best(validation);
        if let Some(Validation { error, loss, .. }) = validation.filter(|_| best) {
            self.position.best = Some(Best { epoch, error, loss });
        }
        let mut sums = std::mem::take(&mut self.position.sums);
        sums.seconds += started.elapsed().as_secs_f64();
        self.position.records.push(self.record(&sums, validation, best));
        self.position.epoch += 1;
        self.position.step = 0;

        // The checkpoint last: if killed before it, the end of the epoch is computed again.
        if best {
            self.write_weights(&self.run.best())?;
        }
        self.write_weights(&self.run.last())?;
        self.task.ranks.on_first(|| self.run.write_metrics(&self.position.records))?;
        if let Some(record) = self.position.records.last() {
            observer.observe(&Event::Epoch(record));
        }
        self.save(observer)?;
        Ok(ControlFlow::Continue(()))
    }

    fn validate(&self, observer: &dyn Observer) -> Result<ControlFlow<(), Option<Validation>>> {
        let (model, context) = (self.model.valid(), self.context());
        validate(
            self.task,
            || observer.wants_to_stop(),
            |image, sample| {
                let truth = self.supervision.truth(sample, image.geometry.original)?;
                Ok(truth.map(|truth| self.learner.validate(&model, image, &truth, &context)))
            },
        )
    }

    /// Whether these weights are to be kept, by validation error or loss and then the tie rule.
    fn is_best(&self, validation: Option<Validation>) -> bool {
        let (Some(now), Some(best)) = (validation, self.position.best) else { return true };
        let wins_tie = match self.task.config.train.tie {
            Tie::Latest => true,
            Tie::LowerLoss => now.loss < best.loss,
        };
        let (now, best) = match self.task.config.train.keep {
            Keep::LowestError => (now.error, best.error),
            Keep::LowestLoss => (now.loss, best.loss),
        };
        now < best || (now == best && wins_tie)
    }

    fn out_of_patience(&self) -> bool {
        let patience = self.task.config.train.patience;
        let waited = |best: Best| self.position.epoch.saturating_sub(best.epoch + 1);
        patience > 0 && self.position.best.is_some_and(|best| waited(best) >= patience)
    }

    fn record(&self, sums: &Sums, validation: Option<Validation>, best: bool) -> EpochRecord {
        let config = self.task.config;
        let epoch = self.position.epoch;
        let images = sums.images.max(1) as f64;
        let terms = sums.terms.over(images);
        EpochRecord {
            epoch,
            learning_rate: learning_rate(&config.optimizer, config.semantics, epoch),
            loss_localizer: terms.localizer,
            loss_foreground: terms.foreground,
            loss_background: terms.background,
            train_error: 100.0 * sums.mistakes / images,
            localizer_passes: sums.localizer_passes as f64 / images,
            valid_error: validation.map(|found| found.error),
            valid_localizer_error: validation.and_then(|found| found.localizer_error),
            valid_loss: validation.map(|found| found.loss),
            best,
            seconds: sums.seconds,
        }
    }

    /// Recalibrates batch norm if the settings ask for it; gives the best epoch.
    ///
    /// If asked to stop meanwhile, nothing is kept of it, and it is done when the run is resumed.
    fn finish(mut self, observer: &mut dyn Observer) -> Result<Ending> {
        if self.task.config.model.recalibrate {
            let best = self.run.best();
            let kept = weights::read(&best)
                .and_then(|found| weights::load(self.model.clone(), &best, found));
            self.model = self.task.ranks.agree(kept)?.0;
            if self.recalibrate(observer)?.is_break() {
                return Ok(Ending::Interrupted);
            }
            self.write_weights(&best)?;
        }
        Ok(Ending::Finished(self.position.best.map(|best| best.epoch)))
    }

    /// Averages the statistics of batch norm over the training set, with the weights that are kept.
    fn recalibrate(&self, observer: &mut dyn Observer) -> Result<ControlFlow<()>> {
        let config = self.task.config;
        let total = self.supervision.batches();
        // The augmented images of an epoch that was never trained on.
        let epoch = config.train.epochs as u64;
        for (seen, batch) in self.supervision.epoch(epoch, 0).enumerate() {
            let batch = self.task.ranks.agree(batch)?;
            if self.task.ranks.any(observer.wants_to_stop()) {
                return Ok(ControlFlow::Break(()));
            }
            observer.observe(&Event::Working {
                what: "recalibrating batch norm",
                done: seen,
                total,
            });
            let share = Share::of(self.task.ranks, batch.as_ref().count());
            let images = images(batch.as_ref(), &self.task.device);
            let pass = Pass::Calibrate { seen, share };
            self.learner.pass(&self.model, images.autodiff(), pass, config);
        }
        Ok(ControlFlow::Continue(()))
    }

    fn write_weights(&self, path: &Path) -> Result<()> {
        let TrainingTask { config, dataset, .. } = self.task;
        let note = WeightsNote::new(config, &dataset.classes, self.position.epoch);
        self.task.ranks.on_first(|| {
            let arrays = params::collect(&self.model);
            write_atomically_by(path, |file| weights::write(file, &arrays, &note))
        })
    }

    fn save(&mut self, observer: &mut dyn Observer) -> Result<()> {
        let (updates, memory): (u64, Arrays) = self.optimizer.state();
        self.position.updates = updates;
        self.task.ranks.on_first(|| {
            let path = self.run.save(&self.model, memory, &self.position)?;
            observer.observe(&Event::Saved(&path));
            Ok(())
        })
    }
}
