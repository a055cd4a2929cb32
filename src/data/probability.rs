//! Probability maps from pictures and arrays.

use std::path::Path;

use image::DynamicImage;

use super::{
    image::read,
    npy::{self, Map},
};
use crate::error::{Error, Result};

/// Reads one probability per pixel: a grey picture (black is 0, white is 1) or a `.npy` array.
pub fn read_map(path: &Path, max_megapixels: u32) -> Result<Map> {
    if path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("npy")) {
        return npy::read(path, max_megapixels);
    }
    let picture = read(path, max_megapixels)?;
    let (width, height) = (picture.width() as usize, picture.height() as usize);
    let values = match picture {
        DynamicImage::ImageLuma16(_) | DynamicImage::ImageLumaA16(_) => {
            picture.into_luma16().iter().map(|&grey| f32::from(grey) / 65535.0).collect()
        }
        picture => greys(path, picture)?.iter().map(|&grey| f32::from(grey) / 255.0).collect(),
    };
    Ok(Map { width, height, values })
}

/// The brightness of each pixel of a picture without colour.
fn greys(path: &Path, picture: DynamicImage) -> Result<Vec<u8>> {
    let pixels = picture.into_rgb8();
    if pixels.pixels().any(|pixel| pixel.0[0] != pixel.0[1] || pixel.0[0] != pixel.0[2]) {
        let problem = "coloured picture where a grey mask should be";
        return Err(Error::image(path, problem, "save it in grey, white where the object is"));
    }
    Ok(pixels.pixels().map(|pixel| pixel.0[0]).collect())
}

#[cfg(test)]
mod tests {
    use image::{GrayImage, ImageBuffer, Luma, Rgb, RgbImage};

    use super::*;

    #[test]
    fn grey_becomes_probability_at_the_depth_it_has() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mask.png");
        GrayImage::from_raw(3, 1, vec![0, 51, 255]).unwrap().save(&path).unwrap();
        let map = read_map(&path, 1).unwrap();
        assert_eq!((map.width, map.height, map.values), (3, 1, vec![0.0, 0.2, 1.0]));

        let deep: ImageBuffer<Luma<u16>, _> = ImageBuffer::from_raw(1, 1, vec![13107]).unwrap();
        deep.save(&path).unwrap();
        assert_eq!(read_map(&path, 1).unwrap().values, [0.2]);

        let path = folder.path().join("mask.NPY");
        std::fs::write(&path, npy::encode(2, &[0.25, 0.75])).unwrap();
        assert_eq!(read_map(&path, 1).unwrap().values, [0.25, 0.75]);
    }

    #[test]
    fn a_coloured_picture_is_no_mask() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("photo.png");
        RgbImage::from_pixel(2, 2, Rgb([1, 1, 2])).save(&path).unwrap();
        let message = read_map(&path, 1).unwrap_err().to_string();
        assert!(message.contains("photo.png") && message.contains("grey"), "{message}");
    }
}
