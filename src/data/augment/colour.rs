//! Changes of colour, as torchvision's `ColorJitter` makes them with Pillow.

mod hue;

use crate::{config::AugmentConfig, data::preprocess::Planes, rng::Stream};

/// One change of colour.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ColourStep {
    /// Blends with black; 1 changes nothing, 0 is black.
    Brightness(f32),
    /// Blends with the image's mean grey; 1 changes nothing, 0 is grey.
    Contrast(f32),
    /// Blends with the grey image; 1 changes nothing, 0 is black and white.
    Saturation(f32),
    /// Turns the colour circle, in turns.
    Hue(f64),
}

impl ColourStep {
    /// Draws the factors and the order of all four steps; keeps those that are switched on.
    pub(super) fn draw_all(augment: &AugmentConfig, stream: &mut Stream) -> Vec<Self> {
        let mut factor = |spread: f64| stream.between((1.0 - spread).max(0.0), 1.0 + spread) as f32;
        let brightness = Self::Brightness(factor(augment.brightness));
        let contrast = Self::Contrast(factor(augment.contrast));
        let saturation = Self::Saturation(factor(augment.saturation));
        let hue = Self::Hue(stream.between(-augment.hue, augment.hue));
        let mut steps = [
            (augment.brightness, brightness),
            (augment.contrast, contrast),
            (augment.saturation, saturation),
            (augment.hue, hue),
        ];
        stream.shuffle(&mut steps);
        steps.into_iter().filter(|(spread, _)| *spread > 0.0).map(|(_, step)| step).collect()
    }

    /// Changes the colours of `planes`.
    pub fn apply(self, planes: &mut Planes) {
        match self {
            Self::Brightness(factor) => blend_with(0, planes, factor),
            Self::Contrast(factor) => blend_with(mean_grey(planes), planes, factor),
            Self::Saturation(factor) => saturate(planes, factor),
            Self::Hue(turns) => hue::turn(planes, turns),
        }
    }
}

/// The point at `factor` of the way from `from` to `to`, which may lie beyond either.
///
/// Cuts off fractions and saturates, as Pillow's `Image.blend` does.
fn blend(from: u8, to: u8, factor: f32) -> u8 {
    let (from, to) = (f32::from(from), f32::from(to));
    (from + factor * (to - from)) as u8
}

fn blend_with(grey: u8, planes: &mut Planes, factor: f32) {
    let table: [u8; 256] = std::array::from_fn(|byte| blend(grey, byte as u8, factor));
    for byte in planes.bytes_mut() {
        *byte = table[usize::from(*byte)];
    }
}

/// Pillow's grey (ITU-R 601-2 luma) in fixed point.
fn grey(red: u8, green: u8, blue: u8) -> u8 {
    let sum = u32::from(red) * 19_595 + u32::from(green) * 38_470 + u32::from(blue) * 7_471;
    ((sum + 0x8000) >> 16) as u8
}

fn mean_grey(planes: &Planes) -> u8 {
    let [red, green, blue] = planes.channels();
    let mut sum = 0;
    // Sums of short runs fit 32 bits, which the processor adds several of at once.
    for ((red, green), blue) in red.chunks(4096).zip(green.chunks(4096)).zip(blue.chunks(4096)) {
        let pixels = red.iter().zip(green).zip(blue);
        sum += u64::from(pixels.map(|((&r, &g), &b)| u32::from(grey(r, g, b))).sum::<u32>());
    }
    (sum as f64 / planes.size().area() as f64 + 0.5) as u8
}

fn saturate(planes: &mut Planes, factor: f32) {
    let [red, green, blue] = planes.channels_mut();
    for ((r, g), b) in red.iter_mut().zip(green).zip(blue) {
        let grey = grey(*r, *g, *b);
        *r = blend(grey, *r, factor);
        *g = blend(grey, *g, factor);
        *b = blend(grey, *b, factor);
    }
}

#[cfg(test)]
mod tests {
    use image::{Rgb, RgbImage};
    use proptest::prelude::*;

    use super::*;
    use crate::rng::Purpose;

    fn after(step: ColourStep, pixels: &[[u8; 3]]) -> Vec<[u8; 3]> {
        let image = RgbImage::from_fn(pixels.len() as u32, 1, |x, _| Rgb(pixels[x as usize]));
        let mut planes = Planes::from_rgb(&image);
        step.apply(&mut planes);
        let [red, green, blue] = planes.channels();
        red.iter().zip(green).zip(blue).map(|((&r, &g), &b)| [r, g, b]).collect()
    }

    #[test]
    fn brightness_scales_and_saturates() {
        assert_eq!(after(ColourStep::Brightness(1.5), &[[0, 101, 200]]), [[0, 151, 255]]);
    }

    #[test]
    fn contrast_moves_away_from_the_mean_grey() {
        // The mean of 50 and 101 is 75.5, which rounds to 76.
        let pixels = [[50; 3], [101; 3]];
        assert_eq!(after(ColourStep::Contrast(2.0), &pixels), [[24; 3], [126; 3]]);
        assert_eq!(after(ColourStep::Contrast(0.0), &pixels), [[76; 3]; 2]);
    }

    #[test]
    fn no_saturation_leaves_the_luma() {
        assert_eq!(after(ColourStep::Saturation(0.0), &[[255, 0, 0]]), [[76; 3]]);
    }

    #[test]
    fn all_orders_of_the_four_steps_occur_and_disabled_steps_do_not() {
        let all = AugmentConfig {
            brightness: 0.5,
            contrast: 0.5,
            saturation: 0.5,
            hue: 0.05,
            ..Default::default()
        };
        let mut stream = Stream::new(1, Purpose::Augment, 0, 0);
        let mut orders: Vec<_> = (0..1000)
            .map(|_| ColourStep::draw_all(&all, &mut stream))
            .map(|steps| {
                steps.into_iter().map(|step| std::mem::discriminant(&step)).collect::<Vec<_>>()
            })
            .map(|kinds| format!("{kinds:?}"))
            .collect();
        orders.sort();
        orders.dedup();
        assert_eq!(orders.len(), 24);

        let none = AugmentConfig::default();
        assert_eq!(ColourStep::draw_all(&none, &mut stream), []);
    }

    proptest! {
        #[test]
        fn a_factor_of_one_changes_nothing(pixels: Vec<[u8; 3]>) {
            prop_assume!(!pixels.is_empty());
            for step in [ColourStep::Brightness(1.0), ColourStep::Contrast(1.0), ColourStep::Saturation(1.0)] {
                prop_assert_eq!(&after(step, &pixels), &pixels);
            }
        }

        #[test]
        fn grey_pixels_have_no_hue_to_turn(grey: u8, turns in -0.5..0.5) {
            prop_assert_eq!(after(ColourStep::Hue(turns), &[[grey; 3]]), [[grey; 3]]);
        }
    }
}
