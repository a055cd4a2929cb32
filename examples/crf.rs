//! Snaps a grey mask to the edges of its image: `cargo run --release --example crf -- IMAGE MASK OUT`.

use std::env;

use image::GrayImage;
use pinpoint::refine::{Preset, refine};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [image, mask, out] = &arguments[..] else {
        return Err("usage: crf IMAGE MASK OUT".into());
    };
    let (image, mask) = (image::open(image)?.into_rgb8(), image::open(mask)?.into_luma8());
    let scores: Vec<f32> = mask.as_raw().iter().map(|&grey| f32::from(grey) / 255.0).collect();
    let snapped = refine(&image, &scores, Preset::Natural)?;
    let grey = snapped.iter().map(|score| (score * 255.0).round() as u8).collect();
    let picture = GrayImage::from_raw(image.width(), image.height(), grey);
    picture.ok_or("one score per pixel")?.save(out)?;
    Ok(())
}
