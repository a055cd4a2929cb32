//! The training of a probe: one pass of the frozen backbone over the images, then its heads.
//!
//! Nothing here learns by batches. The checkpoint holds the frozen backbone, so that a run that
//! was stopped needs no weight file to go on; what follows from it is computed again, to the
//! same bytes, since that takes a minute.

use std::{ops::ControlFlow, time::Instant};

use super::{Ending, Event, Observer, TrainingTask, other_dataset, validate::Validation};
use crate::{
    config::Config,
    data::{
        Dataset, Sample,
        loader::{EvalImage, EvalLoader, EvalSettings},
    },
    error::{Error, Result},
    method::{
        ImageValidation,
        learner::negative_log_likelihood,
        most_probable,
        probe::{self, Found, Gathered, Gathering, Heads, NotFinite, Plan, Probe, StageMaps},
    },
    model::{
        resnet::Resnet,
        weights::{self, Arrays},
    },
    rng::{Purpose, Stream},
    run::{
        Best, Checkpoint, EpochRecord, Position, RunDir, WeightsNote, fingerprint, write_atomically,
    },
};

/// What is said where no weights are given.
const NO_WEIGHTS: &str = "no `--weights` were given, so the frozen backbone keeps weights that \
    were drawn at random, which see little: give ImageNet weights (`pinpoint weights` says where \
    they are)";

/// Trains a probe, or goes on with one.
pub(super) fn fit(
    task: &TrainingTask<'_>,
    run: &RunDir,
    observer: &mut dyn Observer,
) -> Result<Ending> {
    let started = Instant::now();
    require_enough(task.dataset)?;
    let inputs = run.require_inputs(task.dataset, |_| Vec::new(), task.weights, task.every_byte)?;
    let inputs = inputs.with_data(task.source);
    let mut position = Position { dataset: fingerprint(task.dataset), ..Position::default() };
    let backbone = match run.restore()? {
        Some(Checkpoint { position: saved, .. }) if saved.dataset != position.dataset => {
            return Err(other_dataset(run));
        }
        Some(Checkpoint { position: saved, .. })
            if saved.epoch == 1 && saved.records.len() == 1 && run.best().is_file() =>
        {
            return Ok(Ending::Finished(saved.best.map(|best| best.epoch)));
        }
        Some(Checkpoint { weights: arrays, .. }) => {
            let blank = Resnet::new(&probe::backbone(&task.config.model), &task.device);
            weights::load(blank, &run.checkpoint(), arrays)?.0
        }
        None => open_backbone(task, observer)?,
    };
    // An image that cannot be read or a setting that cannot work shows itself in the first one.
    let mut first = images(task, &[&task.dataset.train[0]]).images();
    match first.next_unless(|| observer.wants_to_stop()) {
        Some(image) => drop(image?),
        None => return Ok(Ending::Interrupted),
    }
    run.begin(task.config, Some(&inputs))?;
    let path = run.save(&backbone, Arrays::new(), &position)?;
    observer.observe(&Event::Saved(&path));

    let Some(gathered) = gather(task, &backbone, observer)? else {
        return Ok(Ending::Interrupted);
    };
    let features_done = started.elapsed().as_secs_f64();
    let Some((heads, found)) = train_heads(&gathered, task, observer) else {
        return Ok(Ending::Interrupted);
    };
    let all_done = started.elapsed().as_secs_f64();
    observer.observe(&Event::Note(&format!(
        "features in {features_done:.1} s, heads in {:.1} s; {found}",
        all_done - features_done
    )));
    let train_error = train_error(&heads, &gathered);
    let probe = Probe::new(backbone, gathered.projection, heads);
    let ControlFlow::Continue(valid) = validate(&probe, task, &*observer)? else {
        return Ok(Ending::Interrupted);
    };

    let record = EpochRecord {
        epoch: 0,
        learning_rate: 0.0,
        loss_localizer: 0.0,
        loss_foreground: None,
        loss_background: None,
        train_error,
        localizer_passes: 1.0,
        valid_error: valid.map(|found| found.error),
        valid_localizer_error: None,
        valid_loss: valid.map(|found| found.loss),
        best: true,
        seconds: started.elapsed().as_secs_f64(),
    };
    position.best = valid.map(|Validation { error, loss, .. }| Best { epoch: 0, error, loss });
    position.epoch = 1;
    position.records.push(record);
    let note = WeightsNote::new(task.config, &task.dataset.classes, position.epoch);
    let content = weights::encode(&probe.to_arrays(), &note);
    for path in [run.best(), run.last()] {
        write_atomically(&path, &content)?;
    }
    run.write_metrics(&position.records)?;
    if let Some(Validation { error, .. }) = valid {
        let note = format!("{error:.1} % of validation images are misclassified");
        observer.observe(&Event::Note(&note));
    }
    // The checkpoint last: if killed before it, all of this is computed again.
    let path = run.save_finished(&position)?;
    observer.observe(&Event::Saved(&path));
    Ok(Ending::Finished(position.best.map(|best| best.epoch)))
}

/// The backbone with the weights that were given, or with drawn ones.
fn open_backbone(task: &TrainingTask<'_>, observer: &mut dyn Observer) -> Result<Resnet> {
    let config = probe::backbone(&task.config.model);
    let Some(path) = task.weights else {
        observer.observe(&Event::Warning(NO_WEIGHTS));
        return Ok(Resnet::drawn(&config, task.config.seed, &task.device));
    };
    // Every tensor of a backbone must be in the file, so that none needs to be drawn first.
    let blank = Resnet::new(&config, &task.device);
    let (backbone, report) = weights::load(blank, path, weights::read(path)?)?;
    observer.observe(&Event::Note(&report.to_string()));
    Ok(backbone)
}

/// Refuses what no head could learn from.
fn require_enough(dataset: &Dataset) -> Result<()> {
    let mut counts = vec![0_usize; dataset.classes.len()];
    dataset.train.iter().for_each(|sample| counts[sample.label] += 1);
    let told = counts.iter().filter(|&&count| count > 1).count();
    if told >= 2 {
        return Ok(());
    }
    Err(Error::Data {
        path: dataset.root.clone(),
        problem: "fewer than two classes have two training images or more, so that nothing can \
                  be learned on some images and tested on others"
            .to_owned(),
        remedy: "add images, or merge classes".to_owned(),
    })
}

/// Passes the training images through the backbone once; none if it was asked to stop.
fn gather(
    task: &TrainingTask<'_>,
    backbone: &Resnet,
    observer: &mut dyn Observer,
) -> Result<Option<Gathered>> {
    let TrainingTask { config, dataset, .. } = task;
    let plan = Plan::new(dataset.train.len(), &config.probe);
    let mut order = random_order(dataset, config.seed);
    order.truncate(plan.images);
    if order.len() < dataset.train.len() {
        let note = format!(
            "{} of {} training images are looked at: `probe.memory_mib` holds no more",
            order.len(),
            dataset.train.len()
        );
        observer.observe(&Event::Note(&note));
    }
    let samples: Vec<&Sample> = order.iter().map(|&index| &dataset.train[index]).collect();
    let mut gathering = Gathering::new(plan, &config.probe);
    let mut images = images(task, &samples).images();
    for done in 0..samples.len() {
        let Some(image) = images.next_unless(|| observer.wants_to_stop()) else {
            return Ok(None);
        };
        observer.observe(&Event::Working {
            what: "computing features",
            done,
            total: samples.len(),
        });
        let EvalImage { input, geometry, .. } = image?;
        let size = geometry.padded.rows_columns();
        let maps = StageMaps::of(backbone, input, size, &config.probe, &task.device);
        gathering.push(&maps, &config.probe).map_err(|NotFinite| not_finite(samples[done]))?;
        maps.reuse();
    }
    let labels = samples.iter().map(|sample| sample.label).collect();
    let gathered = gathering.finish(labels, dataset.classes.len());
    if gathered.cells.dimensions == 0 {
        return Err(Error::Data {
            path: dataset.root.clone(),
            problem: "the training images look the same everywhere, so there is nothing to learn"
                .to_owned(),
            remedy: "check the images, and the weights if others were given".to_owned(),
        });
    }
    Ok(Some(gathered))
}

/// The training images in random order, one of each class in turn, so that the first of them
/// stand for all.
fn random_order(dataset: &Dataset, seed: u64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..dataset.train.len()).collect();
    Stream::new(seed, Purpose::Shuffle, 0, 0).shuffle(&mut order);
    let mut seen = vec![0_usize; dataset.classes.len()];
    let mut turns: Vec<(usize, usize)> = Vec::with_capacity(order.len());
    for image in order {
        let label = dataset.train[image].label;
        turns.push((seen[label], image));
        seen[label] += 1;
    }
    // Stable, so that the classes of a turn come in random order.
    turns.sort_by_key(|&(turn, _)| turn);
    turns.into_iter().map(|(_, image)| image).collect()
}

fn not_finite(sample: &Sample) -> Error {
    Error::Image {
        path: sample.image.clone(),
        problem: "the features of the image are no numbers, or too large to be kept".to_owned(),
        remedy: "give weights that were trained on such images, as ImageNet's are".to_owned(),
    }
}

/// Trains the heads; none if the observer asked to stop.
fn train_heads(
    gathered: &Gathered,
    task: &TrainingTask<'_>,
    observer: &mut dyn Observer,
) -> Option<(Heads, Found)> {
    let Config { probe, seed, .. } = task.config;
    Heads::train(gathered, probe, *seed, |done, total| {
        observer.observe(&Event::Working { what: "training heads", done, total });
        !observer.wants_to_stop()
    })
}

/// The images of some samples, as prediction sees them.
fn images(task: &TrainingTask<'_>, samples: &[&Sample]) -> EvalLoader {
    let paths = samples.iter().map(|sample| sample.image.clone()).collect();
    let settings =
        EvalSettings { workers: task.workers, max_megapixels: task.config.data.max_megapixels };
    EvalLoader::new(paths, task.config.preprocess.clone(), settings)
}

/// Share of validation images that are named wrongly, in percent, and mean cross-entropy; none
/// without a validation split.
fn validate(
    probe: &Probe,
    task: &TrainingTask<'_>,
    observer: &dyn Observer,
) -> Result<ControlFlow<(), Option<Validation>>> {
    super::validate::validate(
        task,
        || observer.wants_to_stop(),
        |image, sample| {
            let found = {
                let size = image.geometry.padded.rows_columns();
                probe.localize(image.input.clone(), size, task.config, &task.device)
            };
            let probabilities = found.classifier.unwrap_or_default();
            let mistake = f64::from(u8::from(most_probable(&probabilities) != sample.label));
            Ok(Some(ImageValidation {
                mistake,
                localizer_mistake: None,
                loss: negative_log_likelihood(&probabilities, sample.label),
            }))
        },
    )
}

/// Share of training images that are named wrongly, in percent.
fn train_error(heads: &Heads, gathered: &Gathered) -> f64 {
    let labels = &gathered.cells.labels;
    let wrong =
        gathered.descriptors.iter().zip(labels).filter(|(descriptor, label)| {
            most_probable(&heads.probabilities(descriptor)) != **label
        });
    100.0 * wrong.count() as f64 / labels.len() as f64
}
