//! Shuffled, varied batches to learn from.

use std::{
    panic::resume_unwind,
    path::Path,
    sync::{Arc, Mutex, PoisonError},
    thread,
    time::Duration,
};

use image::RgbImage;

use super::{Batches, cache::Cache, panicked};
use crate::{
    collective::Part,
    config::{AugmentConfig, Config, PreprocessConfig},
    data::{
        Sample,
        augment::{Variation, check_crop},
        image::read_rgb,
        preprocess::{Normalizer, Planes, Size, check_upscaled, rescale, working_size},
    },
    error::Result,
    ordered::{Ordered, Stopper},
    rng::{Purpose, Stream},
};

/// Batches that are ready or under way while the trainer works on another one.
const BATCHES_AHEAD: usize = 2;

/// Prepared images per worker that wait, as bytes, to be put into a batch.
const IMAGES_AHEAD: usize = 4;

/// Images and labels of one training step; what is known about masks cannot get here.
#[derive(Debug, Clone, PartialEq)]
pub struct Batch {
    /// Normalized pixels, `[B, 3, height, width]`.
    pub images: Vec<f32>,
    /// The class of each image.
    pub labels: Vec<usize>,
    /// Which samples of the split these are.
    pub samples: Vec<usize>,
    /// Height of each image in pixels.
    pub height: usize,
    /// Width of each image in pixels.
    pub width: usize,
    /// Whether this rank has no image of the batch, and an empty one stands in that does not count.
    pub blank: bool,
}

/// How training data is loaded; only `batch_size` and `seed` decide what is loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrainSettings {
    /// Images per batch; the last batch of an epoch may have fewer.
    pub batch_size: usize,
    /// Root of the random streams.
    pub seed: u64,
    /// Threads that decode and vary images, at least one.
    pub workers: usize,
    /// Memory for decoded images kept from one epoch to the next, in MiB; 0 keeps none.
    pub cache_mib: usize,
    /// Images above this many megapixels are refused.
    pub max_megapixels: u32,
    /// What of each batch is loaded; the others are other ranks'.
    pub part: Part,
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

impl TrainSettings {
    /// What the settings of a run say.
    pub fn new(config: &Config, workers: usize, part: Part) -> Self {
        let Config { seed, data, train, .. } = config;
        Self {
            batch_size: train.batch_size,
            seed: *seed,
            workers,
            cache_mib: data.cache_mib,
            max_megapixels: data.max_megapixels,
            part,
        }
    }
}

/// Loads the training split, epoch by epoch.
#[derive(Debug)]
pub struct TrainLoader {
    source: Arc<Source>,
}

/// What workers need to prepare any sample of any epoch.
#[derive(Debug)]
struct Source {
    samples: Arc<[Sample]>,
    preprocess: PreprocessConfig,
    augment: AugmentConfig,
    settings: TrainSettings,
    normalizer: Normalizer,
    cache: Cache,
}

/// A varied image, and what it was made from if there is room to keep that.
#[derive(Debug)]
struct Prepared {
    planes: Planes,
    to_keep: Option<Arc<RgbImage>>,
}

impl TrainLoader {
    /// Loads `samples`; the settings must have passed [`Config::check`](crate::config::Config).
    pub fn new(
        samples: Arc<[Sample]>,
        preprocess: PreprocessConfig,
        augment: AugmentConfig,
        settings: TrainSettings,
    ) -> Self {
        assert!(settings.batch_size > 0, "Config::check lets no empty batch through");
        let normalizer = Normalizer::new(preprocess.normalization);
        let cache = Cache::new(samples.len(), settings.cache_mib);
        Self {
            source: Arc::new(Source { samples, preprocess, augment, settings, normalizer, cache }),
        }
    }

    /// Batches in an epoch, a smaller last one included.
    pub fn batches(&self) -> usize {
        self.source.samples.len().div_ceil(self.source.settings.batch_size)
    }

    /// The batches of one epoch from `first_batch` on, prepared ahead in the background.
    ///
    /// The first image that fails ends the epoch with an error that names its file.
    pub fn epoch(&self, epoch: u64, first_batch: usize) -> Epoch {
        let source = &self.source;
        let TrainSettings { batch_size, workers, part, .. } = source.settings;
        let first = (first_batch.min(self.batches()) * batch_size).min(source.samples.len());
        let rest = source.order(epoch).split_off(first);
        let mine = |batch: &[usize]| batch[part.range(batch.len())].to_vec();
        let shares: Vec<Vec<usize>> = rest.chunks(batch_size).map(mine).collect();

        let images = Ordered::ahead(shares.concat(), workers, IMAGES_AHEAD * workers.max(1), {
            let source = Arc::clone(source);
            move |sample| source.prepare(sample, epoch)
        });
        let stopper = images.stopper();
        let batches = Ordered::ahead(shares, 1, BATCHES_AHEAD, {
            let (source, images) = (Arc::clone(source), Mutex::new(images));
            move |samples| {
                let mut images = images.lock().unwrap_or_else(PoisonError::into_inner);
                source.collect(samples, &mut images)
            }
        });
        Epoch { batches, images: stopper, failed: false }
    }
}

impl Source {
    /// The order in which an epoch visits the samples.
    fn order(&self, epoch: u64) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.samples.len()).collect();
        Stream::new(self.settings.seed, Purpose::Shuffle, epoch, 0).shuffle(&mut order);
        order
    }

    /// Decodes and varies one sample.
    fn prepare(&self, sample: usize, epoch: u64) -> Result<Prepared> {
        let path = &self.samples[sample].image;
        let decoded = match self.cache.get(sample) {
            Some(decoded) => decoded,
            None => Arc::new(self.decode(path)?),
        };
        let size = Size::of(&decoded);
        check_crop(path, size, &self.preprocess)?;
        let mut stream = Stream::new(self.settings.seed, Purpose::Augment, epoch, sample as u64);
        let variation = Variation::draw(size, &self.preprocess, &self.augment, &mut stream);
        let planes = variation.apply(&decoded);
        Ok(Prepared { planes, to_keep: self.cache.wants(sample, &decoded).then_some(decoded) })
    }

    fn decode(&self, path: &Path) -> Result<RgbImage> {
        let (short_side, limit) =
            (self.preprocess.upscale_short_side, self.settings.max_megapixels);
        let image = read_rgb(path, limit)?;
        check_upscaled(path, Size::of(&image), short_side, limit)?;
        let wanted = working_size(Size::of(&image), &self.preprocess);
        Ok(rescale(&image, wanted).unwrap_or(image))
    }

    /// Takes the next image for each of the samples; `None` if they end before.
    fn collect(
        &self,
        samples: Vec<usize>,
        images: &mut Ordered<usize, Result<Prepared>>,
    ) -> Option<Result<Batch>> {
        let side = self.preprocess.crop as usize;
        if samples.is_empty() {
            let (images, labels, samples) = (vec![0.0; 3 * side * side], vec![0], vec![0]);
            let blank = Batch { images, labels, samples, height: side, width: side, blank: true };
            return Some(Ok(blank));
        }
        let mut values = Vec::with_capacity(samples.len() * 3 * side * side);
        for &sample in &samples {
            match self.outcome(sample, images.next()?) {
                Ok(Prepared { planes, to_keep }) => {
                    self.normalizer.append(&planes, &mut values);
                    self.cache.keep(sample, to_keep);
                }
                Err(error) => return Some(Err(error)),
            }
        }
        let labels = samples.iter().map(|&sample| self.samples[sample].label).collect();
        Some(Ok(Batch { images: values, labels, samples, height: side, width: side, blank: false }))
    }

    fn outcome(&self, sample: usize, worker: thread::Result<Result<Prepared>>) -> Result<Prepared> {
        worker.unwrap_or_else(|panic| Err(panicked(&self.samples[sample].image, &*panic)))
    }
}

/// The batches of one epoch; dropping it ends the work in the background.
#[derive(Debug)]
pub struct Epoch {
    /// `None` stands for a batch that was given up because the epoch ended early.
    batches: Ordered<Vec<usize>, Option<Result<Batch>>>,
    images: Stopper<usize, Result<Prepared>>,
    /// Batches prepared ahead of a failure are nobody's any more.
    failed: bool,
}

impl Batches for Epoch {
    fn wait(&self, patience: Duration) -> bool {
        self.failed || self.batches.wait(patience)
    }
}

impl Iterator for Epoch {
    type Item = Result<Batch>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let batch = self.batches.next()?.unwrap_or_else(|panic| resume_unwind(panic))?;
        if batch.is_err() {
            self.failed = true;
            self.images.stop();
        }
        Some(batch)
    }
}

impl Drop for Epoch {
    fn drop(&mut self) {
        // The thread that fills batches may be waiting for an image.
        self.images.stop();
    }
}
