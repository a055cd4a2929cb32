//! Rotation, shear and scaling about the centre, as torchvision's `RandomAffine`.

use crate::{
    config::AffineConfig,
    data::preprocess::{Planes, Size},
    rng::Stream,
};

/// One rotation, shear and scaling about the centre of an image.
///
/// Pixels are taken from the nearest source pixel, and are black where there is
/// none: torchvision's defaults, which the baselines were published with.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Affine {
    /// Clockwise rotation in degrees.
    pub degrees: f64,
    /// Horizontal shear angle in degrees.
    pub shear: f64,
    /// Enlargement; below 1 shrinks.
    pub scale: f64,
}

/// Fixed-point numbers with 16 fractional bits: the accuracy Pillow works with.
const ONE: f64 = 65_536.0;

impl Affine {
    /// Draws angle, scale and shear, also if the variation is switched off.
    pub(super) fn draw(config: Option<&AffineConfig>, stream: &mut Stream) -> Option<Self> {
        let [angle, scale, shear] = std::array::from_fn(|_| stream.uniform());
        let within = |share: f64, low: f64, high: f64| low + (high - low) * share;
        config.map(|config| Self {
            degrees: within(angle, -config.degrees, config.degrees),
            shear: within(shear, -config.shear, config.shear),
            scale: within(scale, config.scale[0], config.scale[1]),
        })
    }

    /// Moves the pixels of `planes`.
    pub fn apply(&self, planes: &Planes) -> Planes {
        let Size { width, height } = planes.size();
        let mut moved = Planes::black(width as usize, height as usize);
        let sources = self.source_indices(planes.size());
        for (from, to) in planes.channels().into_iter().zip(moved.channels_mut()) {
            for (pixel, &source) in to.iter_mut().zip(&sources) {
                // Outside the image the index is out of range, and the pixel stays black.
                *pixel = from.get(source as usize).copied().unwrap_or(0);
            }
        }
        moved
    }

    /// For each target pixel the index of its source pixel, `u32::MAX` if there is none.
    fn source_indices(&self, size: Size) -> Vec<u32> {
        let [a, b, c, d, e, f] = self.inverse(size).map(|x| (x * ONE + 0.5).floor() as i64);
        let (width, height) = (i64::from(size.width), i64::from(size.height));
        let source = |x: i64, y: i64| {
            let (from_x, from_y) = ((a * x + b * y + c) >> 16, (d * x + e * y + f) >> 16);
            let inside = (0..width).contains(&from_x) && (0..height).contains(&from_y);
            if inside { (from_y * width + from_x) as u32 } else { u32::MAX }
        };
        (0..height).flat_map(|y| (0..width).map(move |x| source(x, y))).collect()
    }

    /// The map `(a x + b y + c, d x + e y + f)` from target pixel to source point.
    ///
    /// Forward, a point is sheared, turned and scaled about the centre:
    /// `s · R(angle) · [1, −tan shear; 0, 1]`. The determinant is `s²`, so the
    /// inverse needs no division but by `s`. The offsets include the half pixel
    /// to a pixel's centre.
    fn inverse(&self, size: Size) -> [f64; 6] {
        let (sin, cos) = self.degrees.to_radians().sin_cos();
        let shear = self.shear.to_radians().tan();
        let [a, b] = [(cos - sin * shear) / self.scale, (cos * shear + sin) / self.scale];
        let [d, e] = [-sin / self.scale, cos / self.scale];
        let (x, y) = (f64::from(size.width) / 2.0, f64::from(size.height) / 2.0);
        let c = x - a * (x - 0.5) - b * (y - 0.5);
        let f = y - d * (x - 0.5) - e * (y - 0.5);
        [a, b, c, d, e, f]
    }
}

#[cfg(test)]
mod tests {
    use image::{Rgb, RgbImage};

    use super::*;

    const STILL: Affine = Affine { degrees: 0.0, shear: 0.0, scale: 1.0 };

    fn red(affine: Affine) -> Vec<u8> {
        let image = RgbImage::from_fn(3, 3, |x, y| Rgb([(1 + 3 * y + x) as u8, 0, 0]));
        affine.apply(&Planes::from_rgb(&image)).channels()[0].to_vec()
    }

    #[test]
    fn nothing_moves_without_rotation_shear_and_scaling() {
        assert_eq!(red(STILL), [1, 2, 3, 4, 5, 6, 7, 8, 9]);
    }

    #[test]
    fn a_quarter_turn_goes_clockwise() {
        assert_eq!(red(Affine { degrees: 90.0, ..STILL }), [7, 4, 1, 8, 5, 2, 9, 6, 3]);
    }

    #[test]
    fn a_shrunk_image_stands_on_black() {
        assert_eq!(red(Affine { scale: 1.0 / 3.0, ..STILL }), [0, 0, 0, 0, 5, 0, 0, 0, 0]);
    }
}
