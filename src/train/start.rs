//! Where a training starts: from its checkpoint, from a weight file, or from random weights.

use std::collections::BTreeMap;

use burn::module::Module;

use super::{Event, Observer, TrainingTask, optimizer::Optimizer};
use crate::{
    error::{Error, Result},
    method::Learner,
    model::{params, weights},
    run::{Checkpoint, Position, RunDir},
};

/// The state that a training starts from.
pub(super) struct Start<N> {
    pub(super) model: N,
    pub(super) optimizer: Optimizer,
    pub(super) position: Position,
}

impl<N: Module> Start<N> {
    /// The checkpoint of the run, which must fit what is to be trained; without one, the weights of
    /// a file or random ones.
    pub(super) fn of<L: Learner<Network = N>>(
        learner: &L,
        task: &TrainingTask<'_>,
        run: &RunDir,
        observer: &mut dyn Observer,
    ) -> Result<Self> {
        let TrainingTask { config, dataset, ranks, .. } = task;
        let device = task.device.clone().autodiff();
        let several = (!ranks.is_alone()).then_some(ranks.size());
        let begin = Self {
            model: learner.network(config, dataset.classes.len(), &device),
            optimizer: Optimizer::new(config.optimizer.clone()),
            position: Position::start(dataset, several),
        };
        let unfinished = RunDir::exists(run.root());
        match (run.restore()?, task.weights) {
            (Some(checkpoint), _) => return begin.resume(checkpoint, task, run, observer),
            (None, Some(path)) if L::HAS_BACKBONE => {
                let (model, report) = weights::load(begin.model, path, weights::read(path)?)?;
                observer.observe(&Event::Note(&report.to_string()));
                return Ok(Self { model, ..begin });
            }
            (None, Some(_)) => observer.observe(&Event::Note(
                "this method has no backbone to load weights into, and starts from random ones",
            )),
            (None, None) if unfinished => observer.observe(&Event::Note(
                "the run has no checkpoint yet, and starts again from random weights",
            )),
            (None, None) => {}
        }
        Ok(begin)
    }

    fn resume(
        self,
        checkpoint: Checkpoint,
        task: &TrainingTask<'_>,
        run: &RunDir,
        observer: &mut dyn Observer,
    ) -> Result<Self> {
        let Checkpoint { weights, memory, mut position, verified } = checkpoint;
        require_same_samples(run, &mut position, &self.position, observer)?;
        if position.ranks != self.position.ranks {
            return Err(other_ranks(run, position.ranks.unwrap_or(1)));
        }
        if !verified {
            observer.observe(&Event::Note(
                "the checkpoint is of an older version, without checksums: damage to it would go \
                 unnoticed",
            ));
        }
        let settings = &task.config.optimizer;
        let (model, _) = weights::load(self.model, &run.checkpoint(), weights)?;
        let optimizer = Optimizer::resume(settings.clone(), position.updates, memory);
        let moved = moved_weights(&model, &position, settings.frozen_epochs);
        optimizer.require_memory_of(&moved).map_err(|problem| impossible(run, problem))?;
        Ok(Self { model, optimizer, position })
    }
}

/// The weights that training has updated so far, by name, with their number of values.
fn moved_weights(
    model: &impl Module,
    position: &Position,
    frozen_epochs: usize,
) -> BTreeMap<String, usize> {
    if position.updates == 0 {
        return BTreeMap::new();
    }
    let mut sizes = params::sizes(model);
    if (position.epoch, position.step) <= (frozen_epochs, 0) {
        let backbone = params::backbone(model);
        sizes.retain(|name, _| !backbone.contains(name));
    }
    sizes
}

/// The error for a checkpoint that no training can have written.
pub(super) fn impossible(run: &RunDir, problem: String) -> Error {
    Error::Run {
        path: run.checkpoint(),
        problem: format!("the checkpoint is damaged: {problem}"),
        remedy: "restore it from a copy, or start a new run in another `--out`".to_owned(),
    }
}

fn other_ranks(run: &RunDir, ranks: usize) -> Error {
    let (started_by, resume_with) = match ranks {
        1 => ("one process".to_owned(), "one process, without `mpirun`".to_owned()),
        several => (format!("{several} processes"), format!("`mpirun -n {several}`")),
    };
    Error::Run {
        path: run.root().to_owned(),
        problem: format!("the run is trained by {started_by}; others would not learn the same"),
        remedy: format!("resume with {resume_with}, or start a new run in another `--out`"),
    }
}

/// Refuses to resume from a checkpoint with other samples or classes than those of this training.
pub(super) fn require_same_samples(
    run: &RunDir,
    saved: &mut Position,
    start: &Position,
    observer: &mut dyn Observer,
) -> Result<()> {
    if saved.is_start() {
        // Nothing was learned from the samples that it was started with.
        saved.samples.clone_from(&start.samples);
    }
    if saved.samples.is_none() {
        observer.observe(&Event::Note(
            "the checkpoint is of an older version: whether names, classes and splits of its \
             samples are still the same cannot be told",
        ));
        saved.samples.clone_from(&start.samples);
    }
    if saved.samples == start.samples {
        return Ok(());
    }
    Err(Error::Run {
        path: run.root().to_owned(),
        problem: "the run was started on other data: samples, classes or splits have changed"
            .to_owned(),
        remedy: "give the `--data` it was started with, or start a new run in another `--out`"
            .to_owned(),
    })
}
