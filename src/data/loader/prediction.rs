//! Images to predict: small ones prepared ahead, large ones when their turn comes.

use std::{path::PathBuf, time::Duration, vec};

use super::{
    evaluation::{EvalImage, EvalSettings, read_for_evaluation},
    panicked,
};
use crate::{
    config::PreprocessConfig,
    data::{
        image::read_size,
        preprocess::{EvalGeometry, Size},
    },
    error::Result,
    ordered::Ordered,
};

/// How far an image has been prepared.
#[derive(Debug)]
pub enum Prepared {
    /// All the way.
    Ready(EvalImage),
    /// Not at all: too large for several of its kind to be held.
    Large,
}

/// Prepares `images` in order and in the background, except those of more than `max_pixels`.
///
/// An image that fails is an error that names its file; the others still follow.
/// Memory is bounded by `max_pixels` and the number of workers, whatever the images.
pub fn prefetch(
    images: Vec<PathBuf>,
    preprocess: PreprocessConfig,
    settings: EvalSettings,
    max_pixels: usize,
) -> Prefetch {
    let workers = settings.workers.max(1);
    let paths = images.clone();
    let prepared = Ordered::ahead(0..images.len(), workers, workers + 1, move |index| {
        let (path, limit) = (&images[index], settings.max_megapixels);
        let (width, height) = read_size(path, limit)?;
        let EvalGeometry { original, padded, .. } =
            EvalGeometry::new(Size { width, height }, &preprocess);
        if original.area().max(padded.area()) > max_pixels {
            return Ok(Prepared::Large);
        }
        let image = read_for_evaluation(path, &preprocess, limit)?;
        Ok(Prepared::Ready(EvalImage { index, ..image }))
    });
    Prefetch { paths: paths.into_iter(), prepared }
}

/// Images being prepared in the background, in order.
#[derive(Debug)]
pub struct Prefetch {
    paths: vec::IntoIter<PathBuf>,
    prepared: Ordered<usize, Result<Prepared>>,
}

impl Prefetch {
    /// Waits for the next image, but no longer than this; whether it would come at once now.
    pub fn wait(&self, patience: Duration) -> bool {
        self.prepared.wait(patience)
    }
}

impl Iterator for Prefetch {
    type Item = Result<Prepared>;

    fn next(&mut self) -> Option<Self::Item> {
        let (path, worker) = (self.paths.next()?, self.prepared.next()?);
        Some(worker.unwrap_or_else(|panic| Err(panicked(&path, &*panic))))
    }
}
