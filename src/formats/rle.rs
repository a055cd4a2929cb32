//! Run lengths of masks, as COCO writes them: down the columns, zeros first.

use super::contour::Rows;
use crate::metrics::PixelRun;

/// The run lengths of a region in an image of `width × height`: off, on, off, …
///
/// Where a run of a column starts there is nothing above, and where it ends nothing below; so the
/// region's upper and lower edges are all that is needed.
pub fn counts(region: &[PixelRun], [width, height]: [u32; 2]) -> Vec<u64> {
    let rows = Rows::of(region);
    let along = |step: i64, below: u64| {
        let exposed = rows.exposed(step).into_iter();
        let mut places: Vec<u64> = exposed
            .flat_map(|[y, from, to]| {
                (from..to).map(move |x| u64::from(x) * u64::from(height) + u64::from(y) + below)
            })
            .collect();
        places.sort_unstable();
        places
    };
    let mut counts = Vec::new();
    let mut place = 0;
    for (start, end) in along(-1, 0).into_iter().zip(along(1, 1)) {
        match counts.last_mut() {
            // On from the foot of one column to the head of the next.
            Some(last) if start == place => *last += end - start,
            _ => counts.extend([start - place, end - start]),
        }
        place = end;
    }
    let all = u64::from(width) * u64::from(height);
    if place < all || counts.is_empty() {
        counts.push(all - place);
    }
    counts
}

/// Run lengths in COCO's compressed form: differences to the count before the last, in groups of
/// five bits with the lowest first, each group a letter from `0` on.
pub fn compressed(counts: &[u64]) -> String {
    let mut text = String::new();
    for (index, &count) in counts.iter().enumerate() {
        let before = if index > 2 { counts[index - 2] } else { 0 };
        let mut rest = count as i64 - before as i64;
        loop {
            let group = (rest & 0x1f) as u8;
            rest >>= 5;
            // The highest bit of the last group is the sign.
            let more = if group & 0x10 == 0 { rest != 0 } else { rest != -1 };
            let letter = group | if more { 0x20 } else { 0 };
            text.push(char::from(48 + letter));
            if !more {
                break;
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{super::contour::tests::drawn, *};
    use crate::metrics::{ScoreMap, regions_at};

    #[test]
    fn runs_go_down_the_columns() {
        let region = &drawn(&["##.", "#..", "##."])[0];
        // Down: ### #.# ... , so 0 off, 4 on, 1 off, 1 on, 3 off.
        assert_eq!(counts(region, [3, 3]), [0, 4, 1, 1, 3]);
        assert_eq!(counts(&[], [2, 2]), [4]);
    }

    #[test]
    fn every_mask_of_pycocotools_is_written_the_same() {
        let vectors = include_str!("../../tests/it/fixtures/formats/coco_rle.json");
        let vectors: Vec<serde_json::Value> = serde_json::from_str(vectors).unwrap();
        assert!(vectors.len() > 20);
        for vector in vectors {
            let rows: Vec<&str> = vector["mask"]
                .as_array()
                .unwrap()
                .iter()
                .map(|row| row.as_str().unwrap())
                .collect();
            let size = [rows[0].len() as u32, rows.len() as u32];
            // The fixture's masks may have several regions, or none.
            let mut runs: Vec<PixelRun> = drawn(&rows).concat();
            runs.sort_by_key(|run| (run.y, run.x0));
            let text = compressed(&counts(&runs, size));
            assert_eq!(text, vector["counts"].as_str().unwrap(), "{rows:?}");
        }
    }

    proptest! {
        #[test]
        fn run_lengths_give_the_mask_back(
            width in 1_usize..9, bits in prop::collection::vec(any::<bool>(), 1..80),
        ) {
            let height = bits.len().div_ceil(width);
            let mut scores: Vec<f32> = bits.iter().map(|&bit| f32::from(u8::from(bit))).collect();
            scores.resize(width * height, 0.0);
            let map = ScoreMap::new(width, height, &scores).unwrap();
            let mut sum = vec![0.0; scores.len()];
            for region in regions_at(&map, 0.5) {
                let counts = counts(&region.runs, [width as u32, height as u32]);
                prop_assert_eq!(counts.iter().sum::<u64>(), scores.len() as u64);
                let mut place = 0;
                for (index, count) in counts.into_iter().enumerate() {
                    for _ in 0..count {
                        let (x, y) = (place / height, place % height);
                        sum[y * width + x] += (index % 2) as f32;
                        place += 1;
                    }
                }
            }
            prop_assert_eq!(sum, scores);
        }
    }
}
