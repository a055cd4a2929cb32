//! Enlarging and shrinking images, and bringing score maps to another size.

use std::path::Path;

use image::RgbImage;

use super::{Size, resample::resample};
use crate::{
    bilinear::{Tap, aligned},
    config::PreprocessConfig,
    error::{Error, Result},
};

/// The size at which no side is shorter than `short_side`, ratio kept; never smaller.
///
/// The short side becomes exactly `short_side`. The long side is cut to whole
/// pixels from its exact value, so 500×333 becomes 750×500: the published code
/// computes both in floating point and loses a row to it (750×499).
fn upscaled_size(size: Size, short_side: u32) -> Size {
    let shortest = size.width.min(size.height);
    if shortest >= short_side {
        return size;
    }
    let enlarge = |side: u32| {
        let exact = u64::from(side) * u64::from(short_side) / u64::from(shortest);
        u32::try_from(exact).unwrap_or(u32::MAX)
    };
    Size { width: enlarge(size.width), height: enlarge(size.height) }
}

/// The size at which an image is worked on: its short side within the settings' limits.
pub fn working_size(size: Size, preprocess: &PreprocessConfig) -> Size {
    let limit = preprocess.shrink_short_side;
    let shortest = size.width.min(size.height);
    if limit == 0 || shortest <= limit {
        return upscaled_size(size, preprocess.upscale_short_side);
    }
    let shrink = |side: u32| {
        let (side, shortest) = (u64::from(side), u64::from(shortest));
        // Rounded to the nearest pixel; smaller than before, so it fits.
        ((side * u64::from(limit) + shortest / 2) / shortest) as u32
    };
    Size { width: shrink(size.width), height: shrink(size.height) }
}

/// Brings an image to its [`working_size`], with Pillow's bilinear filter; `None` if it has it.
pub fn rescale(image: &RgbImage, wanted: Size) -> Option<RgbImage> {
    (wanted != Size::of(image)).then(|| resample(image, wanted))
}

/// Least side of an image to learn from, in pixels: less is smaller than a cell of the last feature
/// map.
pub const MIN_SIDE: u32 = 32;

/// Refuses an image to learn from with a side below [`MIN_SIDE`].
pub fn check_smallest(path: &Path, Size { width, height }: Size) -> Result<()> {
    if width.min(height) >= MIN_SIDE {
        return Ok(());
    }
    let problem = format!("image is only {width}×{height} pixels");
    let remedy = format!("replace it by one of at least {MIN_SIDE} pixels on each side");
    Err(Error::image(path, problem, &remedy))
}

/// Refuses an image that enlarging would blow up beyond the decoding limit.
///
/// A 1×20,000 strip is small as a file, but 500 pixels wide it would fill the memory.
pub fn check_upscaled(path: &Path, original: Size, short_side: u32, megapixels: u32) -> Result<()> {
    let Size { width, height } = upscaled_size(original, short_side);
    let limit = u64::from(megapixels) * 1_000_000;
    let enlarged = (width, height) != (original.width, original.height);
    if enlarged && u64::from(width) * u64::from(height) > limit {
        let Size { width: w, height: h } = original;
        let problem = format!(
            "image of {w}×{h} pixels would be enlarged to {width}×{height}, above the limit of \
             {megapixels} megapixels"
        );
        let remedy = "lower `preprocess.upscale_short_side`, raise `data.max_megapixels`, or \
                      remove the image";
        return Err(Error::image(path, problem, remedy));
    }
    Ok(())
}

/// Resizes one plane of scores by bilinear interpolation that maps corners onto corners.
pub fn resize_align_corners(plane: &[f32], from: Size, to: Size) -> Vec<f32> {
    assert_eq!(plane.len(), from.area(), "one score per pixel");
    if from == to {
        return plane.to_vec();
    }
    let (before, after) = (from.rows_columns(), to.rows_columns());
    let [rows, columns] = [0, 1].map(|axis| aligned(after[axis], before[axis]));
    let line = |row: usize| &plane[row * before[1]..][..before[1]];
    let read_row = |row: &Tap| {
        let pairs = line(row.near).iter().zip(line(row.far));
        let between: Vec<f32> = pairs.map(|(&near, &far)| row.mix_scores(near, far)).collect();
        columns.iter().map(move |tap| tap.mix_scores(between[tap.near], between[tap.far]))
    };
    rows.iter().flat_map(read_row).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn size(width: u32, height: u32) -> Size {
        Size { width, height }
    }

    proptest! {
        #[test]
        fn scores_that_are_equal_stay_equal(score in 0.0_f32..=1.0, width in 2_u32..40, height in 2_u32..40) {
            let plane = vec![score; 35];
            let resized = resize_align_corners(&plane, size(7, 5), size(width, height));
            prop_assert!(resized.iter().all(|&found| found == score));
        }
    }

    #[test]
    fn an_image_is_shrunk_to_the_limit_and_averages_what_it_had() {
        let preprocess = PreprocessConfig {
            upscale_short_side: 20,
            shrink_short_side: 30,
            ..PreprocessConfig::default()
        };
        let wanted = |width, height| working_size(size(width, height), &preprocess);
        assert_eq!(wanted(75, 60), size(38, 30));
        assert_eq!(wanted(25, 29), size(25, 29));
        assert_eq!(wanted(10, 15), size(20, 30));

        let stripes = RgbImage::from_fn(60, 90, |x, _| image::Rgb([255 * (x % 2) as u8; 3]));
        let shrunk = rescale(&stripes, wanted(60, 90)).unwrap();
        assert_eq!(Size::of(&shrunk), size(30, 45));
        let inner = shrunk.enumerate_pixels().filter(|(x, _, _)| (1..29).contains(x));
        assert!(inner.clone().all(|(_, _, pixel)| pixel[0].abs_diff(127) <= 2), "stripes are grey");
        assert!(rescale(&RgbImage::new(25, 29), wanted(25, 29)).is_none());
    }

    #[test]
    fn the_short_side_is_brought_to_its_exact_length() {
        assert_eq!(upscaled_size(size(500, 333), 500), size(750, 500));
        assert_eq!(upscaled_size(size(333, 500), 500), size(500, 750));
    }

    #[test]
    fn images_are_never_made_smaller() {
        assert_eq!(upscaled_size(size(775, 522), 500), size(775, 522));
        assert_eq!(upscaled_size(size(20, 30), 0), size(20, 30));
    }

    #[test]
    fn a_thin_strip_is_refused_by_name_before_it_fills_the_memory() {
        let strip = size(20_000, 1);
        let error = check_upscaled(Path::new("strip.png"), strip, 500, 200).unwrap_err();
        let message = error.to_string();
        assert!(message.contains("strip.png") && message.contains("10000000×500"), "{message}");
        check_upscaled(Path::new("strip.png"), strip, 0, 200).unwrap();
    }

    #[test]
    fn corners_are_mapped_onto_corners() {
        let doubled = resize_align_corners(&[0.0, 1.0, 2.0, 3.0], size(2, 2), size(3, 3));
        assert_eq!(doubled, [0.0, 0.5, 1.0, 1.0, 1.5, 2.0, 2.0, 2.5, 3.0]);
    }

    #[test]
    fn a_single_target_pixel_takes_the_first_corner() {
        assert_eq!(resize_align_corners(&[4.0, 1.0], size(2, 1), size(1, 1)), [4.0]);
    }

    proptest! {
        #[test]
        fn a_plane_that_rises_evenly_still_does(
            from in (2_u32..40, 2_u32..40), to in (2_u32..40, 2_u32..40),
        ) {
            let ramp = |width: u32, height: u32| -> Vec<f32> {
                let share = |i: u32, n: u32| i as f32 / (n - 1) as f32;
                let value = |i| share(i % width, width) + 2.0 * share(i / width, height);
                (0..width * height).map(value).collect()
            };
            let resized =
                resize_align_corners(&ramp(from.0, from.1), size(from.0, from.1), size(to.0, to.1));
            for (found, expected) in resized.iter().zip(ramp(to.0, to.1)) {
                prop_assert!((found - expected).abs() < 1e-5);
            }
        }
    }
}
