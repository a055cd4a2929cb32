//! A contact sheet: what the synthetic set looks like, at a glance.

use image::{Rgb, RgbImage, imageops};

use super::{SyntheticSample, SyntheticSpec};
use crate::data::manifest::Split;

/// Tiles are enlarged to about this many pixels.
const TILE: u32 = 128;
const GAP: u32 = 4;
const MARK: Rgb<u8> = Rgb([255, 0, 128]);

/// A row per class: `columns` training images, each with its objects marked beside it.
pub fn contact_sheet(spec: &SyntheticSpec, columns: usize) -> RgbImage {
    let scale = (TILE / spec.side).max(1);
    let (tile, pitch) = (spec.side * scale, spec.side * scale + GAP);
    let columns = columns as u32;
    let (width, height) = (2 * columns * pitch + GAP, spec.classes as u32 * pitch + GAP);
    let mut sheet = RgbImage::from_pixel(width, height, Rgb([255; 3]));
    for row in 0..spec.classes as u32 {
        for column in 0..columns {
            let index = column as usize * spec.classes + row as usize;
            let sample = spec.draw(Split::Train, index);
            for (half, picture) in [marked(&sample), sample.image].iter().rev().enumerate() {
                let picture = imageops::resize(picture, tile, tile, imageops::FilterType::Nearest);
                let x = GAP + (2 * column + half as u32) * pitch;
                imageops::replace(&mut sheet, &picture, x.into(), (GAP + row * pitch).into());
            }
        }
    }
    sheet
}

/// The image with everything but its objects dimmed, and the objects tinted.
fn marked(sample: &SyntheticSample) -> RgbImage {
    let mut image = sample.image.clone();
    for (pixel, &object) in image.pixels_mut().zip(&sample.mask.foreground) {
        for (value, mark) in pixel.0.iter_mut().zip(MARK.0) {
            *value = if object { *value / 2 + mark / 2 } else { *value / 3 };
        }
    }
    image
}
