//! A canvas that keeps the object share of each pixel beside its colour.
//!
//! The object share is composited exactly like the colours. So what is painted over an object is
//! taken out of the mask, and the mask is exact.

use image::{Rgb, RgbImage};

use crate::{data::mask::Mask, rng::Stream};

/// Red, green and blue in `[0, 1]`.
pub(super) type Colour = [f32; 3];

/// Samples per pixel side; odd, so that one of them is the centre.
const SAMPLES: u32 = 3;

/// A square picture in the making.
pub(super) struct Canvas {
    side: u32,
    pixels: Vec<Pixel>,
}

#[derive(Clone, Copy)]
struct Pixel {
    colour: Colour,
    /// Share of the pixel that shows an object.
    object: f32,
}

/// Something to paint: where it is, and its colour there. Coordinates are in pixels.
pub(super) trait Layer {
    /// Centre and half-side of a square that holds all of it.
    fn reach(&self) -> (f64, f64, f64);
    /// Its colour at a point; none where it is not.
    fn colour(&self, x: f64, y: f64) -> Option<Colour>;
    /// How much it hides of what is beneath, in `[0, 1]`.
    fn opacity(&self) -> f32 {
        1.0
    }
    /// Whether it belongs to the class, and so to the mask.
    fn is_object(&self) -> bool {
        false
    }
}

impl Canvas {
    /// A canvas filled by `colour`, a function of the pixel's centre.
    pub(super) fn filled(side: u32, colour: impl Fn(f64, f64) -> Colour) -> Self {
        let centre = |i: u32| f64::from(i) + 0.5;
        let at = |i| Pixel { colour: colour(centre(i % side), centre(i / side)), object: 0.0 };
        Self { side, pixels: (0..side * side).map(at).collect() }
    }

    pub(super) fn paint(&mut self, layer: &impl Layer) {
        let (x, y, reach) = layer.reach();
        let range = |centre: f64| {
            let clip = |edge: f64| edge.clamp(0.0, f64::from(self.side)) as u32;
            clip((centre - reach).floor())..clip((centre + reach).ceil())
        };
        for row in range(y) {
            for column in range(x) {
                let (colour, coverage) = sample(layer, column, row);
                let coverage = coverage * layer.opacity();
                let object = f32::from(u8::from(layer.is_object()));
                let pixel = &mut self.pixels[(row * self.side + column) as usize];
                pixel.colour = mix(pixel.colour, colour, coverage);
                pixel.object += coverage * (object - pixel.object);
            }
        }
    }

    /// Adds grain of the given strength and rounds to 8 bits.
    pub(super) fn render(self, grain: f64, stream: &mut Stream) -> (RgbImage, Mask) {
        let Self { side, pixels } = self;
        let mut image = RgbImage::new(side, side);
        for (pixel, target) in pixels.iter().zip(image.pixels_mut()) {
            *target = Rgb(pixel.colour.map(|value| {
                let noisy = value + stream.between(-grain, grain) as f32;
                (noisy.clamp(0.0, 1.0) * 255.0).round() as u8
            }));
        }
        let foreground = pixels.iter().map(|pixel| pixel.object >= 0.5).collect();
        (image, Mask { width: side, height: side, foreground, ignored: None })
    }
}

/// Mean colour of a layer within a pixel, and the share of the pixel it covers.
fn sample(layer: &impl Layer, column: u32, row: u32) -> (Colour, f32) {
    let mut sum = [0.0; 3];
    let mut hits = 0.0;
    for i in 0..SAMPLES * SAMPLES {
        let at = |pixel: u32, i: u32| f64::from(pixel) + (f64::from(i) + 0.5) / f64::from(SAMPLES);
        if let Some(colour) = layer.colour(at(column, i % SAMPLES), at(row, i / SAMPLES)) {
            sum = [sum[0] + colour[0], sum[1] + colour[1], sum[2] + colour[2]];
            hits += 1.0;
        }
    }
    (sum.map(|value| value / f32::max(hits, 1.0)), hits / (SAMPLES * SAMPLES) as f32)
}

/// `a` at 0, `b` at 1.
pub(super) fn mix(a: Colour, b: Colour, share: f32) -> Colour {
    std::array::from_fn(|c| a[c] + share * (b[c] - a[c]))
}

/// A colour of the given hue (in turns), strength and lightness (`[0, 1]`, its mean channel).
pub(super) fn tint(hue: f64, strength: f64, lightness: f64) -> Colour {
    // Three triangle waves a third of a turn apart, whose sum is always zero.
    let wave = |shift: f64| {
        let turn = (hue + shift).rem_euclid(1.0);
        1.0 - 4.0 * (turn - 0.5).abs()
    };
    let waves = [wave(0.0), wave(1.0 / 3.0), wave(2.0 / 3.0)];
    let mean = waves.iter().sum::<f64>() / 3.0;
    waves.map(|wave| (lightness + 0.5 * strength * (wave - mean)).clamp(0.0, 1.0) as f32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Purpose;

    /// Columns `from..to`, full height.
    struct Band {
        from: f64,
        to: f64,
        object: bool,
    }

    impl Layer for Band {
        fn reach(&self) -> (f64, f64, f64) {
            (4.0, 4.0, 8.0)
        }

        fn colour(&self, x: f64, _y: f64) -> Option<Colour> {
            (self.from <= x && x < self.to).then_some([1.0; 3])
        }

        fn is_object(&self) -> bool {
            self.object
        }
    }

    #[test]
    fn what_is_painted_over_an_object_leaves_the_mask() {
        let mut canvas = Canvas::filled(8, |_, _| [0.0; 3]);
        canvas.paint(&Band { from: 1.0, to: 6.0, object: true });
        canvas.paint(&Band { from: 3.0, to: 4.0, object: false });
        let (image, mask) = canvas.render(0.0, &mut Stream::new(0, Purpose::Synthetic, 0, 0));
        assert_eq!(mask.foreground[..8], [false, true, true, false, true, true, false, false]);
        assert_eq!(image.get_pixel(3, 7).0, [255; 3]);
        assert_eq!(image.get_pixel(7, 7).0, [0; 3]);
    }

    #[test]
    fn a_pixel_is_foreground_if_most_of_it_is_object() {
        let mut canvas = Canvas::filled(8, |_, _| [0.0; 3]);
        canvas.paint(&Band { from: 0.7, to: 3.6, object: true });
        let (image, mask) = canvas.render(0.0, &mut Stream::new(0, Purpose::Synthetic, 0, 0));
        assert_eq!(mask.foreground[..5], [false, true, true, true, false]);
        assert_eq!(image.get_pixel(3, 0).0, [170; 3], "two of three columns of samples");
    }

    #[test]
    fn hue_does_not_change_lightness() {
        for hue in [0.0, 0.2, 0.5, 0.77] {
            let colour = tint(hue, 0.5, 0.4);
            assert!((colour.iter().sum::<f32>() / 3.0 - 0.4).abs() < 1e-6);
        }
    }
}
