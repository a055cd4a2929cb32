//! Whole images to evaluate or predict, one at a time.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use image::RgbImage;

use super::{naming, read_to_enlarge};
use crate::{
    config::PreprocessConfig,
    data::{
        image::read_size,
        preprocess::{EvalGeometry, Normalizer, Size},
    },
    error::Result,
    ordered::OrderedJobs,
};

/// One image, ready to be evaluated.
#[derive(Debug, Clone)]
pub struct EvalImage {
    /// The network's input `[3, H, W]`, at the geometry's padded size.
    pub input: Vec<f32>,
    /// The way from the input's pixels back to the image's.
    pub geometry: EvalGeometry,
    /// The image as it was decoded, for overlays and refinement.
    pub rgb: RgbImage,
}

/// Reads one image for evaluation.
pub fn read_for_evaluation(
    path: &Path,
    preprocess: &PreprocessConfig,
    max_megapixels: u32,
) -> Result<EvalImage> {
    let rgb = read_to_enlarge(path, preprocess, max_megapixels)?;
    let geometry = EvalGeometry::new(Size::of(&rgb), preprocess);
    let input = geometry.input(&rgb, &Normalizer::new(preprocess.normalization));
    Ok(EvalImage { input, geometry, rgb })
}

/// Images, preprocessed in the background and handed over in order; dropping it ends the work.
///
/// An image that fails is an error that names its file; the others still follow.
#[derive(Debug)]
pub struct EvalImages<T = EvalImage>(OrderedJobs<PathBuf, Result<T>>);

impl EvalImages {
    /// Prepares `images` by so many threads, at least one; the settings must have passed
    /// [`Config::check`](crate::config::Config).
    pub fn new(
        images: Vec<PathBuf>,
        preprocess: PreprocessConfig,
        max_megapixels: u32,
        workers: usize,
    ) -> Self {
        Self::ahead(images, workers, move |path| {
            read_for_evaluation(path, &preprocess, max_megapixels)
        })
    }
}

/// Preprocesses `images` in the background, except those of more than `max_pixels`, which are
/// `None`: several of them would not fit into memory.
///
/// Memory is bounded by `max_pixels` and the number of workers, whatever the images.
pub fn prefetch(
    images: Vec<PathBuf>,
    preprocess: PreprocessConfig,
    max_megapixels: u32,
    workers: usize,
    max_pixels: usize,
) -> EvalImages<Option<EvalImage>> {
    EvalImages::ahead(images, workers, move |path| {
        let (width, height) = read_size(path, max_megapixels)?;
        let EvalGeometry { original, padded, .. } =
            EvalGeometry::new(Size { width, height }, &preprocess);
        if original.area().max(padded.area()) > max_pixels {
            return Ok(None);
        }
        read_for_evaluation(path, &preprocess, max_megapixels).map(Some)
    })
}

/// How often `stop` is asked while an image is waited for.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

impl<T: Send + 'static> EvalImages<T> {
    fn ahead(
        images: Vec<PathBuf>,
        workers: usize,
        prepare: impl Fn(&Path) -> Result<T> + Send + Sync + 'static,
    ) -> Self {
        // One more than the workers: whole images are large, and one ready is enough.
        let window = workers.max(1) + 1;
        let prepare = move |path: PathBuf| naming(&path, || prepare(&path));
        Self(OrderedJobs::detached(images, workers, window, prepare))
    }

    /// The next image; `None` if `stop` becomes true while it is waited for.
    ///
    /// So stopping need not wait for a file that takes long to decode.
    pub fn next_unless(&mut self, stop: impl Fn() -> bool) -> Option<Result<T>> {
        while !stop() {
            if self.0.wait(POLL_INTERVAL) {
                return self.next();
            }
        }
        None
    }
}

impl<T> Iterator for EvalImages<T> {
    type Item = Result<T>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next()
    }
}
