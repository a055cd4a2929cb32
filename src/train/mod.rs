//! The training loop and what it leaves on disk.

/// What happens during training, for whoever wants to know.
pub mod event;

/// The run directory.
pub mod run;

/// The learning rate as a function of the epoch.
pub mod schedule;

/// Weight updates.
pub mod optimizer;

mod validate;

use std::{path::Path, sync::Arc, time::Instant};

use burn::{module::Module as _, tensor::Device};

pub use self::event::{EpochRecord, Event, Observer};
use self::{
    optimizer::Optimizer,
    run::{Best, Position, RunDir, Sums, WeightsNote, fingerprint},
    schedule::learning_rate,
    validate::{Validation, validate},
};
use crate::{
    config::{Config, Fill, Tie},
    data::{
        Dataset,
        image::read_rgb,
        loader::{Batch, TrainLoader, TrainSettings},
    },
    error::{Error, Result},
    method::minmax::{Outcome, Step, dropout::Dropout, erase::Trust},
    model::{
        Model, Pass, Rules,
        layers::tensor,
        params,
        weights::{self, Arrays},
    },
};

/// Everything a training run is given.
#[derive(Debug)]
pub struct Task<'a> {
    /// Settings that passed [`Config::check`].
    pub config: &'a Config,
    /// What to learn from; its validation split chooses the epoch to keep.
    pub dataset: &'a Dataset,
    /// Weights to start from.
    pub weights: Option<&'a Path>,
    /// Where tensors live.
    pub device: Device,
    /// Threads that decode and augment images.
    pub workers: usize,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Ending {
    /// All epochs are done, or patience ran out; the kept epoch, if any was validated.
    Finished(Option<usize>),
    /// The observer asked to stop; the run can be resumed.
    Interrupted,
}

/// Trains until the last epoch, or until the observer wants to stop.
///
/// Goes on from the run's checkpoint if there is one. The outcome depends on the
/// settings, the seed and the data only: not on the number of threads, nor on how
/// often the run was interrupted.
pub fn fit(task: &Task<'_>, run: &RunDir, observer: &mut dyn Observer) -> Result<Ending> {
    let mut training = Training::start(task, run, observer)?;
    let (epochs, steps) = (task.config.train.epochs, training.loader.batches());
    let from = (training.position.epoch, training.position.step);
    observer.hear(&Event::Started { epochs, steps, from });
    if from == (0, 0) {
        // There is a good state to name even if the first step diverges.
        training.save(observer)?;
    }

    while training.position.epoch < epochs && !training.out_of_patience() {
        let epoch = training.position.epoch;
        let started = Instant::now();
        for batch in training.loader.epoch(epoch as u64, training.position.step) {
            training.learn(&batch?, observer)?;
            if observer.wants_to_stop() {
                training.position.sums.seconds += started.elapsed().as_secs_f64();
                training.save(observer)?;
                return Ok(Ending::Interrupted);
            }
            training.save_now_and_then(observer)?;
        }
        training.position.sums.seconds += started.elapsed().as_secs_f64();
        training.end_epoch(observer)?;
    }
    training.finish(observer)
}

/// A run in progress.
struct Training<'a> {
    task: &'a Task<'a>,
    run: &'a RunDir,
    model: Model,
    optimizer: Optimizer,
    loader: TrainLoader,
    mean_colour: [f32; 3],
    position: Position,
}

impl<'a> Training<'a> {
    fn start(task: &'a Task<'a>, run: &'a RunDir, observer: &mut dyn Observer) -> Result<Self> {
        let Task { config, dataset, .. } = task;
        let device = task.device.clone().autodiff();
        let mut model = Model::new(config, dataset.classes.len(), &device);
        let mut optimizer = Optimizer::new(config.optimizer.clone());
        let mut position = Position { dataset: fingerprint(dataset), ..Position::default() };
        match run.restore()? {
            Some((weights, memory, saved)) => {
                if saved.dataset != position.dataset {
                    return Err(other_dataset(run));
                }
                (model, _) = weights::load(model, &run.checkpoint(), &weights)?;
                let updates = saved.updates;
                optimizer =
                    Optimizer::resume(config.optimizer.clone(), updates, memory, &task.device);
                position = saved;
            }
            None => {
                if let Some(path) = task.weights {
                    let (loaded, report) = weights::load(model, path, &weights::read(path)?)?;
                    model = loaded;
                    observer.hear(&Event::Note(&report.to_string()));
                }
            }
        }
        Ok(Self {
            task,
            run,
            model,
            optimizer,
            loader: task.loader(),
            mean_colour: task.mean_colour()?,
            position,
        })
    }

    /// Learns from one batch.
    fn learn(&mut self, batch: &Batch, observer: &mut dyn Observer) -> Result<()> {
        let config = self.task.config;
        let epoch = self.position.epoch;
        let outcome = self.step(batch);
        if !outcome.losses.is_finite() {
            return Err(Error::Diverged {
                epoch,
                step: self.position.step,
                loss: outcome.losses.total(),
                saved: self.run.checkpoint(),
            });
        }
        let rate = learning_rate(&config.optimizer, config.semantics, epoch);
        let model = self.model.clone();
        self.model = self.optimizer.update(model, outcome.gradients, rate);

        let images = batch.labels.len();
        let event = Event::Step {
            epoch,
            step: self.position.step,
            losses: outcome.losses,
            images,
            mistakes: outcome.mistakes,
        };
        observer.hear(&event);
        self.position.step += 1;
        let sums = &mut self.position.sums;
        sums.images += images;
        sums.looks += outcome.looks.iter().sum::<usize>();
        sums.mistakes += outcome.mistakes;
        sums.localizer += outcome.losses.localizer * images as f64;
        sums.foreground += outcome.losses.foreground * images as f64;
        sums.background += outcome.losses.background * images as f64;
        Ok(())
    }

    fn step(&self, batch: &Batch) -> Outcome {
        let config = self.task.config;
        let epoch = self.position.epoch;
        let size = [batch.height, batch.width];
        let cells = self.model.cells(size, &Rules::new(config));
        let dropout = Dropout::draw(
            config.pool.dropout,
            self.model.classes(),
            cells,
            config.seed,
            epoch as u64,
            &batch.samples,
        );
        let shape = [batch.labels.len(), 3, batch.height, batch.width];
        Step {
            config,
            model: &self.model,
            images: tensor(batch.images.clone(), shape, &self.task.device),
            labels: &batch.labels,
            dropout: &dropout,
            rounds: if epoch < config.erase.first_epoch { 0 } else { config.erase.rounds },
            trust: Trust::new(batch.labels.len(), config.erase.sigma, config.semantics),
            mean_colour: self.mean_colour,
        }
        .run()
    }

    /// Validates, keeps the weights if they are the best, and moves to the next epoch.
    fn end_epoch(&mut self, observer: &mut dyn Observer) -> Result<()> {
        let started = Instant::now();
        let validation = validate(self.task, &self.model.valid())?;
        let epoch = self.position.epoch;
        let best = self.is_best(validation);
        if let Some(Validation { error, loss }) = validation.filter(|_| best) {
            self.position.best = Some(Best { epoch, error, loss });
        }
        let sums = std::mem::take(&mut self.position.sums);
        let seconds = sums.seconds + started.elapsed().as_secs_f64();
        self.position.records.push(self.record(&sums, validation, best, seconds));
        self.position.epoch += 1;
        self.position.step = 0;

        // The checkpoint last: if killed before it, the epoch's end is computed again.
        if best {
            self.write_weights(&self.run.best())?;
        }
        self.write_weights(&self.run.last())?;
        self.run.write_metrics(&self.position.records)?;
        if let Some(record) = self.position.records.last() {
            observer.hear(&Event::Epoch(record));
        }
        self.save(observer)
    }

    /// Whether these weights are to be kept, by validation error and then the tie rule.
    fn is_best(&self, validation: Option<Validation>) -> bool {
        let (Some(now), Some(best)) = (validation, self.position.best) else { return true };
        let wins_tie = match self.task.config.train.tie {
            Tie::Latest => true,
            Tie::LowerLoss => now.loss < best.loss,
        };
        now.error < best.error || (now.error == best.error && wins_tie)
    }

    fn out_of_patience(&self) -> bool {
        let patience = self.task.config.train.patience;
        let waited = |best: Best| self.position.epoch.saturating_sub(best.epoch + 1);
        patience > 0 && self.position.best.is_some_and(|best| waited(best) >= patience)
    }

    fn record(
        &self,
        sums: &Sums,
        validation: Option<Validation>,
        best: bool,
        seconds: f64,
    ) -> EpochRecord {
        let config = self.task.config;
        let epoch = self.position.epoch;
        let images = sums.images.max(1) as f64;
        EpochRecord {
            epoch,
            learning_rate: learning_rate(&config.optimizer, config.semantics, epoch),
            loss_localizer: sums.localizer / images,
            loss_foreground: sums.foreground / images,
            loss_background: sums.background / images,
            train_error: 100.0 * sums.mistakes as f64 / images,
            looks: sums.looks as f64 / images,
            valid_error: validation.map(|found| found.error),
            valid_loss: validation.map(|found| found.loss),
            best,
            seconds,
        }
    }

    /// Measures the statistics of batch norm afresh if asked to, and says which epoch is kept.
    fn finish(mut self, _observer: &mut dyn Observer) -> Result<Ending> {
        if self.task.config.model.recalibrate {
            let best = self.run.best();
            let model = self.model.clone();
            (self.model, _) = weights::load(model, &best, &weights::read(&best)?)?;
            self.recalibrate()?;
            self.write_weights(&best)?;
        }
        Ok(Ending::Finished(self.position.best.map(|best| best.epoch)))
    }

    /// Averages the statistics of batch norm over the training set, seen as evaluation sees it.
    fn recalibrate(&self) -> Result<()> {
        let config = self.task.config;
        // The augmented images of an epoch that was never trained on.
        let epoch = config.train.epochs as u64;
        for (seen, batch) in self.loader.epoch(epoch, 0).enumerate() {
            let batch = batch?;
            let shape = [batch.labels.len(), 3, batch.height, batch.width];
            let images = tensor(batch.images, shape, &self.task.device);
            let pass = Pass::Calibrate { seen };
            self.model.localize(images.autodiff(), pass, &Rules::new(config), None);
        }
        Ok(())
    }

    fn write_weights(&self, path: &Path) -> Result<()> {
        let config = self.task.config;
        let note = WeightsNote {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            classes: self.task.dataset.classes.clone(),
            normalization: config.preprocess.normalization,
            threshold: 0.5,
            semantics: config.semantics,
            epoch: self.position.epoch,
        };
        weights::write(path, &params::collect(&self.model), &note)
    }

    fn save_now_and_then(&mut self, observer: &mut dyn Observer) -> Result<()> {
        let every = self.task.config.train.checkpoint_steps;
        let due = every > 0 && self.position.step.is_multiple_of(every);
        if due { self.save(observer) } else { Ok(()) }
    }

    fn save(&mut self, observer: &mut dyn Observer) -> Result<()> {
        let (updates, memory): (u64, Arrays) = self.optimizer.state();
        self.position.updates = updates;
        let path = self.run.save(&self.model, memory, &self.position)?;
        observer.hear(&Event::Saved(&path));
        Ok(())
    }
}

impl Task<'_> {
    fn loader(&self) -> TrainLoader {
        let Config { seed, data, preprocess, augment, train, .. } = self.config;
        let settings = TrainSettings {
            batch_size: train.batch_size,
            seed: *seed,
            workers: self.workers,
            cache_mib: data.cache_mib,
            max_megapixels: data.max_megapixels,
        };
        let samples = Arc::from(self.dataset.train.as_slice());
        TrainLoader::new(samples, preprocess.clone(), augment.clone(), settings)
    }

    /// The mean colour of the training images, if erasing needs it.
    fn mean_colour(&self) -> Result<[f32; 3]> {
        let Config { data, preprocess, erase, .. } = self.config;
        let mut sums = [0.0_f64; 3];
        if erase.fill != Fill::Mean {
            return Ok([0.0; 3]);
        }
        for sample in &self.dataset.train {
            let image = read_rgb(&sample.image, data.max_megapixels)?;
            let pixels = f64::from(image.width()) * f64::from(image.height());
            for (channel, sum) in sums.iter_mut().enumerate() {
                let total: u64 = image.pixels().map(|pixel| u64::from(pixel[channel])).sum();
                *sum += total as f64 / pixels / 255.0;
            }
        }
        let (mean, std) = preprocess.normalization.mean_std();
        let images = self.dataset.train.len() as f64;
        Ok([0, 1, 2]
            .map(|channel| ((sums[channel] / images) as f32 - mean[channel]) / std[channel]))
    }
}

fn other_dataset(run: &RunDir) -> Error {
    Error::Run {
        path: run.root().to_owned(),
        problem: "the run was started on other data: samples, classes or splits have changed"
            .to_owned(),
        remedy: "give the `--data` it was started with, or start a new run in another `--out`"
            .to_owned(),
    }
}
