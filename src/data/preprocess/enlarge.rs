//! Pillow's bilinear filter for enlarging, to the last bit.
//!
//! Pillow widens the rows first and rounds to bytes, then does the columns.
//! General resizers (`image`, `fast_image_resize`) weigh with fewer bits or in the other
//! order, and end up two grey levels away.

use image::RgbImage;

use super::Size;

/// Weights are whole numbers, with this many fractional bits.
const PRECISION: u32 = 22;

/// Two neighbouring source pixels and their weights; at the edges they are the same pixel.
struct Blend {
    near: usize,
    far: usize,
    weights: [u32; 2],
}

impl Blend {
    #[inline]
    fn of(&self, near: u8, far: u8) -> u8 {
        let half = 1 << (PRECISION - 1);
        let sum = u32::from(near) * self.weights[0] + u32::from(far) * self.weights[1] + half;
        (sum >> PRECISION) as u8
    }
}

/// How each of `to` pixels is blended from a line of `from` pixels.
fn blends(from: u32, to: u32) -> Vec<Blend> {
    let scale = f64::from(from) / f64::from(to);
    let last = from as usize - 1;
    let blend = |target: u32| {
        let centre = (f64::from(target) + 0.5) * scale;
        let near = (centre - 0.5).max(0.0) as usize;
        let distance = near as f64 + 0.5 - centre;
        if distance > 0.0 || near == last {
            return Blend { near, far: near, weights: [1 << PRECISION, 0] };
        }
        let shares = [1.0 + distance, -distance].map(|share| share * f64::from(1 << PRECISION));
        Blend { near, far: near + 1, weights: shares.map(|share| (share + 0.5) as u32) }
    };
    (0..to).map(blend).collect()
}

/// Enlarges `image` to `size`, which is at least as large on both sides.
pub(super) fn enlarge(image: &RgbImage, size: Size) -> RgbImage {
    assert!(size.width >= image.width() && size.height >= image.height(), "only enlarges");
    let widened = widen(image, size.width);
    let stride = 3 * size.width as usize;
    let mut enlarged = Vec::with_capacity(3 * size.area());
    for blend in blends(image.height(), size.height) {
        let near = &widened[blend.near * stride..][..stride];
        let far = &widened[blend.far * stride..][..stride];
        enlarged.extend(near.iter().zip(far).map(|(&near, &far)| blend.of(near, far)));
    }
    RgbImage::from_raw(size.width, size.height, enlarged).expect("every row was enlarged")
}

/// The rows of `image` at another width.
fn widen(image: &RgbImage, width: u32) -> Vec<u8> {
    let columns = blends(image.width(), width);
    let mut widened = Vec::with_capacity(3 * columns.len() * image.height() as usize);
    for row in image.as_raw().chunks_exact(3 * image.width() as usize) {
        let (pixels, _) = row.as_chunks::<3>();
        widened.extend(columns.iter().flat_map(|blend| {
            let (near, far) = (pixels[blend.near], pixels[blend.far]);
            [0, 1, 2].map(|channel| blend.of(near[channel], far[channel]))
        }));
    }
    widened
}

#[cfg(test)]
mod tests {
    use image::Rgb;

    use super::*;

    #[test]
    fn pixels_between_two_are_blended_by_distance() {
        let image = RgbImage::from_fn(2, 1, |x, _| Rgb([100 * x as u8, 0, 0]));
        let enlarged = enlarge(&image, Size { width: 4, height: 1 });
        // Centres at 0.25, 0.75, 1.25, 1.75 of pixels centred at 0.5 and 1.5.
        assert_eq!(enlarged.pixels().map(|p| p.0[0]).collect::<Vec<_>>(), [0, 25, 75, 100]);
    }

    #[test]
    fn one_colour_stays_one_colour() {
        let image = RgbImage::from_pixel(7, 5, Rgb([255, 254, 1]));
        let enlarged = enlarge(&image, Size { width: 23, height: 11 });
        assert!(enlarged.pixels().all(|pixel| pixel.0 == [255, 254, 1]));
    }
}
