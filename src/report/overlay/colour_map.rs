//! Colours of scores: equal steps of the score look like equal steps of colour.
//!
//! From near-black over purple, red and orange to pale yellow, along a path in OKLab, where
//! distances are what the eye sees (Ottosson, "A perceptual color space for image processing",
//! 2020). Higher scores are lighter, so that they can be told apart in grey print and by the
//! colour-blind; each of the 256 colours is as far from the next.

use std::sync::LazyLock;

use image::Rgb;

/// The colour of each score from 0 to 255 of 255.
pub(in crate::report) static COLOURS: LazyLock<[[u8; 3]; 256]> = LazyLock::new(even_colours);

/// The colour of a score; beyond `[0, 1]` that of the nearest end.
pub(super) fn colour(score: f32) -> Rgb<u8> {
    Rgb(COLOURS[(255.0 * score.clamp(0.0, 1.0)).round() as usize])
}

/// Points of the path per colour, of which those at equal distances are taken.
const FINE: usize = 16;

fn even_colours() -> [[u8; 3]; 256] {
    let last = 255 * FINE;
    let points: Vec<[f64; 3]> = (0..=last).map(|i| path(i as f64 / last as f64)).collect();
    let mut lengths = vec![0.0];
    for pair in points.windows(2) {
        lengths.push(lengths[lengths.len() - 1] + distance(pair[0], pair[1]));
    }
    std::array::from_fn(|level| {
        let wanted = lengths[last] * level as f64 / 255.0;
        srgb(points[lengths.partition_point(|length| *length < wanted).min(last)])
    })
}

/// A point of the path in OKLab: lightness, green to red, blue to yellow.
fn path(share: f64) -> [f64; 3] {
    let lightness = 0.14 + 0.82 * share;
    // From blue-violet through red to yellow; colourful in the middle, pale at both ends.
    let hue = (295.0 + 172.0 * share).to_radians();
    let chroma = 0.045 + 0.145 * (std::f64::consts::PI * share).sin();
    [lightness, chroma * hue.cos(), chroma * hue.sin()]
}

fn distance(a: [f64; 3], b: [f64; 3]) -> f64 {
    (0..3).map(|i| (a[i] - b[i]).powi(2)).sum::<f64>().sqrt()
}

/// OKLab to sRGB; what a screen cannot show becomes the nearest it can.
fn srgb([lightness, a, b]: [f64; 3]) -> [u8; 3] {
    let long = (lightness + 0.396_337_777_4 * a + 0.215_803_757_3 * b).powi(3);
    let medium = (lightness - 0.105_561_345_8 * a - 0.063_854_172_8 * b).powi(3);
    let short = (lightness - 0.089_484_177_5 * a - 1.291_485_548 * b).powi(3);
    [
        4.076_741_662_1 * long - 3.307_711_591_3 * medium + 0.230_969_929_2 * short,
        -1.268_438_004_6 * long + 2.609_757_401_1 * medium - 0.341_319_396_5 * short,
        -0.004_196_086_3 * long - 0.703_418_614_7 * medium + 1.707_614_701 * short,
    ]
    .map(|linear: f64| {
        let linear = linear.clamp(0.0, 1.0);
        let encoded = match linear {
            dark if dark <= 0.003_130_8 => 12.92 * dark,
            light => 1.055 * light.powf(1.0 / 2.4) - 0.055,
        };
        (255.0 * encoded).round() as u8
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// sRGB to OKLab, written from the published forward matrices.
    fn oklab(colour: [u8; 3]) -> [f64; 3] {
        let [r, g, b] = colour.map(|value| {
            let value = f64::from(value) / 255.0;
            if value <= 0.040_45 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
        });
        let l = (0.412_221_470_8 * r + 0.536_332_536_3 * g + 0.051_445_992_9 * b).cbrt();
        let m = (0.211_903_498_2 * r + 0.680_699_545_1 * g + 0.107_396_956_6 * b).cbrt();
        let s = (0.088_302_461_9 * r + 0.281_718_837_6 * g + 0.629_978_700_5 * b).cbrt();
        [
            0.210_454_255_3 * l + 0.793_617_785 * m - 0.004_072_046_8 * s,
            1.977_998_495_1 * l - 2.428_592_205 * m + 0.450_593_709_9 * s,
            0.025_904_037_1 * l + 0.782_771_766_2 * m - 0.808_675_766 * s,
        ]
    }

    #[test]
    fn white_black_and_red_are_where_oklab_has_them() {
        assert_eq!(srgb([1.0, 0.0, 0.0]), [255; 3]);
        assert_eq!(srgb([0.0, 0.0, 0.0]), [0; 3]);
        // Published: red is (0.628, 0.225, 0.126).
        assert_eq!(srgb([0.627_955, 0.224_863, 0.125_846]), [255, 0, 0]);
        let red = oklab([255, 0, 0]);
        assert!(distance(red, [0.627_955, 0.224_863, 0.125_846]) < 1e-4, "{red:?}");
    }

    #[test]
    fn the_screen_can_show_the_whole_path() {
        for step in 0..=100 {
            let wanted = path(f64::from(step) / 100.0);
            let shown = oklab(srgb(wanted));
            assert!(distance(wanted, shown) < 0.01, "{step}: {wanted:?} shown as {shown:?}");
        }
    }

    #[test]
    fn equal_steps_of_the_score_are_equal_steps_for_the_eye_and_lighter_each() {
        // Eight levels at a time, so that rounding to 255ths does not count.
        let points: Vec<[f64; 3]> = COLOURS.iter().step_by(8).map(|c| oklab(*c)).collect();
        let steps: Vec<f64> = points.windows(2).map(|pair| distance(pair[0], pair[1])).collect();
        let mean = steps.iter().sum::<f64>() / steps.len() as f64;
        for (at, step) in steps.iter().enumerate() {
            assert!((step / mean - 1.0).abs() < 0.15, "step {at}: {step} beside {mean}");
        }
        assert!(points.windows(2).all(|pair| pair[1][0] > pair[0][0]));
        assert_eq!((colour(-3.0), colour(f32::INFINITY)), (colour(0.0), colour(1.0)));
    }
}
