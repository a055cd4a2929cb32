//! What was found, drawn on the image it was found in, as the field draws it.
//!
//! | picture | convention |
//! |---|---|
//! | [`heat_map`] | jet, blue at 0 and red at 1, half transparent |
//! | [`tint`] | a binary mask in one colour, half transparent |
//! | [`contour`] | the border of the truth, with a dark rim that shows on any image |
//! | [`agreement`] | hits green, false alarms vermilion, misses blue, on the image in grey |
//! | [`outline_box`] | predicted boxes red, true ones green |
//!
//! [`strip`] and [`sheet`] put such pictures side by side under their captions.
//! Maps and masks have the size of their image, row by row; another size is a
//! mistake of the caller and panics.
//!
//! [`heat_map`]: crate::report::overlay::heat_map
//! [`tint`]: crate::report::overlay::tint
//! [`contour`]: crate::report::overlay::contour
//! [`agreement`]: crate::report::overlay::agreement
//! [`outline_box`]: crate::report::overlay::outline_box
//! [`strip`]: crate::report::overlay::strip
//! [`sheet`]: crate::report::overlay::sheet

mod sheet;

pub use sheet::{Panel, Row, sheet, strip, thumbnail};

use image::{Pixel, Rgb, RgbImage};

use super::canvas::{Area, Canvas, blend, rgb};
use crate::data::mask::Mask;

/// How far colours hide the image beneath.
pub const ALPHA: f32 = 0.5;

/// Foreground found.
pub const TRUE_POSITIVE: Rgb<u8> = rgb(0x00_b8_6b);
/// Background taken for foreground.
pub const FALSE_POSITIVE: Rgb<u8> = rgb(0xe8_5a_00);
/// Foreground missed.
pub const FALSE_NEGATIVE: Rgb<u8> = rgb(0x00_72_e0);
/// The colours of [`agreement`] with their meaning, for the key of a [`sheet`].
pub const AGREEMENT_KEY: [(&str, Rgb<u8>); 3] = [
    ("true positive", TRUE_POSITIVE),
    ("false positive", FALSE_POSITIVE),
    ("false negative", FALSE_NEGATIVE),
];

/// The border of the truth.
pub const TRUTH_CONTOUR: Rgb<u8> = rgb(0xff_ff_00);
/// A predicted mask drawn alone.
pub const PREDICTED_MASK: Rgb<u8> = rgb(0xe6_00_26);
/// A true mask drawn alone.
pub const TRUE_MASK: Rgb<u8> = rgb(0x00_b8_6b);
/// A predicted box.
pub const PREDICTED_BOX: Rgb<u8> = rgb(0xff_20_20);
/// A true box.
pub const TRUE_BOX: Rgb<u8> = rgb(0x20_e0_20);

/// The image under its scores, from blue (0) to red (1).
///
/// Scores beyond `[0, 1]` count as its nearest end; the image shows where a score is NaN.
pub fn heat_map(image: &RgbImage, scores: &[f32]) -> RgbImage {
    check_size(image, scores.len());
    recolour(image, |i, pixel| match scores[i] {
        score if score.is_nan() => pixel,
        score => blend(pixel, jet(score), ALPHA),
    })
}

/// The colour of a score in `[0, 1]`: blue, cyan, green, yellow, red, dark at both ends.
pub fn jet(score: f32) -> Rgb<u8> {
    let score = score.clamp(0.0, 1.0);
    let ramp = |peak: f32| (1.5 - (4.0 * score - peak).abs()).clamp(0.0, 1.0);
    Rgb([3.0, 2.0, 1.0].map(|peak| (255.0 * ramp(peak)).round() as u8))
}

/// The image with the pixels of a mask coloured.
pub fn tint(image: &RgbImage, mask: &[bool], colour: Rgb<u8>) -> RgbImage {
    check_size(image, mask.len());
    recolour(image, |i, pixel| if mask[i] { blend(pixel, colour, ALPHA) } else { pixel })
}

/// The image in grey, coloured by how the predicted mask agrees with the truth.
///
/// True background and pixels without a predicted_class stay grey.
pub fn agreement(image: &RgbImage, predicted: &[bool], truth: &Mask) -> RgbImage {
    check_size(image, predicted.len());
    check_truth(image, truth);
    let ignored = |i: usize| truth.ignored.as_ref().is_some_and(|ignored| ignored[i]);
    recolour(image, |i, pixel| {
        let grey = Rgb([pixel.to_luma()[0]; 3]);
        match (predicted[i], truth.foreground[i]) {
            _ if ignored(i) => grey,
            (true, true) => blend(grey, TRUE_POSITIVE, ALPHA),
            (true, false) => blend(grey, FALSE_POSITIVE, ALPHA),
            (false, true) => blend(grey, FALSE_NEGATIVE, ALPHA),
            (false, false) => grey,
        }
    })
}

/// Draws the border of the truth: `thickness` pixels inside of it, and a dark rim of one outside.
///
/// Where the object is cut off by the edge of the image there is no border.
pub fn contour(image: &mut RgbImage, truth: &Mask, thickness: u32, colour: Rgb<u8>) {
    check_truth(image, truth);
    let width = image.width() as usize;
    let background = truth.foreground.iter().map(|inside| !inside).collect::<Vec<_>>();
    paint(image, &border(&background, width), rgb(0));
    let mut inside = truth.foreground.clone();
    for _ in 0..thickness {
        let ring = border(&inside, width);
        ring.iter().for_each(|&i| inside[i] = false);
        paint(image, &ring, colour);
    }
}

/// The pixels of a mask that touch a pixel outside of it by a side.
fn border(mask: &[bool], width: usize) -> Vec<usize> {
    let outside = |i: usize| mask.get(i).is_some_and(|inside| !inside);
    let touches = |&i: &usize| {
        let (left, right) = (i % width > 0, i % width + 1 < width);
        (left && outside(i - 1))
            || (right && outside(i + 1))
            || (i >= width && outside(i - width))
            || outside(i + width)
    };
    (0..mask.len()).filter(|&i| mask[i]).filter(touches).collect()
}

fn paint(image: &mut RgbImage, indices: &[usize], colour: Rgb<u8>) {
    let width = image.width() as usize;
    for i in indices {
        image.put_pixel((i % width) as u32, (i / width) as u32, colour);
    }
}

/// Draws a box, `thickness` pixels wide and inside of `area`.
pub fn outline_box(image: &mut RgbImage, area: Area, thickness: u32, colour: Rgb<u8>) {
    let mut canvas = Canvas::from(std::mem::take(image));
    canvas.outline(area, thickness, colour);
    *image = canvas.into_image();
}

/// A line that stays visible when an image of this size is shown on a screen, in pixels.
pub fn line_thickness(image: &RgbImage) -> u32 {
    (image.width().max(image.height()) / 400).max(1)
}

fn recolour(image: &RgbImage, colour: impl Fn(usize, Rgb<u8>) -> Rgb<u8>) -> RgbImage {
    let mut picture = image.clone();
    for (i, pixel) in picture.pixels_mut().enumerate() {
        *pixel = colour(i, *pixel);
    }
    picture
}

fn check_size(image: &RgbImage, values: usize) {
    let pixels = image.width() as usize * image.height() as usize;
    assert_eq!(values, pixels, "maps and masks have the size of their image");
}

fn check_truth(image: &RgbImage, truth: &Mask) {
    let sizes = (truth.width, truth.height);
    assert_eq!(sizes, image.dimensions(), "the truth has the size of its image");
    check_size(image, truth.foreground.len());
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const GREY: Rgb<u8> = rgb(0x80_80_80);

    fn grey(width: u32, height: u32) -> RgbImage {
        RgbImage::from_pixel(width, height, GREY)
    }

    /// A mask from rows of `#` (foreground), `.` (background) and `?` (ignored).
    fn mask(rows: &[&str]) -> Mask {
        let letters = rows.concat();
        Mask {
            width: rows[0].len() as u32,
            height: rows.len() as u32,
            foreground: letters.chars().map(|letter| letter == '#').collect(),
            ignored: Some(letters.chars().map(|letter| letter == '?').collect()),
        }
    }

    #[test]
    fn jet_runs_from_dark_blue_over_green_to_dark_red() {
        let colours = [0.0, 0.125, 0.375, 0.5, 0.625, 0.875, 1.0].map(jet);
        let expected =
            [0x00_00_80, 0x00_00_ff, 0x00_ff_ff, 0x80_ff_80, 0xff_ff_00, 0xff_00_00, 0x80_00_00];
        assert_eq!(colours, expected.map(rgb));
        assert_eq!((jet(-3.0), jet(f32::INFINITY)), (jet(0.0), jet(1.0)));
    }

    #[test]
    fn a_heat_map_is_half_image_and_half_colour() {
        let picture = heat_map(&grey(3, 1), &[0.125, 0.875, f32::NAN]);
        assert_eq!(picture[(0, 0)], rgb(0x40_40_c0));
        assert_eq!(picture[(1, 0)], rgb(0xc0_40_40));
        assert_eq!(picture[(2, 0)], GREY);
    }

    #[test]
    fn agreement_has_a_colour_for_hits_false_alarms_and_misses() {
        let predicted = [true, true, false, false, true];
        let picture = agreement(&grey(5, 1), &predicted, &mask(&["#.#.?"]));
        let tinted = |colour| blend(GREY, colour, ALPHA);
        assert_eq!(picture[(0, 0)], tinted(TRUE_POSITIVE));
        assert_eq!(picture[(1, 0)], tinted(FALSE_POSITIVE));
        assert_eq!(picture[(2, 0)], tinted(FALSE_NEGATIVE));
        assert_eq!(picture[(3, 0)], GREY);
        assert_eq!(picture[(4, 0)], GREY, "no predicted_class, no colour");
    }

    #[test]
    fn tint_colours_the_mask_alone() {
        let picture = tint(&grey(2, 1), &[false, true], TRUE_MASK);
        assert_eq!(picture[(0, 0)], GREY);
        assert_eq!(picture[(1, 0)], blend(GREY, TRUE_MASK, ALPHA));
    }

    #[test]
    fn a_contour_lies_on_the_border_and_not_on_the_edge_of_the_image() {
        let truth = mask(&["####..", "####..", "####..", "......", "......"]);
        assert_eq!(drawn(&truth, 1), ["   o* ", "   o* ", "oooo* ", "****  ", "      "]);
        assert_eq!(drawn(&truth, 2), ["  oo* ", "oooo* ", "oooo* ", "****  ", "      "]);
    }

    #[test]
    fn a_truth_that_is_empty_or_everything_has_no_contour() {
        assert_eq!(drawn(&mask(&["...", "..."]), 2), ["   ", "   "]);
        assert_eq!(drawn(&mask(&["###", "###"]), 2), ["   ", "   "]);
    }

    #[test]
    fn a_box_may_reach_beyond_the_image() {
        let mut picture = grey(4, 4);
        outline_box(&mut picture, Area { x: 2, y: 2, width: 9, height: 9 }, 1, TRUE_BOX);
        assert_eq!(picture[(2, 3)], TRUE_BOX);
        assert_eq!(picture[(3, 2)], TRUE_BOX);
        assert_eq!(picture[(3, 3)], GREY);
    }

    #[test]
    #[should_panic(expected = "the size of their image")]
    fn a_map_of_another_size_is_refused() {
        heat_map(&grey(2, 2), &[0.0; 3]);
    }

    proptest! {
        #[test]
        fn contours_stay_on_their_side_of_the_border(
            foreground in prop::collection::vec(any::<bool>(), 7 * 5), thickness in 1_u32..3
        ) {
            let truth = Mask { width: 7, height: 5, foreground, ignored: None };
            for (letter, inside) in drawn(&truth, thickness).concat().chars().zip(&truth.foreground) {
                prop_assert!(letter == ' ' || (letter == 'o') == *inside);
            }
        }
    }

    /// The contour as text: `o` for its line, `*` for its rim.
    fn drawn(truth: &Mask, thickness: u32) -> Vec<String> {
        let mut picture = grey(truth.width, truth.height);
        contour(&mut picture, truth, thickness, TRUTH_CONTOUR);
        let letter = |pixel: &Rgb<u8>| match *pixel {
            GREY => ' ',
            TRUTH_CONTOUR => 'o',
            _ => '*',
        };
        picture.rows().map(|row| row.map(letter).collect()).collect()
    }
}
