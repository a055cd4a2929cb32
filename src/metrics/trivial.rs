//! Scores of trivial masks, which ignore the image, to compare those of a method with.

use serde::{Deserialize, Serialize};

use super::{EmptyRule, PixelCounts, PixelScores};
use crate::data::mask::Mask;

/// The scores of two trivial masks on the same images: means over images, in percent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Trivial {
    /// Every pixel is foreground.
    pub all_ones: PixelScores,
    /// The pixels of an ellipse about the centre, half as wide and as high as the image.
    pub centre_ellipse: PixelScores,
}

impl Trivial {
    /// The masks' scores on one image; `None` if the truth ignores every pixel.
    pub(crate) fn of(truth: &Mask, empty: EmptyRule) -> Option<Self> {
        let across = from_centre(truth.width);
        let down = from_centre(truth.height);
        let inside = down.iter().flat_map(|y| across.iter().map(move |x| x * x + y * y <= 1.0));
        let pixels = inside.zip(truth.foreground.iter().copied()).enumerate();
        let scored = pixels.filter(|(at, _)| !truth.is_ignored(*at)).map(|(_, pixel)| pixel);
        let ellipse: PixelCounts = scored.collect();
        let all = PixelCounts {
            true_positive: ellipse.true_positive + ellipse.false_negative,
            false_positive: ellipse.false_positive + ellipse.true_negative,
            ..PixelCounts::default()
        };
        (all.pixels() > 0).then(|| Self {
            all_ones: PixelScores::of(&all, empty),
            centre_ellipse: PixelScores::of(&ellipse, empty),
        })
    }

    /// The means over images; `None` before the first one.
    pub(super) fn mean(images: &[Self]) -> Option<Self> {
        (!images.is_empty()).then(|| Self {
            all_ones: PixelScores::mean(images.iter().map(|image| &image.all_ones)),
            centre_ellipse: PixelScores::mean(images.iter().map(|image| &image.centre_ellipse)),
        })
    }
}

/// Distances of pixels' centres from the middle of a side, in quarters of it.
pub(crate) fn from_centre(side: u32) -> Vec<f64> {
    let middle = f64::from(side) / 2.0;
    (0..side).map(|i| (f64::from(i) + 0.5 - middle) / (middle / 2.0)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_masks_are_scored_on_the_pixels_that_count() {
        // The ellipse of 4 × 4 pixels is the four in the middle: (½)² + (½)² ≤ 1 < (3/2)².
        let truth = Mask::drawn(&["....", ".##.", ".#?.", "...."]);
        let found = Trivial::of(&truth, EmptyRule::One).unwrap();
        // 3 of 15 scored pixels are foreground: Dice 2·3 / (15 + 3).
        assert!((found.all_ones.f1_foreground.unwrap() - 100.0 * 6.0 / 18.0).abs() < 1e-9);
        assert_eq!(found.all_ones.f1_background, Some(0.0));
        assert_eq!(found.centre_ellipse.f1_foreground, Some(100.0));
        assert_eq!(found.centre_ellipse.f1_background, Some(100.0));
        assert_eq!(Trivial::of(&Mask::drawn(&["??"]), EmptyRule::One), None);
    }

    #[test]
    fn the_split_s_scores_are_means_over_images() {
        let images = [["#.", ".."], ["##", "##"]].map(|rows| Mask::drawn(&rows));
        let scores: Vec<_> =
            images.iter().map(|truth| Trivial::of(truth, EmptyRule::One).unwrap()).collect();
        // 2·1 / (4 + 1) and 1.
        assert_eq!(Trivial::mean(&scores).unwrap().all_ones.f1_foreground, Some(70.0));
        assert_eq!(Trivial::mean(&[]), None);
    }
}
