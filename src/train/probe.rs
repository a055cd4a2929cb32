//! The training of a probe: one pass of the frozen backbone over the images, then its heads.
//!
//! Nothing here learns by batches. The checkpoint holds the frozen backbone, so that a run that
//! was stopped needs no weight file to go on; what follows from it is computed again, to the
//! same bytes, since that takes a minute.

use std::{ops::ControlFlow, time::Instant};

use super::{
    Ending, Event, Observer, TrainingTask, start::require_same_samples, validate::Validation,
};
use crate::{
    config::{ClassView, Config},
    data::{
        Dataset, Sample,
        loader::{EvalImage, EvalLoader, EvalSettings},
    },
    error::{Error, Result},
    method::{
        ImageValidation,
        learner::negative_log_likelihood,
        most_probable,
        probe::{
            self, ClassHead, Descriptors, Gathered, Gathering, HalfMaps, LabelledCells, MaskHeads,
            NotFinite, Plan, Probe, StageMaps,
        },
    },
    model::{
        resnet::Resnet,
        weights::{self, Arrays},
    },
    rng::{Purpose, Stream},
    run::{Best, Checkpoint, EpochRecord, Position, RunDir, WeightsNote, write_atomically},
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
    let mut position = Position::start(task.dataset, None);
    let mut checkpoint = run.restore()?;
    if let Some(Checkpoint { position: saved, .. }) = &mut checkpoint {
        require_same_samples(run, saved, &position, observer)?;
    }
    let backbone = match checkpoint {
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

    let plan = Plan::new(task.dataset.train.len(), &task.config.probe);
    let samples = learned_from(task, &plan, observer);
    let Some(gathered) = gather(task, plan, &samples, &backbone, observer)? else {
        return Ok(Ending::Interrupted);
    };
    let features_done = started.elapsed().as_secs_f64();
    let Some(mask_heads) = train_mask_heads(&gathered.cells, task, observer) else {
        return Ok(Ending::Interrupted);
    };
    let Some(foreground) =
        see_foreground(&gathered, &mask_heads, task, &samples, &backbone, observer)?
    else {
        return Ok(Ending::Interrupted);
    };
    let Gathered { projection, cells, descriptors: image, last_stage, .. } = gathered;
    let descriptors = Descriptors { image, foreground, last_stage };
    let LabelledCells { labels, classes, .. } = &cells;
    let Config { probe: probe_config, seed, .. } = task.config;
    let (class_head, held_out_error) =
        ClassHead::train(&descriptors, labels, *classes, probe_config.class_view, *seed);
    let mut found = format!(
        "features in {features_done:.1} s, heads in {:.1} s; maps are cut with β = {:.2}",
        started.elapsed().as_secs_f64() - features_done,
        mask_heads.beta
    );
    if let Some(error) = held_out_error {
        found += &format!("; {error:.1} % of held-out training images are misclassified");
    }
    observer.observe(&Event::Note(&found));
    let train_error = class_head.error(&descriptors, labels);
    let probe = Probe::new(backbone, projection, mask_heads, class_head);
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

/// The training images that there is memory for, in the order in which they are looked at.
fn learned_from<'a>(
    task: &TrainingTask<'a>,
    plan: &Plan,
    observer: &mut dyn Observer,
) -> Vec<&'a Sample> {
    let TrainingTask { config, dataset, .. } = task;
    let mut order = random_order(dataset, config.seed);
    order.truncate(plan.images);
    if order.len() < dataset.train.len() {
        let note = format!(
            "{} of {} training images are used: `probe.memory_mib` holds no more",
            order.len(),
            dataset.train.len()
        );
        observer.observe(&Event::Note(&note));
    }
    order.iter().map(|&index| &dataset.train[index]).collect()
}

/// Passes the training images through the backbone; none if it was asked to stop.
fn gather(
    task: &TrainingTask<'_>,
    plan: Plan,
    samples: &[&Sample],
    backbone: &Resnet,
    observer: &mut dyn Observer,
) -> Result<Option<Gathered>> {
    let TrainingTask { config, dataset, .. } = task;
    let mut gathering = Gathering::new(plan, &config.probe);
    let goes_on = see(task, samples, backbone, "computing features", observer, |sample, maps| {
        gathering.push(maps, &config.probe).map_err(|NotFinite| not_finite(sample))
    })?;
    if !goes_on {
        return Ok(None);
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

/// The descriptors of what the masks of the training images show; none if it was asked to stop, and
/// none of them if they are not wanted.
///
/// Images whose maps found no room in the memory pass through the backbone once more.
fn see_foreground(
    gathered: &Gathered,
    mask_heads: &MaskHeads,
    task: &TrainingTask<'_>,
    samples: &[&Sample],
    backbone: &Resnet,
    observer: &mut dyn Observer,
) -> Result<Option<Vec<Vec<f32>>>> {
    let Gathered { cells, class_maps, .. } = gathered;
    let config = &task.config.probe;
    if config.class_view == ClassView::Image {
        return Ok(Some(Vec::new()));
    }
    let describe =
        |image: usize, maps: &HalfMaps| maps.descriptor(&mask_heads.mask(cells, image, config));
    let mut descriptors: Vec<Vec<f32>> =
        class_maps.iter().enumerate().map(|(image, maps)| describe(image, maps)).collect();
    let rest = &samples[class_maps.len()..];
    let goes_on = see(task, rest, backbone, "looking through masks", observer, |_, maps| {
        let maps = HalfMaps::of(maps, &config.class_stages);
        descriptors.push(describe(descriptors.len(), &maps));
        Ok(())
    })?;
    Ok(goes_on.then_some(descriptors))
}

/// Gives what the stages of the backbone make of each image; whether it was not asked to stop.
fn see(
    task: &TrainingTask<'_>,
    samples: &[&Sample],
    backbone: &Resnet,
    what: &'static str,
    observer: &mut dyn Observer,
    mut give: impl FnMut(&Sample, &StageMaps) -> Result<()>,
) -> Result<bool> {
    let mut images = images(task, samples).images();
    for (done, sample) in samples.iter().enumerate() {
        let Some(image) = images.next_unless(|| observer.wants_to_stop()) else {
            return Ok(false);
        };
        observer.observe(&Event::Working { what, done, total: samples.len() });
        let EvalImage { input, geometry, .. } = image?;
        let size = geometry.padded.rows_columns();
        let maps = StageMaps::of(backbone, input, size, &task.config.probe, &task.device);
        give(sample, &maps)?;
        maps.reuse();
    }
    Ok(true)
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

/// Trains the heads that masks are made by; none if the observer asked to stop.
fn train_mask_heads(
    cells: &LabelledCells,
    task: &TrainingTask<'_>,
    observer: &mut dyn Observer,
) -> Option<MaskHeads> {
    let Config { probe, seed, .. } = task.config;
    MaskHeads::train(cells, probe, *seed, |done, total| {
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
