//! Connected regions of a mask, and their boxes.

use std::{collections::BTreeMap, mem};

use serde::{Deserialize, Serialize};

use super::{
    ScoreMap,
    region::{Region, Regions},
};
use crate::data::PixelBox;

/// A region of pixels that touch each other by side or corner.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Component {
    /// The smallest box around it.
    #[serde(rename = "box")]
    pub bounds: PixelBox,
    /// Its number of pixels.
    pub pixels: u64,
    /// Mean score of its pixels.
    pub score: f64,
}

/// Pixels side by side: of row `y`, from column `x0` on and before `x1`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub struct PixelRun {
    pub y: u32,
    pub x0: u32,
    pub x1: u32,
}

/// A region and where its pixels are.
#[derive(Debug, Clone, PartialEq)]
pub struct RegionPixels {
    /// Its box, size and score.
    pub component: Component,
    /// In the order of rows and columns.
    pub runs: Vec<PixelRun>,
}

/// The regions of `map` with `score >= threshold`, the largest first.
///
/// Of equals, the one that starts further up, then further left.
pub fn boxes_at(map: &ScoreMap<'_>, threshold: f32) -> Vec<Component> {
    let scores = map.scores();
    let inside = |at: usize| scores[at] >= threshold;
    let score = |at: usize| scores[at].into();
    let regions = label(map.width(), map.height(), inside, |_| true, score, |_| {});
    ranked(regions).into_iter().map(|(_, component)| component).collect()
}

/// The regions of [`boxes_at`], in the same order, with their pixels.
pub fn regions_at(map: &ScoreMap<'_>, threshold: f32) -> Vec<RegionPixels> {
    let scores = map.scores();
    let inside = |at: usize| scores[at] >= threshold;
    let mut runs = Vec::new();
    let score = |at: usize| scores[at].into();
    let mut regions =
        label(map.width(), map.height(), inside, |_| true, score, |run| runs.push(run));
    let mut by_region = grouped(&mut regions, runs);
    let with_runs = |(root, component)| RegionPixels {
        component,
        runs: by_region.remove(&root).unwrap_or_default(),
    };
    ranked(regions).into_iter().map(with_runs).collect()
}

/// Splits a region into parts that are connected by sides, in the order of their first pixel.
pub fn pieces(region: &[PixelRun]) -> Vec<Vec<PixelRun>> {
    let mut regions = Regions::default();
    let (mut above, mut runs) = (Vec::<Run>::new(), Vec::new());
    for row in region.chunk_by(|a, b| a.y == b.y) {
        let found = |&pixels: &PixelRun| {
            let PixelRun { y, x0, x1 } = pixels;
            Run { pixels, region: regions.start((x0, x1 - 1), y, u64::from(x1 - x0), 0.0) }
        };
        let row: Vec<Run> = row.iter().map(found).collect();
        if above.first().is_some_and(|run| run.pixels.y + 1 == row[0].pixels.y) {
            join(&mut regions, &above, &row, BY_SIDE);
        }
        runs.extend(&row);
        above = row;
    }
    let mut first: Vec<Vec<PixelRun>> = grouped(&mut regions, runs).into_values().collect();
    first.sort_by_key(|piece| (piece[0].y, piece[0].x0));
    first
}

/// The runs of each region, by the root of the region.
fn grouped(regions: &mut Regions, runs: Vec<Run>) -> BTreeMap<u32, Vec<PixelRun>> {
    let mut groups = BTreeMap::<u32, Vec<PixelRun>>::new();
    for Run { pixels, region } in runs {
        groups.entry(regions.find(region)).or_default().push(pixels);
    }
    groups
}

/// The regions of pixels that are `inside`, the largest first; their score is 1.
///
/// Pixels that do not count connect a region but are not part of its size or its box; a region of
/// such pixels only is left out.
pub fn components(
    width: usize,
    height: usize,
    inside: impl Fn(usize) -> bool,
    counts: impl Fn(usize) -> bool,
) -> Vec<Component> {
    let regions = label(width, height, inside, counts, |_| 1.0, |_| {});
    ranked(regions).into_iter().map(|(_, component)| component).collect()
}

/// A run of pixels, and the region that was started with it.
#[derive(Debug, Clone, Copy)]
struct Run {
    pixels: PixelRun,
    region: u32,
}

/// Goes through the rows, joining each run of pixels with those it touches in
/// the row above: memory is that of two rows and the regions. `see` is given every run.
fn label(
    width: usize,
    height: usize,
    inside: impl Fn(usize) -> bool,
    counts: impl Fn(usize) -> bool,
    score: impl Fn(usize) -> f64,
    mut see: impl FnMut(Run),
) -> Regions {
    let mut regions = Regions::default();
    let (mut above, mut row) = (Vec::new(), Vec::new());
    for y in 0..height {
        let start = y * width;
        let mut x = 0;
        while let Some(first) = (x..width).find(|&x| inside(start + x)) {
            let end = (first..width).find(|&x| !inside(start + x)).unwrap_or(width);
            let counted = || (first..end).filter(|x| counts(start + x));
            let score_sum = counted().map(|x| score(start + x)).sum();
            let columns = counted().next().zip(counted().next_back()).unwrap_or((first, first));
            let columns = (columns.0 as u32, columns.1 as u32);
            let region = regions.start(columns, y as u32, counted().count() as u64, score_sum);
            let pixels = PixelRun { y: y as u32, x0: first as u32, x1: end as u32 };
            see(Run { pixels, region });
            row.push(Run { pixels, region });
            x = end;
        }
        join(&mut regions, &above, &row, BY_CORNER);
        mem::swap(&mut above, &mut row);
        row.clear();
    }
    regions
}

/// Columns between pixels of neighbouring rows that touch: none by side, one by corner.
const BY_SIDE: u32 = 0;
const BY_CORNER: u32 = 1;

/// Merges the runs of two neighbouring rows that touch.
fn join(regions: &mut Regions, above: &[Run], row: &[Run], reach: u32) {
    let mut skipped = 0;
    for Run { pixels, region } in row {
        // A run above may touch several runs below: only those that end before this one are done.
        let ends_before = |other: &&Run| other.pixels.x1 + reach <= pixels.x0;
        skipped += above[skipped..].iter().take_while(ends_before).count();
        let begins_within = |other: &&Run| other.pixels.x0 < pixels.x1 + reach;
        for other in above[skipped..].iter().take_while(begins_within) {
            let (a, b) = (regions.find(*region), regions.find(other.region));
            regions.merge(a, b);
        }
    }
}

/// The components, the largest first, each with its root among the regions.
fn ranked(mut regions: Regions) -> Vec<(u32, Component)> {
    let mut found = Vec::new();
    regions.for_each(|region| found.push(*region));
    found.sort_by_key(|region| std::cmp::Reverse(region.rank()));
    let component = |region: &Region| {
        let score = region.score_sum / region.pixels as f64;
        let component = Component { bounds: region.bounds(), pixels: region.pixels, score };
        (region.root(), component)
    };
    found.iter().map(component).collect()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    #[test]
    fn corners_connect_and_the_largest_region_comes_first() {
        #[rustfmt::skip]
        let scores = [
            0.9, 0.0, 0.0, 0.0,
            0.0, 0.7, 0.0, 0.5,
            0.0, 0.0, 0.2, 0.0,
        ];
        let found = boxes_at(&ScoreMap::new(4, 3, &scores).unwrap(), 0.5);
        let [diagonal, dot] = found[..] else { panic!("{found:?}") };
        assert_eq!(diagonal.bounds, PixelBox { x0: 0.0, y0: 0.0, x1: 2.0, y1: 2.0 });
        assert_eq!(diagonal.pixels, 2);
        assert!((diagonal.score - 0.8).abs() < 1e-7);
        assert_eq!(dot.bounds, PixelBox { x0: 3.0, y0: 1.0, x1: 4.0, y1: 2.0 });
    }

    #[test]
    fn of_equal_regions_the_upper_left_comes_first() {
        let found = components(5, 1, |at| at % 2 == 0, |_| true);
        let starts: Vec<f32> = found.iter().map(|region| region.bounds.x0).collect();
        assert_eq!(starts, [0.0, 2.0, 4.0]);
    }

    #[test]
    fn pixels_that_do_not_count_hold_a_region_together() {
        // Inside are columns 0 to 4 of 6; the middle one and the first do not count.
        let found = components(6, 1, |at| at < 5, |at| at != 2 && at != 0);
        let [whole] = found[..] else { panic!("{found:?}") };
        assert_eq!((whole.bounds.x0, whole.bounds.x1, whole.pixels), (1.0, 5.0, 3));
        assert_eq!(components(3, 1, |_| true, |_| false), []);
    }

    #[test]
    fn nothing_above_the_threshold_is_no_region() {
        assert_eq!(boxes_at(&ScoreMap::new(2, 1, &[0.1, 0.2]).unwrap(), 0.5), []);
    }

    /// Regions by flood fill from each unvisited pixel, the largest first.
    pub(in crate::metrics) fn flood(width: usize, inside: &[bool]) -> Vec<(PixelBox, u64)> {
        let height = inside.len() / width;
        let mut waiting = inside.to_vec();
        let mut regions = Vec::new();
        for seed in 0..inside.len() {
            let mut stack = if waiting[seed] { vec![seed] } else { continue };
            waiting[seed] = false;
            let mut pixels = Vec::new();
            while let Some(at) = stack.pop() {
                let (x, y) = (at % width, at / width);
                pixels.push((x, y));
                for ny in y.saturating_sub(1)..=(y + 1).min(height - 1) {
                    for nx in x.saturating_sub(1)..=(x + 1).min(width - 1) {
                        if std::mem::take(&mut waiting[ny * width + nx]) {
                            stack.push(ny * width + nx);
                        }
                    }
                }
            }
            let (xs, ys) = (pixels.iter().map(|p| p.0), pixels.iter().map(|p| p.1));
            let corners = [
                xs.clone().min(),
                ys.clone().min(),
                xs.max().map(|x| x + 1),
                ys.max().map(|y| y + 1),
            ];
            let [x0, y0, x1, y1] = corners.map(|c| c.unwrap() as f32);
            regions.push((PixelBox { x0, y0, x1, y1 }, pixels.len() as u64));
        }
        regions.sort_by(|(a, n), (b, m)| {
            let corner = |c: &PixelBox| [c.y0, c.x0, c.y1, c.x1].map(|v| v as u32);
            m.cmp(n).then(corner(a).cmp(&corner(b)))
        });
        regions
    }
}
