//! Shuffled, varied batches to learn from.

use std::{
    collections::VecDeque,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use image::RgbImage;

use super::{Supervision, cache::Cache, naming, read_to_enlarge};
use crate::{
    collective::Part,
    config::Config,
    data::{
        Dataset, Sample,
        augment::{Variation, check_crop},
        preprocess::{Normalizer, Planes, Size, check_smallest, rescale, working_size},
    },
    error::Result,
    ordered::OrderedJobs,
    rng::{Purpose, Stream},
};

/// Batches whose images are prepared while the trainer works on another one.
const BATCHES_AHEAD: usize = 2;

/// Images and labels of one training step; it has no field for masks.
#[derive(Debug, Clone, PartialEq)]
pub struct Batch {
    /// Normalized pixels, `[B, 3, height, width]`.
    pub images: Vec<f32>,
    /// The class of each image.
    pub labels: Vec<usize>,
    /// The index of each sample in the split.
    pub samples: Vec<usize>,
    /// Height of each image in pixels.
    pub height: usize,
    /// Width of each image in pixels.
    pub width: usize,
    /// Whether this rank has no image of the batch, and has a blank one instead, which does not
    /// count.
    pub blank: bool,
}

impl Batch {
    /// Images that count.
    pub fn count(&self) -> usize {
        if self.blank { 0 } else { self.labels.len() }
    }
}

impl AsRef<Self> for Batch {
    fn as_ref(&self) -> &Self {
        self
    }
}

/// Loads the training split, epoch by epoch.
#[derive(Debug)]
pub struct TrainLoader {
    pub(super) source: Arc<Source>,
    workers: usize,
    part: Part,
}

/// All that a worker needs to prepare a sample.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) samples: Vec<Sample>,
    pub(super) config: Config,
    normalizer: Normalizer,
    cache: Cache,
}

/// An augmented image, with the decoded one if the cache has room for it.
#[derive(Debug)]
struct Prepared {
    planes: Planes,
    to_keep: Option<Arc<RgbImage>>,
}

impl TrainLoader {
    /// Loads a `part` of each batch of `samples`, by so many threads; the settings must have passed
    /// [`Config::check`].
    pub fn new(samples: Vec<Sample>, config: &Config, workers: usize, part: Part) -> Self {
        assert!(config.train.batch_size > 0, "Config::check lets no empty batch through");
        let normalizer = Normalizer::new(config.preprocess.normalization);
        let cache = Cache::new(samples.len(), config.data.cache_mib);
        let source = Source { samples, config: config.clone(), normalizer, cache };
        Self { source: Arc::new(source), workers, part }
    }

    /// The batches of one epoch from `first_batch` on, each [completed](Epoch::complete).
    pub(super) fn epoch_of<B>(
        &self,
        epoch: u64,
        first_batch: usize,
        complete: impl Fn(&Source, Batch) -> Result<B> + 'static,
    ) -> Epoch<B> {
        let source = Arc::clone(&self.source);
        let batch_size = source.config.train.batch_size;
        let order = source.order(epoch);
        let mine = |batch: &[usize]| batch[self.part.range(batch.len())].to_vec();
        let batches = order.chunks(batch_size).skip(first_batch).map(mine);
        let batches: VecDeque<Vec<usize>> = batches.collect();

        let share = batches.front().map_or(0, Vec::len);
        let window = BATCHES_AHEAD * share + self.workers.max(1);
        let samples = batches.iter().flatten().copied().collect();
        let images = OrderedJobs::detached(samples, self.workers, window, {
            let source = Arc::clone(&source);
            move |sample| source.prepare(sample, epoch)
        });
        Epoch { source, batches, images, arrived: Vec::new(), complete: Box::new(complete) }
    }
}

/// Labels, and nothing else.
impl Supervision for TrainLoader {
    type Batch = Batch;
    type Truth = usize;

    fn open(dataset: &Dataset, config: &Config, workers: usize, part: Part) -> Result<Self> {
        Ok(Self::new(dataset.train.clone(), config, workers, part))
    }

    fn batches(&self) -> usize {
        self.source.samples.len().div_ceil(self.source.config.train.batch_size)
    }

    fn truth(&self, sample: &Sample, _: Size) -> Result<Option<usize>> {
        Ok(Some(sample.label))
    }

    fn epoch(&self, epoch: u64, first_batch: usize) -> Epoch {
        self.epoch_of(epoch, first_batch, |_, batch| Ok(batch))
    }
}

impl Source {
    /// The order in which an epoch visits the samples.
    fn order(&self, epoch: u64) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.samples.len()).collect();
        Stream::new(self.config.seed, Purpose::Shuffle, epoch, 0).shuffle(&mut order);
        order
    }

    /// Decodes and varies one sample.
    fn prepare(&self, sample: usize, epoch: u64) -> Result<Prepared> {
        let path = &self.samples[sample].image;
        naming(path, || {
            let decoded = match self.cache.get(sample) {
                Some(decoded) => decoded,
                None => Arc::new(self.decode(path)?),
            };
            let size = Size::of(&decoded);
            check_crop(path, size, &self.config.preprocess)?;
            let planes = self.variation(sample, epoch, size).apply(&decoded);
            Ok(Prepared { planes, to_keep: self.cache.wants(sample, &decoded).then_some(decoded) })
        })
    }

    /// The variation of a sample in an epoch; `size` is that of its resized image.
    pub(super) fn variation(&self, sample: usize, epoch: u64, size: Size) -> Variation {
        let Config { seed, preprocess, augment, .. } = &self.config;
        let mut stream = Stream::new(*seed, Purpose::Augment, epoch, sample as u64);
        Variation::draw(size, preprocess, augment, &mut stream)
    }

    fn decode(&self, path: &Path) -> Result<RgbImage> {
        let Config { preprocess, data, .. } = &self.config;
        let image = read_to_enlarge(path, preprocess, data.max_megapixels)?;
        check_smallest(path, Size::of(&image))?;
        let wanted = working_size(Size::of(&image), preprocess);
        Ok(rescale(&image, wanted).unwrap_or(image))
    }

    /// Puts the images of some samples into a batch, and keeps them for other epochs.
    fn batch(
        &self,
        samples: Vec<usize>,
        images: impl Iterator<Item = Result<Prepared>>,
    ) -> Result<Batch> {
        let side = self.config.preprocess.crop as usize;
        if samples.is_empty() {
            let (images, labels, samples) = (vec![0.0; 3 * side * side], vec![0], vec![0]);
            return Ok(Batch { images, labels, samples, height: side, width: side, blank: true });
        }
        let mut values = Vec::with_capacity(samples.len() * 3 * side * side);
        for (&sample, image) in samples.iter().zip(images) {
            let Prepared { planes, to_keep } = image?;
            self.normalizer.append(&planes, &mut values);
            self.cache.keep(sample, to_keep);
        }
        let labels = samples.iter().map(|&sample| self.samples[sample].label).collect();
        Ok(Batch { images: values, labels, samples, height: side, width: side, blank: false })
    }
}

/// The batches of one epoch; dropping it ends the work in the background.
pub struct Epoch<B = Batch> {
    source: Arc<Source>,
    /// The samples of the batches that are left.
    batches: VecDeque<Vec<usize>>,
    /// Their images, in the same order.
    images: OrderedJobs<usize, Result<Prepared>>,
    /// Images of the next batch that have arrived.
    arrived: Vec<Result<Prepared>>,
    complete: Box<Complete<B>>,
}

/// Completes a batch of images and labels to that of the supervision.
type Complete<B> = dyn Fn(&Source, Batch) -> Result<B>;

impl<B> Epoch<B> {
    /// Waits for the images of the next batch, but no longer than this; whether they are there.
    pub fn wait(&mut self, timeout: Duration) -> bool {
        let end = Instant::now() + timeout;
        let wanted = self.batches.front().map_or(0, Vec::len);
        while self.arrived.len() < wanted {
            if !self.images.wait(end.saturating_duration_since(Instant::now())) {
                return false;
            }
            self.arrived.extend(self.images.next());
        }
        true
    }
}

impl<B> Iterator for Epoch<B> {
    type Item = Result<B>;

    fn next(&mut self) -> Option<Self::Item> {
        let samples = self.batches.pop_front()?;
        let images = self.arrived.drain(..).chain(&mut self.images);
        let batch = self.source.batch(samples, images);
        if batch.is_err() {
            // The epoch ends at an image that failed.
            self.batches.clear();
        }
        Some(batch.and_then(|batch| (self.complete)(&self.source, batch)))
    }
}
