//! What one mask file says about each pixel.

use std::{collections::BTreeSet, path::Path};

use image::{DynamicImage, RgbImage};

use super::MaskRule;
use crate::{
    data::image::{self as decode, read_labels},
    error::{Error, Result},
};

/// What a mask file says about a pixel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PixelLabel {
    Background,
    Foreground,
    Undecided,
}

/// Background of Oxford's segmentations, before JPEG got to it.
const BLUE: [i32; 3] = [0, 0, 254];

/// Euclidean distance in RGB from which a colour is not that blue any more.
///
/// JPEG at quality 75 moves the blue by up to 60, next to a flower by up to 95;
/// violet petals begin at about 80.
const FAR_FROM_BLUE: i32 = 80;

/// Reads the labels of one file, row by row; the file must have the size of its image.
pub(super) fn read(
    path: &Path,
    rule: MaskRule,
    size: (u32, u32),
    max_megapixels: u32,
) -> Result<Vec<PixelLabel>> {
    let (image, exact) = match rule {
        MaskRule::Votes | MaskRule::NotBlue => (decode::read(path, max_megapixels)?, true),
        MaskRule::NonZero | MaskRule::Void255 | MaskRule::Trimap => {
            read_labels(path, max_megapixels)?
        }
    };
    check_size(path, &image, size)?;
    match rule {
        MaskRule::NonZero => {
            let floor = if exact { 0 } else { full_scale(&image) / 2 };
            Ok(mark(&image, |color| color.into_iter().any(|value| value > floor)))
        }
        MaskRule::Votes => {
            let half_of_three = full_scale(&image) * 3 / 2; // rounded down, so `>` still decides
            Ok(mark(&image, |color| color.into_iter().sum::<u32>() > half_of_three))
        }
        MaskRule::NotBlue => Ok(not_blue(&image.into_rgb8())),
        MaskRule::Void255 => Ok(colors(&image).map(void_255).collect()),
        MaskRule::Trimap => trimap(path, &image),
    }
}

fn mark(image: &DynamicImage, is_foreground: impl Fn([u32; 3]) -> bool) -> Vec<PixelLabel> {
    colors(image).map(|color| pixel_label(is_foreground(color))).collect()
}

fn not_blue(image: &RgbImage) -> Vec<PixelLabel> {
    let square = |color: &image::Rgb<u8>| -> i32 {
        color.0.into_iter().zip(BLUE).map(|(value, blue)| (i32::from(value) - blue).pow(2)).sum()
    };
    image.pixels().map(|color| pixel_label(square(color) > FAR_FROM_BLUE.pow(2))).collect()
}

fn void_255(color: [u32; 3]) -> PixelLabel {
    match color {
        [0, 0, 0] => PixelLabel::Background,
        // In colour, the border is what VOC's palette paints it.
        [255, 255, 255] | [224, 224, 192] => PixelLabel::Undecided,
        _ => PixelLabel::Foreground,
    }
}

/// The numbers a file holds, if all are those of a trimap.
pub(super) fn trimap_numbers(path: &Path, max_megapixels: u32) -> Option<BTreeSet<u32>> {
    let (image, exact) = read_labels(path, max_megapixels).ok()?;
    let number = |color: [u32; 3]| match color {
        [1, 1, 1] | [2, 2, 2] | [3, 3, 3] => Some(color[0]),
        _ => None,
    };
    colors(&image).map(|color| number(color).filter(|_| exact)).collect()
}

/// The numbers a file of grey holds, if compression kept them as they were.
pub(super) fn grey_levels(path: &Path, max_megapixels: u32) -> Option<BTreeSet<u32>> {
    let (image, exact) = read_labels(path, max_megapixels).ok()?;
    let grey = exact && !image.color().has_color() && !is_wide(&image);
    grey.then(|| colors(&image).map(|[level, ..]| level).collect())
}

fn trimap(path: &Path, image: &DynamicImage) -> Result<Vec<PixelLabel>> {
    let label = |color: [u32; 3]| match color {
        [1, 1, 1] => Ok(PixelLabel::Foreground),
        [2, 2, 2] => Ok(PixelLabel::Background),
        [3, 3, 3] => Ok(PixelLabel::Undecided),
        [value, ..] => {
            let problem = format!("trimap with the value {value}; there are only 1, 2 and 3");
            Err(Error::image(path, problem, "fix the file, or say what it is with `--mask-rule`"))
        }
    };
    colors(image).map(label).collect()
}

fn pixel_label(foreground: bool) -> PixelLabel {
    if foreground { PixelLabel::Foreground } else { PixelLabel::Background }
}

/// Each pixel's colour as stored, with 8 or 16 bits; grey gives three equal values.
fn colors(image: &DynamicImage) -> impl Iterator<Item = [u32; 3]> {
    let layout = image.color();
    let channels = if layout.has_color() { [0, 1, 2] } else { [0, 0, 0] };
    let wide = is_wide(image);
    let bytes = image.as_bytes().chunks_exact(layout.bytes_per_pixel().into());
    bytes.map(move |pixel| {
        channels.map(|c| match wide {
            false => pixel[c].into(),
            true => u16::from_ne_bytes([pixel[2 * c], pixel[2 * c + 1]]).into(),
        })
    })
}

/// The largest value a channel can have.
fn full_scale(image: &DynamicImage) -> u32 {
    if is_wide(image) { u16::MAX.into() } else { u8::MAX.into() }
}

/// Whether channels have 16 bits rather than 8; other depths are not decoded.
fn is_wide(image: &DynamicImage) -> bool {
    image.color().bytes_per_pixel() > image.color().channel_count()
}

fn check_size(path: &Path, mask: &DynamicImage, (width, height): (u32, u32)) -> Result<()> {
    let found = (mask.width(), mask.height());
    if found == (width, height) {
        return Ok(());
    }
    let problem =
        format!("mask of {}×{} pixels for an image of {width}×{height}", found.0, found.1);
    let remedy = if found == (height, width) {
        "the sides are swapped: the image is turned by its EXIF orientation, the mask is not; \
         turn the mask, or remove the orientation from the image"
    } else {
        "a mask needs one pixel per image pixel; replace the mask or the image"
    };
    Err(Error::image(path, problem, remedy))
}
