//! Polygons around regions, along the edges of their pixels.
//!
//! Corners are whole numbers: pixel `(x, y)` is the square from `(x, y)` to `(x + 1, y + 1)`, so
//! that filling a polygon gives the region back exactly. Rings are simple and have the region on
//! the right on a screen, where `y` points down; by the shoelace formula, outer rings have
//! positive area and holes negative area, as RFC 7946 asks.

use std::collections::{HashMap, HashSet};

use crate::metrics::{PixelRun, pieces};

/// A corner between pixels: column and row.
pub type Corner = [u32; 2];

/// The corners of a closed line, without the first one again at the end.
pub type Ring = Vec<Corner>;

/// Pixels that touch by side, as lines around them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Polygon {
    /// Around everything.
    pub outer: Ring,
    /// Around what is left out.
    pub holes: Vec<Ring>,
}

/// The polygons of a region, in the order of their first pixel: several where parts of the region
/// touch by corners only.
pub fn polygons(region: &[PixelRun]) -> Vec<Polygon> {
    pieces(region).iter().map(|piece| trace(&Rows::of(piece))).collect()
}

/// Runs of pixels, found by their row.
pub(super) struct Rows<'a> {
    /// The first row.
    top: u32,
    /// The runs of each row from there on, from left to right.
    rows: Vec<&'a [PixelRun]>,
}

impl<'a> Rows<'a> {
    /// Of runs in the order of rows and columns.
    pub(super) fn of(runs: &'a [PixelRun]) -> Self {
        let top = runs.first().map_or(0, |run| run.y);
        let bottom = runs.last().map_or(top, |run| run.y + 1);
        let mut rows = vec![&runs[..0]; (bottom - top) as usize];
        for row in runs.chunk_by(|a, b| a.y == b.y) {
            rows[(row[0].y - top) as usize] = row;
        }
        Self { top, rows }
    }

    /// The runs of a row.
    fn row(&self, y: i64) -> &'a [PixelRun] {
        let index = usize::try_from(y - i64::from(self.top)).ok();
        index.and_then(|index| self.rows.get(index).copied()).unwrap_or_default()
    }

    fn contains(&self, x: i64, y: i64) -> bool {
        let row = self.row(y);
        let next = row.partition_point(|run| i64::from(run.x0) <= x);
        next > 0 && x < i64::from(row[next - 1].x1)
    }

    /// The parts of runs with nothing above them (`step` −1) or below them (1): row, and the
    /// columns from and to.
    pub(super) fn exposed(&self, step: i64) -> Vec<[u32; 3]> {
        let mut parts = Vec::new();
        for run in self.rows.iter().flat_map(|row| row.iter()) {
            let beside = self.row(i64::from(run.y) + step);
            let mut from = run.x0;
            let first = beside.partition_point(|other| other.x1 <= run.x0);
            for other in beside[first..].iter().take_while(|other| other.x0 < run.x1) {
                if other.x0 > from {
                    parts.push([run.y, from, other.x0]);
                }
                from = other.x1;
            }
            if from < run.x1 {
                parts.push([run.y, from, run.x1]);
            }
        }
        parts
    }
}

/// The directions of a line: east, south, west, north.
const STEPS: [[i64; 2]; 4] = [[1, 0], [0, 1], [-1, 0], [0, -1]];
const EAST: usize = 0;
/// The pixel on the left of the line that leaves corner `[0, 0]` in each of these directions; on its
/// right is that of the next direction.
const LEFT: [[i64; 2]; 4] = [[0, -1], [0, 0], [-1, 0], [-1, -1]];

/// The lines around pixels that touch by side.
fn trace(rows: &Rows<'_>) -> Polygon {
    // Every line runs east somewhere, along pixels with nothing above them.
    let mut seen = HashSet::new();
    let (mut outer, mut holes) = (Ring::new(), Vec::new());
    for [y, x, _] in rows.exposed(-1) {
        if seen.contains(&[x, y]) {
            continue;
        }
        for ring in simple(follow(rows, [x, y], &mut seen)) {
            if doubled_area(&ring) > 0 { outer = ring } else { holes.push(ring) }
        }
    }
    Polygon { outer, holes }
}

/// Follows the line that starts east at a corner, back to it; notes where it turns east.
fn follow(rows: &Rows<'_>, start: Corner, seen: &mut HashSet<Corner>) -> Ring {
    let mut ring = Ring::new();
    let (mut place, mut heading) = (start.map(i64::from), EAST);
    loop {
        let corner = place.map(|axis| axis as u32);
        if heading == EAST {
            seen.insert(corner);
        }
        ring.push(corner);
        // Straight on, until the line turns.
        let turned = loop {
            let [dx, dy] = STEPS[heading];
            place = [place[0] + dx, place[1] + dy];
            let ahead = |direction: usize| {
                let [dx, dy] = LEFT[direction % 4];
                rows.contains(place[0] + dx, place[1] + dy)
            };
            match (ahead(heading), ahead(heading + 1)) {
                (false, true) => {}
                (true, true) => break (heading + 3) % 4,
                // Pixels that touch by a corner are kept apart.
                (_, false) => break (heading + 1) % 4,
            }
        };
        heading = turned;
        if heading == EAST && place == start.map(i64::from) {
            return ring;
        }
    }
}

/// Cuts a line that touches itself in corners into rings that do not.
fn simple(line: Ring) -> Vec<Ring> {
    let (mut rings, mut open) = (Vec::new(), Ring::new());
    let mut places = HashMap::new();
    for corner in line {
        if let Some(start) = places.get(&corner).copied() {
            let ring: Ring = open.drain(start..).collect();
            ring.iter().for_each(|corner| {
                places.remove(corner);
            });
            rings.push(ring);
        }
        places.insert(corner, open.len());
        open.push(corner);
    }
    rings.push(open);
    rings
}

/// Twice the area of a ring by the shoelace formula; negative if it runs the other way.
pub fn doubled_area(ring: &[Corner]) -> i64 {
    let next = ring.iter().cycle().skip(1);
    let cross = |(a, b): (&Corner, &Corner)| {
        i64::from(a[0]) * i64::from(b[1]) - i64::from(b[0]) * i64::from(a[1])
    };
    ring.iter().zip(next).map(cross).sum()
}

#[cfg(test)]
pub(super) mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;
    use crate::metrics::{ScoreMap, regions_at};

    /// The regions of a picture of `#` and `.`.
    pub(in super::super) fn drawn(picture: &[&str]) -> Vec<Vec<PixelRun>> {
        let scores: Vec<f32> = picture
            .iter()
            .flat_map(|row| row.chars().map(|pixel| f32::from(u8::from(pixel == '#'))))
            .collect();
        regions(picture[0].len(), &scores)
    }

    fn regions(width: usize, scores: &[f32]) -> Vec<Vec<PixelRun>> {
        let map = ScoreMap::new(width, scores.len() / width, scores).unwrap();
        regions_at(&map, 0.5).into_iter().map(|region| region.runs).collect()
    }

    #[test]
    fn a_single_pixel_is_a_square() {
        let found = polygons(&drawn(&["..", ".#"])[0]);
        let outer = vec![[1, 1], [2, 1], [2, 2], [1, 2]];
        assert_eq!(found, [Polygon { outer, holes: Vec::new() }]);
    }

    #[test]
    fn a_frame_has_a_hole_that_runs_the_other_way() {
        let found = polygons(&drawn(&["###", "#.#", "###"])[0]);
        assert_eq!(found[0].outer, [[0, 0], [3, 0], [3, 3], [0, 3]]);
        assert_eq!(found[0].holes.len(), 1);
        assert_eq!((doubled_area(&found[0].outer), doubled_area(&found[0].holes[0])), (18, -2));
    }

    #[test]
    fn what_touches_by_a_corner_is_one_region_of_two_polygons() {
        let regions = drawn(&["#.", ".#"]);
        assert_eq!((regions.len(), polygons(&regions[0]).len()), (1, 2));
    }

    #[test]
    fn a_ring_that_closes_by_a_corner_has_a_hole_that_touches_its_outside() {
        // The hole in the middle meets the outside at the corner (1, 1).
        let found = polygons(&drawn(&[".##", "#.#", "###"])[0]);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].holes.len(), 1);
        assert_eq!(doubled_area(&found[0].holes[0]), -2);
        assert_eq!(doubled_area(&found[0].outer), 16);
    }

    /// The pixels whose centre is within rings, by the rule of even and odd.
    fn filled(polygons: &[Polygon], width: usize, height: usize) -> Vec<bool> {
        let mut mask = vec![false; width * height];
        let rings = polygons
            .iter()
            .flat_map(|polygon| std::iter::once(&polygon.outer).chain(&polygon.holes));
        for ring in rings {
            for (a, b) in ring.iter().zip(ring.iter().cycle().skip(1)) {
                // Only lines from north to south, or back, are crossed going east.
                for y in a[1].min(b[1])..a[1].max(b[1]) {
                    for x in a[0] as usize..width {
                        mask[y as usize * width + x] ^= true;
                    }
                }
            }
        }
        mask
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]

        #[test]
        fn filling_the_polygons_gives_the_mask_back(
            width in 1_usize..12, bits in prop::collection::vec(any::<bool>(), 1..120),
        ) {
            let height = bits.len().div_ceil(width);
            let mut mask = bits;
            mask.resize(width * height, false);
            let scores: Vec<f32> = mask.iter().map(|&bit| f32::from(u8::from(bit))).collect();
            let mut found = vec![false; mask.len()];
            for region in regions(width, &scores) {
                let polygons = polygons(&region);
                let pixels: u32 = region.iter().map(|run| run.x1 - run.x0).sum();
                let mut area = 0;
                for polygon in &polygons {
                    prop_assert!(doubled_area(&polygon.outer) > 0);
                    area += doubled_area(&polygon.outer);
                    for ring in std::iter::once(&polygon.outer).chain(&polygon.holes) {
                        let corners: BTreeSet<&Corner> = ring.iter().collect();
                        prop_assert_eq!(corners.len(), ring.len(), "a ring touches itself");
                    }
                    for hole in &polygon.holes {
                        prop_assert!(doubled_area(hole) < 0);
                        area += doubled_area(hole);
                    }
                }
                prop_assert_eq!(area, 2 * i64::from(pixels));
                for (found, inside) in found.iter_mut().zip(filled(&polygons, width, height)) {
                    prop_assert!(!(*found && inside), "regions overlap");
                    *found |= inside;
                }
            }
            prop_assert_eq!(found, mask);
        }
    }
}
