//! Turning the colour circle in Pillow's 8-bit HSV.
//!
//! Pillow converts in a mixture of single and double precision and cuts off fractions, so the last
//! bit of a hue depends on its rounding errors, and one step of hue is up to six grey levels. What
//! is single here is single there.

use crate::data::preprocess::Planes;

/// Turns the hue of every pixel, `turns` in `[-0.5, 0.5]`.
pub(super) fn turn(planes: &mut Planes, turns: f64) {
    // torchvision cuts the shift to a whole number and lets it wrap around as a byte.
    let shift = (turns * 255.0) as i32 as u8;
    let [red, green, blue] = planes.channels_mut();
    for ((r, g), b) in red.iter_mut().zip(green).zip(blue) {
        let (hue, saturation, value) = to_hsv([*r, *g, *b]);
        [*r, *g, *b] = from_hsv(hue.wrapping_add(shift), saturation, value);
    }
}

/// Hue, saturation and value of a colour.
fn to_hsv([red, green, blue]: [u8; 3]) -> (u8, u8, u8) {
    let value = red.max(green).max(blue);
    let spread = value - red.min(green).min(blue);
    if spread == 0 {
        return (0, 0, value);
    }
    let [r, g, b] =
        [red, green, blue].map(|channel| f32::from(value - channel) / f32::from(spread));
    let sixths = if red == value {
        b - g
    } else if green == value {
        (2.0 + f64::from(r) - f64::from(b)) as f32
    } else {
        (4.0 + f64::from(g) - f64::from(r)) as f32
    };
    let turns = f64::from(sixths) / 6.0 + 1.0;
    // Casts cut off fractions in one instruction, unlike `floor`.
    let hue = (turns - f64::from(turns as u8)) as f32;
    let saturation = f32::from(spread) / f32::from(value);
    ((f64::from(hue) * 255.0) as u8, (f64::from(saturation) * 255.0) as u8, value)
}

fn from_hsv(hue: u8, saturation: u8, value: u8) -> [u8; 3] {
    let sixths = f64::from(hue) * 6.0 / 255.0;
    let sector = sixths as u8;
    let past = (sixths - f64::from(sector)) as f32;
    let saturation = (f64::from(saturation) / 255.0) as f32;
    let at = |share: f32| (f32::from(value) * (1.0 - saturation * share) + 0.5) as u8;
    let (smallest, falling, rising) = (at(1.0), at(past), at(1.0 - past));
    match sector % 6 {
        0 => [value, rising, smallest],
        1 => [falling, value, smallest],
        2 => [smallest, value, rising],
        3 => [smallest, falling, value],
        4 => [rising, smallest, value],
        _ => [value, smallest, falling],
    }
}

#[cfg(test)]
mod tests {
    use image::{Rgb, RgbImage};

    use super::*;

    fn turned(pixel: [u8; 3], turns: f64) -> [u8; 3] {
        let mut planes = Planes::from_rgb(&RgbImage::from_pixel(1, 1, Rgb(pixel)));
        turn(&mut planes, turns);
        planes.channels().map(|channel| channel[0])
    }

    #[test]
    fn a_third_of_a_turn_makes_red_green_and_green_blue() {
        assert_eq!(turned([255, 0, 0], 1.0 / 3.0 + 1e-9), [0, 255, 0]);
        assert_eq!(turned([0, 255, 0], 1.0 / 3.0 + 1e-9), [0, 0, 255]);
    }

    #[test]
    fn half_a_turn_makes_the_complement() {
        // 127 of 255 steps are a little less than half a turn: cyan gets one step of green less.
        assert_eq!(turned([255, 0, 0], 0.5), [0, 255, 252]);
    }
}
