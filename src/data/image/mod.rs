//! Decoding of images, within limits.
//!
//! Whatever the file holds, what comes out is 8-bit RGB, upright:
//!
//! | in the file | becomes |
//! |---|---|
//! | grey | three equal channels |
//! | 16 bits | scaled to 8, rounding |
//! | palette | its colours |
//! | alpha | dropped, as Pillow's `convert("RGB")` does: nothing is composited |
//! | CMYK, YCCK | `ink × black`, with Adobe's inverted polarity, as Pillow assumes |
//! | EXIF orientation | applied |
//! | several frames or pages | the first one |
//! | colour profile | ignored |
//!
//! The format is told from the content, never from the file's name. Files are
//! not trusted: size is checked before anything is decoded, memory is bounded by
//! the size, so is time, and a file that ends early is refused rather than filled with grey.

mod budget;
mod jpeg;
mod labels;
mod source;
mod webp;

use std::path::Path;

use image::{DynamicImage, RgbImage};

pub(crate) use labels::read_labels;
use source::{Source, guard};

use crate::error::Result;

/// Decodes an image file to 8-bit RGB, upright.
///
/// `max_megapixels` bounds what is decoded: larger files are refused from their header, and
/// those that take longer than 20 s and ¼ s for each megapixel allowed are given up.
pub fn read_rgb(path: &Path, max_megapixels: u32) -> Result<RgbImage> {
    Ok(read(path, max_megapixels)?.into_rgb8())
}

/// Width and height that [`read_rgb`] would give, from the header alone.
pub fn read_size(path: &Path, max_megapixels: u32) -> Result<(u32, u32)> {
    let source = Source::open(path, max_megapixels)?;
    guard(path, || source.size())
}

/// Decodes an image file, upright, with the channels and the depth it has.
pub(crate) fn read(path: &Path, max_megapixels: u32) -> Result<DynamicImage> {
    budget::within(budget::of(max_megapixels), path, move |path| {
        Source::open(path, max_megapixels)?.decode()
    })
}

#[cfg(test)]
mod tests;
