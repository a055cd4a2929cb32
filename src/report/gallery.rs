//! The choice of the images that a report shows, which are kept on disk until it is made.
//!
//! The worst, median and best images of a split are known only once all are
//! scored. Each is made small as it passes and put on disk; the chosen ones are
//! read back. So a split of any length needs the memory of a few images.

mod thumbnail;

pub(super) use thumbnail::{Thumbnail, ThumbnailFile};

use serde::Serialize;

use crate::metrics::ImageRow;

/// At most this many images are shown: a third each of the worst, the median and the best.
pub(super) const MOST_SHOWN: usize = 120;

/// The rank of an image among all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Standing {
    Worst,
    Median,
    Best,
    /// Not scored: there is no truth.
    Unscored,
}

/// Chooses what is shown of a split, worst first: everything, or a third each of the worst,
/// the median and the best. Images without truth come last, if there is room.
///
/// The order is that of the mean of F1⁺ and F1⁻; of equals, that of the split.
pub(super) fn choose(images: &[ImageRow], most: usize) -> Vec<(usize, Standing)> {
    let score = |index: &usize| images[*index].pixels.f1_mean();
    let (mut scored, unscored): (Vec<usize>, Vec<usize>) =
        (0..images.len()).partition(|index| score(index).is_some());
    scored.sort_by(|a, b| score(a).partial_cmp(&score(b)).expect("scores are numbers"));

    let count = scored.len();
    let standing = |rank: usize| match 3 * rank / count {
        0 => Standing::Worst,
        1 => Standing::Median,
        _ => Standing::Best,
    };
    let mut chosen: Vec<(usize, Standing)> =
        ranks(count, most).map(|rank| (scored[rank], standing(rank))).collect();
    let room = most - chosen.len();
    chosen.extend(unscored.into_iter().take(room).map(|index| (index, Standing::Unscored)));
    chosen
}

/// Ranks at both ends and in the middle of `count`, `most` in all.
fn ranks(count: usize, most: usize) -> impl Iterator<Item = usize> {
    let most = most.min(count);
    let (worst, best) = (most.div_ceil(3), most / 3);
    let median = most - worst - best;
    let start = if most == count { worst } else { (count - median) / 2 };
    (0..worst).chain(start..start + median).chain(count - best..count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{metrics::PixelScores, report::document::tests::example};

    fn rows(scores: &[Option<f64>]) -> Vec<ImageRow> {
        let template = example().evaluation.images.remove(0);
        let row = |score: &Option<f64>| {
            let (f1_foreground, f1_background) = (*score, *score);
            let pixels = PixelScores { f1_foreground, f1_background, ..template.pixels };
            ImageRow { pixels, ..template.clone() }
        };
        scores.iter().map(row).collect()
    }

    #[test]
    fn a_small_split_is_shown_whole_with_the_worst_first() {
        use Standing::*;
        let rows = rows(&[Some(90.0), None, Some(10.0), Some(50.0)]);
        assert_eq!(choose(&rows, 10), [(2, Worst), (3, Median), (0, Best), (1, Unscored)]);
        assert_eq!(choose(&[], 10), []);
    }

    #[test]
    fn of_a_large_split_both_ends_and_the_middle_are_shown() {
        let scores: Vec<_> = (0..100).map(|score| Some(f64::from(score))).collect();
        let shown: Vec<usize> = choose(&rows(&scores), 6).into_iter().map(|(i, _)| i).collect();
        assert_eq!(shown, [0, 1, 49, 50, 98, 99]);
    }

    #[test]
    fn any_number_is_shown_once_each() {
        for count in 0..12 {
            for most in 0..15 {
                let mut shown: Vec<usize> = ranks(count, most).collect();
                assert!(shown.is_sorted(), "{shown:?}");
                shown.dedup();
                assert_eq!(shown.len(), most.min(count), "{most} of {count}");
                assert!(shown.iter().all(|rank| *rank < count));
            }
        }
    }
}
