//! One image, its truth and its map, small enough to be put on a page.

use image::{
    ExtendedColorType, GrayImage, ImageEncoder, RgbImage,
    codecs::{jpeg::JpegEncoder, png::PngEncoder},
    imageops::{self, FilterType},
};

use crate::{data::mask::Mask, evaluate::Case};

/// Longer side of what is shown, in pixels; smaller images are shown as they are.
const SIDE: u32 = 256;
/// Stands for a pixel without predicted_class; foreground is 255, background 0.
const IGNORED: u8 = 128;

/// Files of one size, in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exhibit {
    /// The image, as JPEG.
    pub image: Vec<u8>,
    /// The score map, as grey PNG: 255 is 1.
    pub map: Vec<u8>,
    /// The truth, as grey PNG: 255 is foreground, 128 ignored; none if it is not known.
    pub truth: Option<Vec<u8>>,
}

impl Exhibit {
    /// Makes an image small.
    pub fn of(case: &Case<'_>) -> Self {
        let (width, height) = case.image.dimensions();
        let size = shrunk(width, height);
        let picture = imageops::resize(case.image, size.0, size.1, FilterType::Triangle);
        let levels = case.map.iter().map(|score| (score * 255.0).round() as u8).collect();
        let map = GrayImage::from_raw(width, height, levels).expect("a score for each pixel");
        Self {
            image: jpeg(&picture),
            map: png(&imageops::resize(&map, size.0, size.1, FilterType::Triangle)),
            truth: case.truth.map(|truth| png(&shrunk_truth(truth, size))),
        }
    }

    /// The image and its map, decoded, and the truth.
    pub fn decode(&self) -> Option<(RgbImage, Vec<f32>, Option<Mask>)> {
        let grey = |bytes: &[u8]| Some(image::load_from_memory(bytes).ok()?.into_luma8());
        let picture = image::load_from_memory(&self.image).ok()?.into_rgb8();
        let map = grey(&self.map)?.into_raw().iter().map(|v| f32::from(*v) / 255.0).collect();
        let truth = self.truth.as_deref().and_then(grey).map(|truth| Mask {
            width: truth.width(),
            height: truth.height(),
            foreground: truth.as_raw().iter().map(|value| *value == u8::MAX).collect(),
            ignored: Some(truth.as_raw().iter().map(|value| *value == IGNORED).collect()),
        });
        Some((picture, map, truth))
    }
}

fn shrunk(width: u32, height: u32) -> (u32, u32) {
    let longer = u64::from(width.max(height).max(SIDE));
    let side = |length: u32| ((u64::from(length) * u64::from(SIDE) / longer) as u32).max(1);
    (side(width), side(height))
}

/// Each pixel has the predicted_class at its centre, so that no predicted_class is made up.
fn shrunk_truth(truth: &Mask, (width, height): (u32, u32)) -> GrayImage {
    GrayImage::from_fn(width, height, |x, y| {
        let source = |at: u32, of: u32, all: u32| {
            ((2 * u64::from(at) + 1) * u64::from(all) / (2 * u64::from(of))) as usize
        };
        let (x, y) = (source(x, width, truth.width), source(y, height, truth.height));
        let at = y * truth.width as usize + x;
        let ignored = truth.ignored.as_ref().is_some_and(|ignored| ignored[at]);
        image::Luma([match (truth.foreground[at], ignored) {
            (true, _) => u8::MAX,
            (false, true) => IGNORED,
            (false, false) => 0,
        }])
    })
}

/// The bytes of a JPEG file, small rather than exact.
pub(in crate::report) fn jpeg(image: &RgbImage) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut encoder = JpegEncoder::new_with_quality(&mut bytes, 85);
    encoder.encode_image(image).expect("an RGB image in memory can be written to memory");
    bytes
}

fn png(image: &GrayImage) -> Vec<u8> {
    let mut bytes = Vec::new();
    PngEncoder::new(&mut bytes)
        .write_image(image, image.width(), image.height(), ExtendedColorType::L8)
        .expect("a grey image in memory can be written to memory");
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_images_shrink_and_small_ones_stay() {
        assert_eq!(shrunk(1024, 512), (256, 128));
        assert_eq!(shrunk(100, 30), (100, 30));
        assert_eq!(shrunk(100_000, 1), (256, 1));
    }

    #[test]
    fn truth_keeps_its_three_verdicts() {
        let truth = Mask {
            width: 4,
            height: 2,
            foreground: vec![true, true, false, false, true, true, false, false],
            ignored: Some(vec![false, false, false, true, false, false, false, true]),
        };
        assert_eq!(shrunk_truth(&truth, (4, 2)).as_raw()[..4], [255, 255, 0, 128]);
        assert_eq!(shrunk_truth(&truth, (2, 1)).as_raw(), &[255, 128]);
    }
}
