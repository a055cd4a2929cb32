//! Decoded images kept from one epoch to the next.

use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicUsize, Ordering::Relaxed},
};

use image::RgbImage;

/// Keeps decoded images up to a number of bytes.
///
/// Images are offered in the order in which the epoch visits them, by one thread
/// at a time; which of them are kept is therefore the same in every run.
#[derive(Debug)]
pub(super) struct Cache {
    images: Vec<OnceLock<Arc<RgbImage>>>,
    room: AtomicUsize,
}

impl Cache {
    pub(super) fn new(samples: usize, mebibytes: usize) -> Self {
        Self {
            images: (0..samples).map(|_| OnceLock::new()).collect(),
            room: AtomicUsize::new(mebibytes.saturating_mul(1 << 20)),
        }
    }

    pub(super) fn get(&self, sample: usize) -> Option<Arc<RgbImage>> {
        self.images[sample].get().cloned()
    }

    /// Whether the image is not kept yet and there is still room for it.
    pub(super) fn wants(&self, sample: usize, image: &RgbImage) -> bool {
        self.images[sample].get().is_none() && image.as_raw().len() <= self.room.load(Relaxed)
    }

    /// Keeps the image, if there is one and room for it.
    pub(super) fn keep(&self, sample: usize, image: Option<Arc<RgbImage>>) {
        let Some(image) = image.filter(|image| self.wants(sample, image)) else { return };
        let bytes = image.as_raw().len();
        let taken = |room: usize| room.checked_sub(bytes);
        if self.room.fetch_update(Relaxed, Relaxed, taken).is_ok() {
            // If another epoch has set it first, it has the same pixels.
            let _ = self.images[sample].set(image);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_are_kept_while_there_is_room() {
        let cache = Cache::new(3, 1);
        let image = |side| Some(Arc::new(RgbImage::new(side, side)));
        cache.keep(0, image(500)); // 750,000 of 1,048,576 bytes
        cache.keep(1, image(400)); // 480,000 do not fit
        cache.keep(2, image(300)); // 270,000 do
        let kept: Vec<bool> = (0..3).map(|sample| cache.get(sample).is_some()).collect();
        assert_eq!(kept, [true, false, true]);
    }
}
