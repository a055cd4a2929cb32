//! Pictures as files, and words on them.

use image::{
    ExtendedColorType, ImageBuffer, ImageEncoder, Pixel, PixelWithColorType, Rgb, RgbImage,
    codecs::{
        jpeg::JpegEncoder,
        png::{CompressionType, FilterType, PngEncoder},
    },
    imageops,
};
use noto_sans_mono_bitmap::{FontWeight, RasterHeight, get_raster, get_raster_width};

/// A colour from its usual hexadecimal notation, `0xRRGGBB`.
pub(super) const fn rgb(hex: u32) -> Rgb<u8> {
    let [_, red, green, blue] = hex.to_be_bytes();
    Rgb([red, green, blue])
}

/// `top` laid over `bottom`; an `alpha` of 1 hides the bottom.
pub(super) fn blend(bottom: Rgb<u8>, top: Rgb<u8>, alpha: f32) -> Rgb<u8> {
    let mix = |b: u8, t: u8| (f32::from(b) * (1.0 - alpha) + f32::from(t) * alpha).round() as u8;
    Rgb(std::array::from_fn(|channel| mix(bottom[channel], top[channel])))
}

/// An image as the bytes of a PNG file.
pub fn encode_png(image: &RgbImage) -> Vec<u8> {
    let mut bytes = Vec::new();
    let encoder =
        PngEncoder::new_with_quality(&mut bytes, CompressionType::Default, FilterType::Adaptive);
    image.write_with_encoder(encoder).expect("an image in memory can be written to memory");
    bytes
}

/// Brightnesses in rows of `width` as the bytes of a grey PNG file.
pub fn encode_grey_png(width: u32, pixels: &[u8]) -> Vec<u8> {
    let height = (pixels.len() / width as usize) as u32;
    let mut bytes = Vec::new();
    // Masks are runs of few values, which hardly get smaller with more effort.
    PngEncoder::new_with_quality(&mut bytes, CompressionType::Fast, FilterType::NoFilter)
        .write_image(pixels, width, height, ExtendedColorType::L8)
        .expect("whole rows in memory can be written to memory");
    bytes
}

/// An image as the bytes of a JPEG file: of the best quality that fits into `budget` bytes, or of
/// the lowest if none does.
pub(super) fn encode_jpeg<P>(image: &ImageBuffer<P, Vec<u8>>, budget: usize) -> Vec<u8>
where
    P: Pixel<Subpixel = u8> + PixelWithColorType,
{
    let mut bytes = Vec::new();
    for quality in [85, 70, 55, 40, 25] {
        bytes.clear();
        let encoder = JpegEncoder::new_with_quality(&mut bytes, quality);
        image.write_with_encoder(encoder).expect("an image in memory can be written to memory");
        if bytes.len() <= budget {
            break;
        }
    }
    bytes
}

/// The size of an image whose longer side is brought to at most `side` pixels.
pub(super) fn shrunk((width, height): (u32, u32), side: u32) -> (u32, u32) {
    let longer = u64::from(width.max(height).max(side));
    let scaled = |length: u32| ((u64::from(length) * u64::from(side) / longer) as u32).max(1);
    (scaled(width), scaled(height))
}

/// The image with its longer side brought to at most `side` pixels.
pub(super) fn thumbnail(image: &RgbImage, side: u32) -> RgbImage {
    let (width, height) = shrunk(image.dimensions(), side);
    imageops::resize(image, width, height, imageops::FilterType::Triangle)
}

/// Height of the letters' boxes, in pixels.
const LETTERS: RasterHeight = RasterHeight::Size20;

/// Writes one line into the top left corner, light on dark, and larger on large images.
///
/// What does not fit is cut; a letter that the font has not is a question mark. Images too small
/// for a few letters stay as they are.
pub(super) fn label(image: &mut RgbImage, text: &str) {
    let letter_width = get_raster_width(FontWeight::Regular, LETTERS) as u32;
    let scale = (image.width().min(image.height()) / 500).max(1);
    let margin = 3 * scale;
    let (width, height) = image.dimensions();
    let room = width.saturating_sub(2 * margin) / (letter_width * scale);
    let line = LETTERS.val() as u32 * scale + 2 * margin;
    if room < 4 || 2 * line > height {
        return;
    }
    let shown: Vec<char> = match text.chars().count() as u32 {
        letters if letters <= room => text.chars().collect(),
        _ => text.chars().take(room as usize - 2).chain("..".chars()).collect(),
    };
    let box_width = shown.len() as u32 * letter_width * scale + 2 * margin;
    let mut paint = |x: u32, y: u32, colour, alpha| {
        let pixel = image.get_pixel_mut(x, y);
        *pixel = blend(*pixel, colour, alpha);
    };
    for y in 0..line {
        (0..box_width).for_each(|x| paint(x, y, rgb(0), 0.65));
    }
    for (place, letter) in (0..).zip(shown) {
        let raster = get_raster(letter, FontWeight::Regular, LETTERS)
            .or_else(|| get_raster('?', FontWeight::Regular, LETTERS))
            .expect("the font has ASCII");
        for (row, values) in (0..).zip(raster.rows()) {
            for (column, value) in (0..).zip(values) {
                for (dx, dy) in (0..scale).flat_map(|dy| (0..scale).map(move |dx| (dx, dy))) {
                    let x = margin + (place * letter_width + column) * scale + dx;
                    let y = margin + row * scale + dy;
                    paint(x, y, rgb(0xff_ff_ff), f32::from(*value) / 255.0);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_images_shrink_and_small_ones_stay() {
        assert_eq!(shrunk((1024, 512), 256), (256, 128));
        assert_eq!(shrunk((100, 30), 256), (100, 30));
        assert_eq!(shrunk((100_000, 1), 256), (256, 1));
        assert_eq!(thumbnail(&RgbImage::new(800, 200), 400).dimensions(), (400, 100));
    }

    #[test]
    fn png_keeps_the_pixels_and_jpeg_its_budget() {
        let noise = RgbImage::from_fn(64, 64, |x, y| rgb((x * 7919 + y * 104_729) * 2_654_435));
        let decoded = image::load_from_memory(&encode_png(&noise)).unwrap().to_rgb8();
        assert_eq!(decoded, noise);
        let length = |budget| encode_jpeg(&noise, budget).len();
        let best = length(usize::MAX);
        assert!(length(best / 2) <= best / 2 && length(best) == best);
    }

    #[test]
    fn a_label_is_written_into_the_corner_and_stays_inside() {
        let grey = RgbImage::from_pixel(120, 80, rgb(0x80_80_80));
        let mut picture = grey.clone();
        label(&mut picture, "tumour 97 %");
        assert!(picture.rows().take(26).flatten().any(|pixel| pixel[0] > 240));
        assert!(picture.rows().skip(26).flatten().all(|pixel| *pixel == rgb(0x80_80_80)));
        let mut cut = grey.clone();
        label(&mut cut, "a name that is much longer than the image is wide 病变");
        assert_ne!(cut, grey);
        let mut tiny = RgbImage::new(20, 20);
        label(&mut tiny, "x");
        assert_eq!(tiny, RgbImage::new(20, 20));
    }
}
