//! Agreement of a binary mask with the truth, from four counts.

use serde::{Deserialize, Serialize};

use super::ScoreMap;
use crate::data::mask::Mask;

/// The value of ratios such as Dice when both masks are empty.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EmptyRule {
    /// Perfect agreement.
    #[default]
    One,
    /// Undefined, and so is every mean over it: what the published code does.
    Nan,
}

/// How many pixels fall into each case; ignored pixels into none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PixelCounts {
    /// Foreground, found.
    pub true_positive: u64,
    /// Background, taken for foreground.
    pub false_positive: u64,
    /// Foreground, missed.
    pub false_negative: u64,
    /// Background, left alone.
    pub true_negative: u64,
}

/// Declares a struct of scores that can be read as a list too.
macro_rules! scores {
    ($(#[$about:meta])* pub struct $all:ident: $count:literal {
        $($(#[$meaning:meta])* pub $name:ident,)*
    }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
        pub struct $all {
            $($(#[$meaning])* pub $name: Option<f64>,)*
        }

        impl $all {
            /// The names of the scores, in the order of [`Self::columns`].
            pub const NAMES: [&'static str; $count] = [$(stringify!($name)),*];

            /// The scores as a list, in the order of [`Self::NAMES`].
            pub fn columns(&self) -> [Option<f64>; $count] {
                [$(self.$name),*]
            }

            fn from_columns([$($name),*]: [Option<f64>; $count]) -> Self {
                Self { $($name),* }
            }
        }
    };
}

scores! {
    /// Agreement of masks with the truth, in percent; `None` where a score does not exist.
    pub struct PixelScores: 9 {
        /// Dice of the foreground, F1⁺.
        pub f1_foreground,
        /// Dice of the background, F1⁻.
        pub f1_background,
        /// Intersection over union of the foreground.
        pub iou_foreground,
        /// Intersection over union of the background.
        pub iou_background,
        /// Mean of the two intersections over union.
        pub iou_mean,
        /// Share of the marked pixels that are foreground.
        pub precision,
        /// Share of the foreground that is marked.
        pub recall,
        /// Share of the background that is not marked.
        pub specificity,
        /// Share of the pixels that are right.
        pub pixel_accuracy,
    }
}

impl PixelCounts {
    /// Counts the pixels of `map` cut at `score >= threshold`.
    pub fn of(map: &ScoreMap<'_>, truth: &Mask, threshold: f32) -> Self {
        let pixels = map.scored(truth);
        pixels.map(|(score, foreground)| (score >= threshold, foreground)).collect()
    }

    /// Adds the pixels of another image.
    pub fn accumulate(&mut self, other: &Self) {
        self.true_positive += other.true_positive;
        self.false_positive += other.false_positive;
        self.false_negative += other.false_negative;
        self.true_negative += other.true_negative;
    }

    /// The same image with foreground and background exchanged.
    pub fn complement(&self) -> Self {
        Self {
            true_positive: self.true_negative,
            false_positive: self.false_negative,
            false_negative: self.false_positive,
            true_negative: self.true_positive,
        }
    }

    /// The number of scored pixels.
    pub fn pixels(&self) -> u64 {
        self.true_positive + self.false_positive + self.false_negative + self.true_negative
    }

    /// Share of the scored pixels that is marked, in percent.
    pub fn covered_area(&self) -> f64 {
        100.0 * (self.true_positive + self.false_positive) as f64 / self.pixels() as f64
    }

    /// Share of the scored pixels that is foreground, in percent.
    pub fn true_area(&self) -> f64 {
        100.0 * (self.true_positive + self.false_negative) as f64 / self.pixels() as f64
    }

    /// Whether neither the mask nor the truth has any foreground.
    pub fn both_empty(&self) -> bool {
        self.true_positive + self.false_positive + self.false_negative == 0
    }

    /// Dice of the foreground, `2|P∩G| / (|P|+|G|)`, in `[0, 1]`.
    pub fn dice(&self, empty: EmptyRule) -> f64 {
        let both = 2 * self.true_positive;
        self.ratio(both, both + self.false_positive + self.false_negative, empty)
    }

    /// Intersection over union of the foreground, in `[0, 1]`.
    pub fn iou(&self, empty: EmptyRule) -> f64 {
        let either = self.true_positive + self.false_positive + self.false_negative;
        self.ratio(self.true_positive, either, empty)
    }

    /// Share of the marked pixels that are foreground; 0 if only the truth has any.
    pub fn precision(&self, empty: EmptyRule) -> f64 {
        self.ratio(self.true_positive, self.true_positive + self.false_positive, empty)
    }

    /// Share of the foreground that is marked; 0 if only the mask has any.
    pub fn recall(&self, empty: EmptyRule) -> f64 {
        self.ratio(self.true_positive, self.true_positive + self.false_negative, empty)
    }

    fn ratio(&self, part: u64, whole: u64, empty: EmptyRule) -> f64 {
        match (whole, empty) {
            (1.., _) => part as f64 / whole as f64,
            (0, _) if !self.both_empty() => 0.0,
            (0, EmptyRule::One) => 1.0,
            (0, EmptyRule::Nan) => f64::NAN,
        }
    }
}

impl FromIterator<(bool, bool)> for PixelCounts {
    /// Counts pixels that are marked or not, and foreground or not.
    fn from_iter<T: IntoIterator<Item = (bool, bool)>>(pixels: T) -> Self {
        let mut cases = [0; 4];
        for (marked, foreground) in pixels {
            cases[usize::from(marked) * 2 + usize::from(foreground)] += 1;
        }
        let [true_negative, false_negative, false_positive, true_positive] = cases;
        Self { true_positive, false_positive, false_negative, true_negative }
    }
}

impl PixelScores {
    /// The scores of one image, or of pixels pooled over many.
    pub fn of(counts: &PixelCounts, empty: EmptyRule) -> Self {
        let background = counts.complement();
        let (iou_foreground, iou_background) = (counts.iou(empty), background.iou(empty));
        let right = counts.true_positive + counts.true_negative;
        let shares = [
            counts.dice(empty),
            background.dice(empty),
            iou_foreground,
            iou_background,
            (iou_foreground + iou_background) / 2.0,
            counts.precision(empty),
            counts.recall(empty),
            background.recall(empty),
            right as f64 / counts.pixels() as f64,
        ];
        Self::from_columns(shares.map(|share| share.is_finite().then_some(100.0 * share)))
    }

    /// The mean of each score over images; `None` if one of them lacks it.
    pub fn mean<'a>(images: impl IntoIterator<Item = &'a Self>) -> Self {
        let mut sums = [Some(0.0); 9];
        let mut count = 0_u64;
        for image in images {
            count += 1;
            for (sum, value) in sums.iter_mut().zip(image.columns()) {
                *sum = sum.zip(value).map(|(sum, value)| sum + value);
            }
        }
        let mean = |sum: f64| (count > 0).then(|| sum / count as f64);
        Self::from_columns(sums.map(|sum| sum.and_then(mean)))
    }

    /// The mean of F1⁺ and F1⁻.
    pub fn f1_mean(&self) -> Option<f64> {
        Some((self.f1_foreground? + self.f1_background?) / 2.0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// 3 found, 1 too many, 2 missed, 4 left alone.
    const MIXED: PixelCounts =
        PixelCounts { true_positive: 3, false_positive: 1, false_negative: 2, true_negative: 4 };

    #[test]
    fn scores_follow_from_the_four_counts() {
        let scores = PixelScores::of(&MIXED, EmptyRule::One);
        let ious = (100.0 * 3.0 / 6.0, 100.0 * 4.0 / 7.0);
        let expected = [
            100.0 * 6.0 / 9.0,
            100.0 * 8.0 / 11.0,
            ious.0,
            ious.1,
            (ious.0 + ious.1) / 2.0,
            75.0,
            60.0,
            80.0,
            70.0,
        ];
        for ((name, found), expected) in
            PixelScores::NAMES.iter().zip(scores.columns()).zip(expected)
        {
            assert!((found.unwrap() - expected).abs() < 1e-12, "{name}: {found:?} {expected}");
        }
    }

    #[test]
    fn the_names_are_those_of_the_fields_in_order() {
        let json = serde_json::to_string(&PixelScores::default()).unwrap();
        let names: Vec<String> =
            PixelScores::NAMES.iter().map(|name| format!("\"{name}\":null")).collect();
        assert_eq!(json, format!("{{{}}}", names.join(",")));
    }

    #[test]
    fn marking_everything_scores_two_p_over_one_plus_p_and_no_background() {
        let truth = Mask {
            width: 4,
            height: 1,
            foreground: vec![true, false, false, false],
            ignored: None,
        };
        let map = ScoreMap::new(4, 1, &[1.0; 4]).unwrap();
        let scores = PixelScores::of(&PixelCounts::of(&map, &truth, 0.5), EmptyRule::One);
        let p = 0.25;
        assert_eq!(scores.f1_foreground, Some(100.0 * 2.0 * p / (1.0 + p)));
        assert_eq!(scores.f1_background, Some(0.0));
        assert_eq!((scores.recall, scores.specificity), (Some(100.0), Some(0.0)));
    }

    #[test]
    fn two_empty_masks_agree_unless_the_published_rule_is_asked_for() {
        let empty = PixelCounts { true_negative: 5, ..Default::default() };
        assert!(empty.both_empty());
        assert_eq!(empty.dice(EmptyRule::One), 1.0);
        assert!(empty.dice(EmptyRule::Nan).is_nan());
        let scores = PixelScores::of(&empty, EmptyRule::Nan);
        assert_eq!((scores.f1_foreground, scores.f1_background), (None, Some(100.0)));
        let whole = PixelScores::of(&MIXED, EmptyRule::Nan);
        assert_eq!(PixelScores::mean([&whole, &scores]).f1_foreground, None);
    }

    #[test]
    fn a_mask_where_there_is_no_truth_and_the_reverse_score_zero() {
        let invented = PixelCounts { false_positive: 2, true_negative: 2, ..Default::default() };
        let missed = PixelCounts { false_negative: 2, true_negative: 2, ..Default::default() };
        for counts in [invented, missed] {
            for rule in [EmptyRule::One, EmptyRule::Nan] {
                assert_eq!(counts.dice(rule), 0.0);
                assert_eq!(counts.precision(rule), 0.0);
                assert_eq!(counts.recall(rule), 0.0);
            }
        }
    }

    #[test]
    fn ignored_pixels_and_scores_on_the_threshold_are_counted_as_stated() {
        let truth = Mask {
            width: 3,
            height: 1,
            foreground: vec![true, true, false],
            ignored: Some(vec![false, true, false]),
        };
        let map = ScoreMap::new(3, 1, &[0.5, 0.0, 0.499]).unwrap();
        let counts = PixelCounts::of(&map, &truth, 0.5);
        assert_eq!(
            counts,
            PixelCounts { true_positive: 1, true_negative: 1, ..Default::default() }
        );
    }

    #[test]
    fn the_mean_over_no_image_does_not_exist() {
        assert_eq!(PixelScores::mean([]), PixelScores::default());
    }

    proptest! {
        #[test]
        fn dice_is_symmetric_bounded_and_not_below_iou(cases in prop::array::uniform4(0_u64..50)) {
            let [true_positive, false_positive, false_negative, true_negative] = cases;
            let counts = PixelCounts { true_positive, false_positive, false_negative, true_negative };
            let swapped = PixelCounts {
                false_positive: false_negative,
                false_negative: false_positive,
                ..counts
            };
            let dice = counts.dice(EmptyRule::One);
            prop_assert_eq!(dice, swapped.dice(EmptyRule::One));
            prop_assert!((0.0..=1.0).contains(&dice));
            prop_assert!(counts.iou(EmptyRule::One) <= dice);
            prop_assert_eq!(counts.precision(EmptyRule::One), swapped.recall(EmptyRule::One));
        }

        #[test]
        fn background_dice_is_foreground_dice_of_the_complements(
            marked in prop::collection::vec(any::<bool>(), 12),
            foreground in prop::collection::vec(any::<bool>(), 12),
        ) {
            let of = |marked: Vec<bool>, foreground: Vec<bool>| {
                let scores: Vec<f32> = marked.iter().map(|&m| f32::from(u8::from(m))).collect();
                let truth = Mask { width: 4, height: 3, foreground, ignored: None };
                let map = ScoreMap::new(4, 3, &scores).unwrap();
                PixelScores::of(&PixelCounts::of(&map, &truth, 0.5), EmptyRule::One)
            };
            let not = |mask: &[bool]| mask.iter().map(|m| !m).collect::<Vec<_>>();
            let (straight, flipped) =
                (of(marked.clone(), foreground.clone()), of(not(&marked), not(&foreground)));
            prop_assert_eq!(straight.f1_background, flipped.f1_foreground);
            prop_assert_eq!(straight.iou_background, flipped.iou_foreground);
            prop_assert_eq!(straight.specificity, flipped.recall);
        }
    }
}
