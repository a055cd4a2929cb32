//! Score maps and masks drawn over their image.
//!
//! They must have the size of the image, row by row; another size is an error of the caller and
//! panics.

pub(super) mod colour_map;

use colour_map::colour;
use image::{Pixel, Rgb, RgbImage};

use super::picture::{self, blend, rgb};
use crate::data::mask::Mask;

/// Opacity of the colours of masks.
pub(super) const ALPHA: f32 = 0.5;
/// Opacity of the colours of scores, which every pixel has.
const HEAT_ALPHA: f32 = 0.65;
/// Opacity of the colour inside of a contour.
const INSIDE_ALPHA: f32 = 0.25;

/// Foreground found.
pub(super) const TRUE_POSITIVE: Rgb<u8> = rgb(0x00_b8_6b);
/// Background taken for foreground.
pub(super) const FALSE_POSITIVE: Rgb<u8> = rgb(0xe8_5a_00);
/// Foreground missed.
pub(super) const FALSE_NEGATIVE: Rgb<u8> = rgb(0x00_72_e0);
/// The colours of [`agreement`] with their meaning.
pub(super) const AGREEMENT_KEY: [(&str, Rgb<u8>); 3] = [
    ("true positive", TRUE_POSITIVE),
    ("false positive", FALSE_POSITIVE),
    ("false negative", FALSE_NEGATIVE),
];

/// A predicted mask drawn alone.
pub(super) const PREDICTED_MASK: Rgb<u8> = rgb(0xff_d4_00);
/// A true mask drawn alone.
pub(super) const TRUE_MASK: Rgb<u8> = rgb(0x00_b8_6b);

/// The image in grey under its scores, from dark (0) to pale yellow (1).
///
/// Scores beyond `[0, 1]` count as its nearest end; the image shows where a score is NaN.
pub fn heat_map(image: &RgbImage, scores: &[f32]) -> RgbImage {
    recolour(image, scores.len(), |i, pixel| match scores[i] {
        score if score.is_nan() => pixel,
        score => blend(grey(pixel), colour(score), HEAT_ALPHA),
    })
}

/// The image with the pixels of a mask coloured.
pub(super) fn tint(image: &RgbImage, mask: &[bool], colour: Rgb<u8>, alpha: f32) -> RgbImage {
    recolour(image, mask.len(), |i, pixel| match mask[i] {
        true => blend(pixel, colour, alpha),
        false => pixel,
    })
}

/// The image with a predicted mask, its inside lightly coloured and its border drawn, and with the
/// predicted class in the corner.
pub fn annotated(image: &RgbImage, mask: &[bool], caption: Option<&str>) -> RgbImage {
    let mut picture = tint(image, mask, PREDICTED_MASK, INSIDE_ALPHA);
    contour(&mut picture, mask, line_thickness(image), PREDICTED_MASK);
    if let Some(caption) = caption {
        picture::label(&mut picture, caption);
    }
    picture
}

/// The image in grey, coloured by how the predicted mask agrees with the truth.
///
/// True background and pixels that the truth ignores stay grey.
pub(super) fn agreement(image: &RgbImage, predicted: &[bool], truth: &Mask) -> RgbImage {
    let sizes = (truth.width, truth.height);
    assert_eq!(sizes, image.dimensions(), "the truth has the size of its image");
    recolour(image, predicted.len(), |i, pixel| match (predicted[i], truth.foreground[i]) {
        _ if truth.is_ignored(i) => grey(pixel),
        (true, true) => blend(grey(pixel), TRUE_POSITIVE, ALPHA),
        (true, false) => blend(grey(pixel), FALSE_POSITIVE, ALPHA),
        (false, true) => blend(grey(pixel), FALSE_NEGATIVE, ALPHA),
        (false, false) => grey(pixel),
    })
}

/// Draws the border of a mask: `thickness` pixels inside of it, and a dark rim of one outside.
///
/// Where the object is cut off by the edge of the image there is no border.
fn contour(image: &mut RgbImage, mask: &[bool], thickness: u32, colour: Rgb<u8>) {
    let width = image.width() as usize;
    let background = mask.iter().map(|inside| !inside).collect::<Vec<_>>();
    paint(image, &border(&background, width), rgb(0));
    let mut inside = mask.to_vec();
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

/// A line that stays visible when an image of this size is shown on a screen, in pixels.
fn line_thickness(image: &RgbImage) -> u32 {
    (image.width().max(image.height()) / 400).max(1)
}

fn grey(pixel: Rgb<u8>) -> Rgb<u8> {
    Rgb([pixel.to_luma()[0]; 3])
}

/// The image with each pixel coloured by its place among so many values.
fn recolour(
    image: &RgbImage,
    values: usize,
    colour: impl Fn(usize, Rgb<u8>) -> Rgb<u8>,
) -> RgbImage {
    let pixels = image.width() as usize * image.height() as usize;
    assert_eq!(values, pixels, "maps and masks have the size of their image");
    let mut picture = image.clone();
    for (i, pixel) in picture.pixels_mut().enumerate() {
        *pixel = colour(i, *pixel);
    }
    picture
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const GREY: Rgb<u8> = rgb(0x80_80_80);

    fn grey_image(width: u32, height: u32) -> RgbImage {
        RgbImage::from_pixel(width, height, GREY)
    }

    #[test]
    fn a_heat_map_shows_the_colours_of_its_scores_over_the_image_in_grey() {
        let mut image = grey_image(3, 1);
        image.put_pixel(0, 0, rgb(0xff_00_00));
        let picture = heat_map(&image, &[0.0, 1.0, f32::NAN]);
        assert_eq!(picture[(0, 0)], blend(grey(rgb(0xff_00_00)), colour(0.0), HEAT_ALPHA));
        assert_eq!(picture[(1, 0)], blend(GREY, colour(1.0), HEAT_ALPHA));
        assert_eq!(picture[(2, 0)], GREY);
    }

    #[test]
    fn agreement_has_a_colour_for_hits_false_alarms_and_misses() {
        let predicted = [true, true, false, false, true];
        let picture = agreement(&grey_image(5, 1), &predicted, &Mask::drawn(&["#.#.?"]));
        let tinted = |colour| blend(GREY, colour, ALPHA);
        assert_eq!(picture[(0, 0)], tinted(TRUE_POSITIVE));
        assert_eq!(picture[(1, 0)], tinted(FALSE_POSITIVE));
        assert_eq!(picture[(2, 0)], tinted(FALSE_NEGATIVE));
        assert_eq!(picture[(3, 0)], GREY);
        assert_eq!(picture[(4, 0)], GREY, "what is ignored has no colour");
    }

    #[test]
    fn tint_colours_the_mask_alone() {
        let picture = tint(&grey_image(2, 1), &[false, true], TRUE_MASK, ALPHA);
        assert_eq!(picture[(0, 0)], GREY);
        assert_eq!(picture[(1, 0)], blend(GREY, TRUE_MASK, ALPHA));
    }

    #[test]
    fn a_contour_lies_on_the_border_and_not_on_the_edge_of_the_image() {
        let truth = Mask::drawn(&["####..", "####..", "####..", "......", "......"]);
        assert_eq!(drawn(&truth, 1), ["   o* ", "   o* ", "oooo* ", "****  ", "      "]);
        assert_eq!(drawn(&truth, 2), ["  oo* ", "oooo* ", "oooo* ", "****  ", "      "]);
    }

    #[test]
    fn a_truth_that_is_empty_or_everything_has_no_contour() {
        assert_eq!(drawn(&Mask::drawn(&["...", "..."]), 2), ["   ", "   "]);
        assert_eq!(drawn(&Mask::drawn(&["###", "###"]), 2), ["   ", "   "]);
    }

    #[test]
    fn an_annotated_mask_has_a_light_inside_a_border_and_its_caption() {
        let image = grey_image(200, 120);
        let mask: Vec<bool> = (0..200 * 120).map(|i| i % 200 >= 100 && i / 200 >= 60).collect();
        let plain = annotated(&image, &mask, None);
        assert_eq!(plain[(150, 90)], blend(GREY, PREDICTED_MASK, INSIDE_ALPHA));
        assert_eq!((plain[(100, 90)], plain[(99, 90)]), (PREDICTED_MASK, rgb(0)));
        assert_eq!(plain[(10, 10)], GREY);
        let named = annotated(&image, &mask, Some("benign 97 %"));
        assert_ne!(named[(10, 10)], GREY);
        assert_eq!(named[(150, 90)], plain[(150, 90)]);
    }

    #[test]
    #[should_panic(expected = "the size of their image")]
    fn a_map_of_another_size_is_refused() {
        heat_map(&grey_image(2, 2), &[0.0; 3]);
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
        let mut picture = grey_image(truth.width, truth.height);
        contour(&mut picture, &truth.foreground, thickness, PREDICTED_MASK);
        let letter = |pixel: &Rgb<u8>| match *pixel {
            GREY => ' ',
            PREDICTED_MASK => 'o',
            _ => '*',
        };
        picture.rows().map(|row| row.map(letter).collect()).collect()
    }
}
