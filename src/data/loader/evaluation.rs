//! Whole images to evaluate, one at a time.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use image::RgbImage;

use super::panicked;
use crate::{
    config::PreprocessConfig,
    data::{
        image::read_rgb,
        preprocess::{EvalGeometry, Normalizer, Size, check_upscaled},
    },
    error::Result,
    ordered::Ordered,
};

/// One image, ready to be evaluated.
#[derive(Debug, Clone)]
pub struct EvalImage {
    /// Position in the list of images.
    pub index: usize,
    /// The network's input `[3, H, W]`, at the geometry's padded size.
    pub input: Vec<f32>,
    /// The way from the input's pixels back to the image's.
    pub geometry: EvalGeometry,
    /// The image as it was decoded, for overlays and refinement.
    pub rgb: RgbImage,
}

/// How images are loaded for evaluation; nothing here changes what is loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EvalSettings {
    /// Threads that decode images, at least one.
    pub workers: usize,
    /// Images above this many megapixels are refused.
    pub max_megapixels: u32,
}

/// Loads images for evaluation, in order.
#[derive(Debug)]
pub struct EvalLoader {
    source: Arc<Source>,
}

#[derive(Debug)]
struct Source {
    images: Vec<PathBuf>,
    preprocess: PreprocessConfig,
    settings: EvalSettings,
}

impl EvalLoader {
    /// Loads `images`; the settings must have passed [`Config::check`](crate::config::Config).
    pub fn new(images: Vec<PathBuf>, preprocess: PreprocessConfig, settings: EvalSettings) -> Self {
        Self { source: Arc::new(Source { images, preprocess, settings }) }
    }

    /// Every image in order, prepared ahead in the background.
    ///
    /// An image that fails is an error that names its file; the others still follow.
    pub fn images(&self) -> EvalImages {
        let source = Arc::clone(&self.source);
        let workers = source.settings.workers.max(1);
        // One more than the workers: whole images are large, and one ready is enough.
        let images = Ordered::ahead(0..source.images.len(), workers, workers + 1, move |index| {
            let Source { images, preprocess, settings } = &*source;
            read_for_evaluation(&images[index], preprocess, settings.max_megapixels)
                .map(|image| EvalImage { index, ..image })
        });
        EvalImages { images, source: Arc::clone(&self.source), index: 0 }
    }
}

/// Reads one image for evaluation, as `index` 0.
pub fn read_for_evaluation(
    path: &Path,
    preprocess: &PreprocessConfig,
    max_megapixels: u32,
) -> Result<EvalImage> {
    let rgb = read_rgb(path, max_megapixels)?;
    let original = Size::of(&rgb);
    check_upscaled(path, original, preprocess.upscale_short_side, max_megapixels)?;
    let geometry = EvalGeometry::new(original, preprocess);
    let input = geometry.input(&rgb, &Normalizer::new(preprocess.normalization));
    Ok(EvalImage { index: 0, input, geometry, rgb })
}

/// The images of an [`EvalLoader`]; dropping it ends the work in the background.
#[derive(Debug)]
pub struct EvalImages {
    images: Ordered<usize, Result<EvalImage>>,
    source: Arc<Source>,
    index: usize,
}

/// How often a wish to stop is asked for while an image is waited for.
const PATIENCE: Duration = Duration::from_millis(100);

impl EvalImages {
    /// The next image, unless `stop` says so while it is waited for.
    ///
    /// A file that takes long to decode must not keep a wish to stop waiting.
    pub fn next_unless(&mut self, stop: impl Fn() -> bool) -> Option<Result<EvalImage>> {
        while !stop() {
            if self.images.wait(PATIENCE) {
                return self.next();
            }
        }
        None
    }
}

impl Iterator for EvalImages {
    type Item = Result<EvalImage>;

    fn next(&mut self) -> Option<Self::Item> {
        let worker = self.images.next()?;
        let path = &self.source.images[self.index];
        self.index += 1;
        Some(worker.unwrap_or_else(|panic| Err(panicked(path, &*panic))))
    }
}
