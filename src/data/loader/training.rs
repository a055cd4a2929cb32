//! Shuffled, varied batches to learn from.

use std::{
    panic::resume_unwind,
    path::Path,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use image::RgbImage;

use super::{Batches, Supervision, cache::Cache, panicked, read_to_enlarge};
use crate::{
    collective::Part,
    config::Config,
    data::{
        Dataset, Sample,
        augment::{Variation, check_crop},
        preprocess::{Normalizer, Planes, Size, rescale, working_size},
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

/// What workers need to prepare any sample of any epoch.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) samples: Vec<Sample>,
    pub(super) config: Config,
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
    /// Loads a `part` of each batch of `samples`, by so many threads; the settings must have passed
    /// [`Config::check`].
    pub fn new(samples: Vec<Sample>, config: &Config, workers: usize, part: Part) -> Self {
        assert!(config.train.batch_size > 0, "Config::check lets no empty batch through");
        let normalizer = Normalizer::new(config.preprocess.normalization);
        let cache = Cache::new(samples.len(), config.data.cache_mib);
        let source = Source { samples, config: config.clone(), normalizer, cache };
        Self { source: Arc::new(source), workers, part }
    }
}

/// Labels, and nothing else.
impl Supervision for TrainLoader {
    type Batch = Batch;
    type Epoch = Epoch;
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
        let (source, workers) = (&self.source, self.workers);
        let batch_size = source.config.train.batch_size;
        let first = (first_batch.min(self.batches()) * batch_size).min(source.samples.len());
        let rest = source.order(epoch).split_off(first);
        let mine = |batch: &[usize]| batch[self.part.range(batch.len())].to_vec();
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
        Stream::new(self.config.seed, Purpose::Shuffle, epoch, 0).shuffle(&mut order);
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
        check_crop(path, size, &self.config.preprocess)?;
        let planes = self.variation(sample, epoch, size).apply(&decoded);
        Ok(Prepared { planes, to_keep: self.cache.wants(sample, &decoded).then_some(decoded) })
    }

    /// What is drawn for a sample, whose image has been brought to this size, in an epoch.
    pub(super) fn variation(&self, sample: usize, epoch: u64, size: Size) -> Variation {
        let Config { seed, preprocess, augment, .. } = &self.config;
        let mut stream = Stream::new(*seed, Purpose::Augment, epoch, sample as u64);
        Variation::draw(size, preprocess, augment, &mut stream)
    }

    fn decode(&self, path: &Path) -> Result<RgbImage> {
        let Config { preprocess, data, .. } = &self.config;
        let image = read_to_enlarge(path, preprocess, data.max_megapixels)?;
        let wanted = working_size(Size::of(&image), preprocess);
        Ok(rescale(&image, wanted).unwrap_or(image))
    }

    /// Takes the next image for each of the samples; `None` if they end before.
    fn collect(
        &self,
        samples: Vec<usize>,
        images: &mut Ordered<usize, Result<Prepared>>,
    ) -> Option<Result<Batch>> {
        let side = self.config.preprocess.crop as usize;
        if samples.is_empty() {
            let (images, labels, samples) = (vec![0.0; 3 * side * side], vec![0], vec![0]);
            let blank = Batch { images, labels, samples, height: side, width: side, blank: true };
            return Some(Ok(blank));
        }
        let mut values = Vec::with_capacity(samples.len() * 3 * side * side);
        for &sample in &samples {
            let path = &self.samples[sample].image;
            match images.next()?.unwrap_or_else(|panic| Err(panicked(path, &*panic))) {
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
