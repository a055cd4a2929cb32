//! Pillow's bilinear filter, to the last bit.
//!
//! Pillow does the rows first and rounds to bytes, then the columns; where an image is made
//! smaller, the filter is as wide as the pixels that become one, so that none of them is skipped.
//! General resizers (`image`, `fast_image_resize`) weigh with fewer bits or in the other
//! order, and end up two grey levels away.

use image::RgbImage;

use super::Size;

/// Weights are whole numbers, with this many fractional bits.
const PRECISION: u32 = 22;
/// Rounds to the nearest when the fractional bits are dropped.
const HALF: u32 = 1 << (PRECISION - 1);

/// Neighbouring source pixels that become one, and their weights.
#[derive(Debug, PartialEq)]
struct Blend {
    first: usize,
    weights: Vec<u32>,
}

/// How each of `to` pixels is blended from a line of `from` pixels.
fn blends(from: u32, to: u32) -> Vec<Blend> {
    let scale = f64::from(from) / f64::from(to);
    // Half the width of the triangle, in source pixels.
    let support = scale.max(1.0);
    let blend = |target: u32| {
        let centre = (f64::from(target) + 0.5) * scale;
        let first = (centre - support + 0.5).max(0.0) as usize;
        let end = ((centre + support + 0.5) as usize).min(from as usize);
        let share = |pixel: usize| {
            let distance = (pixel as f64 - centre + 0.5) * (1.0 / support);
            (1.0 - distance.abs()).max(0.0)
        };
        let shares: Vec<f64> = (first..end).map(share).collect();
        let sum: f64 = shares.iter().sum();
        let whole = |share: &f64| (share / sum * f64::from(1 << PRECISION) + 0.5) as u32;
        Blend { first, weights: shares.iter().map(whole).collect() }
    };
    (0..to).map(blend).collect()
}

pub(super) fn resample(image: &RgbImage, size: Size) -> RgbImage {
    let narrowed = resample_rows(image, size.width);
    let stride = 3 * size.width as usize;
    let mut resampled = Vec::with_capacity(3 * size.area());
    let mut sums = vec![HALF; stride];
    for Blend { first, weights } in blends(image.height(), size.height) {
        sums.fill(HALF);
        for (row, &weight) in narrowed[first * stride..].chunks_exact(stride).zip(&weights) {
            for (sum, &value) in sums.iter_mut().zip(row) {
                *sum += u32::from(value) * weight;
            }
        }
        resampled.extend(sums.iter().map(|sum| (sum >> PRECISION) as u8));
    }
    RgbImage::from_raw(size.width, size.height, resampled).expect("every row was made")
}

fn resample_rows(image: &RgbImage, width: u32) -> Vec<u8> {
    let columns = blends(image.width(), width);
    let mut resampled = Vec::with_capacity(3 * columns.len() * image.height() as usize);
    for row in image.as_raw().chunks_exact(3 * image.width() as usize) {
        let (pixels, _) = row.as_chunks::<3>();
        resampled.extend(columns.iter().flat_map(|Blend { first, weights }| {
            let mut sums = [HALF; 3];
            for (pixel, &weight) in pixels[*first..].iter().zip(weights) {
                for (sum, &value) in sums.iter_mut().zip(pixel) {
                    *sum += u32::from(value) * weight;
                }
            }
            sums.map(|sum| (sum >> PRECISION) as u8)
        }));
    }
    resampled
}

#[cfg(test)]
mod tests {
    use image::Rgb;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn pixels_between_two_are_blended_by_distance() {
        let image = RgbImage::from_fn(2, 1, |x, _| Rgb([100 * x as u8, 0, 0]));
        let enlarged = resample(&image, Size { width: 4, height: 1 });
        // Centres at 0.25, 0.75, 1.25, 1.75 of pixels centred at 0.5 and 1.5.
        assert_eq!(enlarged.pixels().map(|p| p.0[0]).collect::<Vec<_>>(), [0, 25, 75, 100]);
    }

    #[test]
    fn pixels_that_become_one_are_weighed_by_distance() {
        let image = RgbImage::from_fn(1, 4, |_, y| Rgb([40 * y as u8, 0, 0]));
        let shrunk = resample(&image, Size { width: 1, height: 2 });
        // A triangle over ±2 pixels around 1 and 3: weights 3, 3, 1 of 7 and 1, 3, 3 of 7.
        let expected = [(40.0 * (3.0 + 2.0) / 7.0), 40.0 * (1.0 + 6.0 + 9.0) / 7.0];
        let expected = expected.map(|value: f64| value.round() as u8);
        assert_eq!(shrunk.pixels().map(|p| p.0[0]).collect::<Vec<_>>(), expected);
    }

    proptest! {
        #[test]
        fn one_colour_stays_one_colour(width in 1_u32..40, height in 1_u32..40, colour: [u8; 3]) {
            let image = RgbImage::from_pixel(17, 11, Rgb(colour));
            let resampled = resample(&image, Size { width, height });
            prop_assert!(resampled.pixels().all(|pixel| pixel.0 == colour));
        }

        #[test]
        fn an_image_of_the_same_size_is_the_same(width in 1_u32..20, height in 1_u32..20) {
            let image = RgbImage::from_fn(width, height, |x, y| Rgb([(37 * x + 91 * y) as u8; 3]));
            prop_assert_eq!(&resample(&image, Size { width, height }), &image);
        }
    }
}
