//! The training of a probe: one pass of the frozen backbone over the images, then its heads.
//!
//! The checkpoint holds the frozen backbone alone, so that a stopped run is resumed without the
//! weight file; all else is computed again, to the same bytes, as that takes a minute. Features
//! that were computed beforehand (see `features.rs`) are read instead.

use std::{mem, ops::ControlFlow, path::Path, time::Instant};

use burn::tensor::Device;
use rayon::prelude::*;

use super::{
    Ending, Event, Observer, TrainingTask,
    core_shares::CoreShares,
    eval_images,
    features::{FeatureImage, Origin, StoredFeatures, features_of},
    start::require_same_samples,
    validate::{Validation, validate},
};
use crate::{
    config::{ClassView, Config},
    data::{Dataset, Sample, Split, loader::EvalImage},
    error::{Error, Result},
    method::{
        ImageValidation,
        probe::{
            self, ClassHead, Descriptors, Gathered, Gatherer, ImageFeatures, MaskHeads, MemoryPlan,
            Probe,
        },
    },
    model::{
        footprint::images_at_a_time,
        resnet::Resnet,
        weights::{self, Arrays},
    },
    ordered::OrderedJobs,
    rng::{Purpose, Stream},
    run::{
        Best, Checkpoint, EpochRecord, Position, RunDir, WeightsNote, link_atomically,
        write_atomically_by,
    },
};

/// The warning if no weights are given.
const NO_WEIGHTS: &str = "no `--weights` were given, so the frozen backbone keeps weights that \
    were drawn at random, which see little: give ImageNet weights (`pinpoint weights` says where \
    they are)";

/// Trains a probe, or resumes its training.
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
        None => open_backbone(task.config, task.weights, &task.device, observer)?,
    };
    let (plan, order) = plan_images(task.dataset, task.config);
    let samples: Vec<&Sample> = order.iter().map(|&index| &task.dataset.train[index]).collect();
    let origin = Origin::new(task.config, inputs.weights.as_ref(), plan.cells, task.every_byte);
    let stored =
        task.features.map(|folder| StoredFeatures::open(folder, &origin, &samples)).transpose()?;
    // Images that cannot be read or settings that cannot work mostly fail at the first image.
    let mut first = eval_images(vec![task.dataset.train[0].image.clone()], task.config, 1);
    match first.next_unless(|| observer.wants_to_stop()) {
        Some(image) => drop(image?),
        None => return Ok(Ending::Interrupted),
    }
    run.begin(task.config, Some(&inputs))?;
    let path = run.save(&backbone, Arrays::new(), &position)?;
    observer.observe(&Event::Saved(&path));

    let features = FeatureSource { task, plan, samples: &samples, backbone, stored };
    let Some((probe, train_error)) = learn(features, started, observer)? else {
        return Ok(Ending::Interrupted);
    };
    let score = |image: &EvalImage, sample: &Sample| {
        let size = image.geometry.padded.rows_columns();
        let found = probe.localize(image.input.clone(), size).classifier.unwrap_or_default();
        Ok(Some(ImageValidation::of(&found, sample.label)))
    };
    let ControlFlow::Continue(valid) = validate(task, || observer.wants_to_stop(), score)? else {
        return Ok(Ending::Interrupted);
    };

    let record = EpochRecord {
        train_error,
        localizer_passes: 1.0,
        valid_error: valid.map(|found| found.error),
        valid_loss: valid.map(|found| found.loss),
        best: true,
        seconds: started.elapsed().as_secs_f64(),
        ..EpochRecord::default()
    };
    position.best = valid.map(|Validation { error, loss, .. }| Best { epoch: 0, error, loss });
    position.epoch = 1;
    position.records.push(record);
    let note = WeightsNote::new(task.config, &task.dataset.classes, position.epoch);
    let arrays = probe.to_arrays();
    write_atomically_by(&run.best(), |file| weights::write(file, &arrays, &note))?;
    link_atomically(&run.best(), &run.last())?;
    run.write_metrics(&position.records)?;
    if let Some(Validation { error, .. }) = valid {
        let note = format!("{error:.1} % of validation images are misclassified");
        observer.observe(&Event::Note(&note));
    }
    // The checkpoint last: if killed before it, everything is computed again.
    let path = run.save_finished(&position)?;
    observer.observe(&Event::Saved(&path));
    Ok(Ending::Finished(position.best.map(|best| best.epoch)))
}

/// Trains all heads, one kind after the other; gives the probe and its error on the training
/// images, in percent. `None` if asked to stop.
fn learn(
    features: FeatureSource<'_>,
    started: Instant,
    observer: &mut dyn Observer,
) -> Result<Option<(Probe, f64)>> {
    let TrainingTask { config, device, .. } = features.task;
    let Some(gathered) = gather(&features, observer)? else {
        return Ok(None);
    };
    let features_done = started.elapsed().as_secs_f64();
    let goes_on = |done, total| {
        observer.observe(&Event::Working { what: "training heads", done, total });
        !observer.wants_to_stop()
    };
    let Some(mask_heads) = MaskHeads::train(&gathered.cells, &config.probe, config.seed, goes_on)
    else {
        return Ok(None);
    };
    let Some(foreground) = foreground_descriptors(&features, &gathered, &mask_heads, observer)?
    else {
        return Ok(None);
    };
    let Gathered { projection, cells, descriptors: image, last_stage, .. } = gathered;
    let descriptors = Descriptors { image, foreground, last_stage };
    let view = config.probe.class_view;
    let (class_head, held_out_error) =
        ClassHead::train(&descriptors, &cells.labels, cells.classes, view, config.seed);
    let mut found = format!(
        "features in {features_done:.1} s, heads in {:.1} s; maps are cut with β = {:.2} and α = {:.2}",
        started.elapsed().as_secs_f64() - features_done,
        mask_heads.cut_rule.beta,
        mask_heads.cut_rule.alpha
    );
    if let Some(error) = held_out_error {
        found += &format!("; {error:.1} % of held-out training images are misclassified");
    }
    observer.observe(&Event::Note(&found));
    let train_error = class_head.error(&descriptors, &cells.labels);
    let (backbone, config, device) = (features.backbone, (*config).clone(), device.clone());
    let probe = Probe { backbone, projection, mask_heads, class_head, config, device };
    Ok(Some((probe, train_error)))
}

/// The backbone with the given weights, or with random ones.
pub(super) fn open_backbone(
    config: &Config,
    weights: Option<&Path>,
    device: &Device,
    observer: &mut dyn Observer,
) -> Result<Resnet> {
    let model = probe::backbone(&config.model);
    let Some(path) = weights else {
        observer.observe(&Event::Warning(NO_WEIGHTS));
        return Ok(Resnet::drawn(&model, config.seed, device));
    };
    // The file must have every tensor of the backbone, so that no random ones are needed.
    let blank = Resnet::new(&model, device);
    let (backbone, report) = weights::load(blank, path, weights::read(path)?)?;
    observer.observe(&Event::Note(&report.to_string()));
    Ok(backbone)
}

/// Refuses a dataset that no head could learn from.
fn require_enough(dataset: &Dataset) -> Result<()> {
    let counts = dataset.class_counts(Split::Train);
    if counts.iter().filter(|&&count| count > 1).count() >= 2 {
        return Ok(());
    }
    let problem = "fewer than two classes have two training images or more, so that nothing can be \
                   learned on some images and tested on others";
    Err(Error::data(&dataset.root, problem, "add images, or merge classes"))
}

/// How much of the training images is kept, and which of them are used: in random order, one of
/// each class in turn, so that the first ones represent all classes.
fn plan_images(dataset: &Dataset, config: &Config) -> (MemoryPlan, Vec<usize>) {
    let plan = MemoryPlan::new(dataset.train.len(), &config.probe);
    let mut order: Vec<usize> = (0..dataset.train.len()).collect();
    Stream::new(config.seed, Purpose::Shuffle, 0, 0).shuffle(&mut order);
    let mut seen = vec![0_usize; dataset.classes.len()];
    let turn = |image: usize| {
        let seen = &mut seen[dataset.train[image].label];
        (mem::replace(seen, *seen + 1), image)
    };
    let mut turns: Vec<(usize, usize)> = order.into_iter().map(turn).collect();
    // Stable, so that the classes of a turn come in random order.
    turns.sort_by_key(|&(turn, _)| turn);
    (plan, turns.into_iter().take(plan.images).map(|(_, image)| image).collect())
}

/// The images whose features a training of a probe needs, in the order of the dataset, and how many
/// cells of each it keeps.
pub fn wanted_features(dataset: &Dataset, config: &Config) -> Result<(Vec<FeatureImage>, usize)> {
    require_enough(dataset)?;
    let (plan, mut order) = plan_images(dataset, config);
    order.sort_unstable();
    let image = |index: usize| {
        let Sample { id, image, .. } = &dataset.train[index];
        FeatureImage { id: id.clone(), path: image.clone() }
    };
    Ok((order.into_iter().map(image).collect(), plan.cells))
}

/// Computes or reads the features of the images that are used.
struct FeatureSource<'a> {
    task: &'a TrainingTask<'a>,
    plan: MemoryPlan,
    samples: &'a [&'a Sample],
    backbone: Resnet,
    /// Features that were computed beforehand; `None` if each image is passed through the backbone.
    stored: Option<StoredFeatures>,
}

impl FeatureSource<'_> {
    /// Calls `give` with the features of every sample from the `first` on; `false` if asked to
    /// stop.
    fn for_each(
        &self,
        first: usize,
        observer: &mut dyn Observer,
        mut give: impl FnMut(ImageFeatures),
    ) -> Result<bool> {
        let Self { task, plan, samples, backbone, stored } = self;
        let (what, decoded) = match stored {
            Some(_) => ("reading features", &[][..]),
            None => ("computing features", &samples[first..]),
        };
        let paths = decoded.iter().map(|sample| sample.image.clone()).collect();
        let mut images = eval_images(paths, task.config, task.workers);
        let at_a_time = images_at_a_time(&task.config.preprocess);
        let shares = CoreShares::new(at_a_time);
        let features = |(index, image): (usize, Option<EvalImage>)| match (image, stored) {
            (None, Some(stored)) => stored.read(index),
            (image, _) => shares.run(|| {
                let image = image.expect("without stored features, images are decoded");
                let (probe, path) = (&task.config.probe, &samples[index].image);
                features_of(backbone, image, plan.cells, probe, &task.device, path)
            }),
        };
        let total = samples.len() - first;
        let mut counts = 0..total;
        let mut tell = |observer: &mut dyn Observer| {
            if let Some(done) = counts.next() {
                observer.observe(&Event::Working { what, done, total });
            }
        };
        tell(observer);
        let mut take = |features: Result<ImageFeatures>, observer: &mut dyn Observer| {
            give(features?);
            tell(observer);
            Ok(())
        };
        OrderedJobs::scoped(at_a_time, at_a_time, &features, |queue| {
            for index in first..samples.len() {
                if observer.wants_to_stop() {
                    return Ok(false);
                }
                let image = match stored {
                    Some(_) => None,
                    None => match images.next_unless(|| observer.wants_to_stop()) {
                        Some(image) => Some(image?),
                        None => return Ok(false),
                    },
                };
                queue.push((index, image));
                while let Some(features) = queue.ready() {
                    take(features, observer)?;
                }
            }
            queue.try_for_each(|features| take(features, observer))?;
            Ok(true)
        })
    }
}

/// Gathers the features of all images; `None` if asked to stop.
fn gather(features: &FeatureSource<'_>, observer: &mut dyn Observer) -> Result<Option<Gathered>> {
    let FeatureSource { task: TrainingTask { config, dataset, .. }, plan, samples, .. } = features;
    if samples.len() < dataset.train.len() {
        let note = format!(
            "{} of {} training images are used: `probe.memory_mib` has no room for more",
            samples.len(),
            dataset.train.len()
        );
        observer.observe(&Event::Note(&note));
    }
    let mut gatherer = Gatherer::new(*plan, &config.probe);
    if !features.for_each(0, observer, |image| gatherer.push(image))? {
        return Ok(None);
    }
    let labels = samples.iter().map(|sample| sample.label).collect();
    let gathered = gatherer.finish(labels, dataset.classes.len());
    if gathered.cells.dimensions == 0 {
        let problem = "the training images look the same everywhere, so there is nothing to learn";
        let remedy = "check the images, and the weights if others were given";
        return Err(Error::data(&dataset.root, problem, remedy));
    }
    Ok(Some(gathered))
}

/// The descriptors of the foregrounds of the training images, an empty list if they are not needed;
/// `None` if asked to stop.
///
/// Images whose maps had no room in memory are passed through the backbone again.
fn foreground_descriptors(
    features: &FeatureSource<'_>,
    gathered: &Gathered,
    mask_heads: &MaskHeads,
    observer: &mut dyn Observer,
) -> Result<Option<Vec<Vec<f32>>>> {
    let Gathered { cells, class_maps, .. } = gathered;
    let config = &features.task.config.probe;
    if config.class_view == ClassView::Image {
        return Ok(Some(Vec::new()));
    }
    let mask = |image: usize| mask_heads.mask(cells, image, config);
    let kept = class_maps.par_iter().enumerate();
    let mut descriptors: Vec<Vec<f32>> =
        kept.map(|(image, maps)| maps.descriptor(&mask(image))).collect();
    let goes_on = features.for_each(class_maps.len(), observer, |image| {
        descriptors.push(image.class_maps.descriptor(&mask(descriptors.len())));
    })?;
    Ok(goes_on.then_some(descriptors))
}
