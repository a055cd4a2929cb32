//! Connected regions of a score map above a threshold, and their boxes.
//!
//! Regions are grown pixel by pixel, so that lowering the threshold only adds
//! what is new: all thresholds together cost one pass over the image.

use serde::{Deserialize, Serialize};

use super::ScoreMap;
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

/// The regions of `map` with `score >= threshold`, the largest first.
///
/// Of equals, the one that starts further up, then further left.
pub fn boxes_at(map: &ScoreMap<'_>, threshold: f32) -> Vec<Component> {
    let scores = map.scores();
    let marked = |at: usize| (scores[at] >= threshold).then_some(scores[at]);
    grow(map.width(), map.height(), marked)
}

/// The regions where `inside` is true, the largest first; their score is 1.
pub fn components(width: usize, height: usize, inside: impl Fn(usize) -> bool) -> Vec<Component> {
    grow(width, height, |at| inside(at).then_some(1.0))
}

fn grow(width: usize, height: usize, score: impl Fn(usize) -> Option<f32>) -> Vec<Component> {
    let mut forest = Forest::new(width, height);
    for at in 0..width * height {
        if let Some(score) = score(at) {
            forest.add(at, score);
        }
    }
    let mut regions: Vec<&Region> = forest.regions().collect();
    regions.sort_by_key(|region| std::cmp::Reverse(region.rank()));
    regions.into_iter().map(Region::component).collect()
}

/// Regions that grow and meet as pixels are added in any order.
#[derive(Debug)]
pub(super) struct Forest {
    width: usize,
    /// The region each pixel was added to, with a border of one pixel; it may have merged since.
    owner: Vec<u32>,
    regions: Vec<Region>,
    /// Regions not known to have merged into another.
    live: Vec<u32>,
}

#[derive(Debug, Clone)]
pub(super) struct Region {
    /// The region it merged into, or itself.
    parent: u32,
    pixels: u64,
    score_sum: f64,
    /// First and last column, first and last row.
    x: (u32, u32),
    y: (u32, u32),
    /// Best overlap with a true box, while the box has not changed.
    pub(super) overlap: Option<f32>,
}

const NOBODY: u32 = u32::MAX;

impl Forest {
    pub(super) fn new(width: usize, height: usize) -> Self {
        let owner = vec![NOBODY; (width + 2) * (height + 2)];
        Self { width, owner, regions: Vec::new(), live: Vec::new() }
    }

    /// Adds the pixel at `index`, row by row, and joins the regions it touches.
    pub(super) fn add(&mut self, index: usize, score: f32) {
        let (x, y) = (index % self.width, index / self.width);
        let stride = self.width + 2;
        let center = (y + 1) * stride + x + 1;
        let (above, below) = (center - stride, center + stride);

        let mut root = NOBODY;
        // Whatever touches the pixel above or below has been joined with that
        // pixel already, so most neighbours need not be asked.
        let (up, down) = (self.is_owned(above), self.is_owned(below));
        for (middle, is_owned) in [(above, up), (below, down)] {
            if is_owned {
                self.join(&mut root, middle);
            } else {
                self.join(&mut root, middle - 1);
                self.join(&mut root, middle + 1);
            }
        }
        if !up && !down {
            self.join(&mut root, center - 1);
            self.join(&mut root, center + 1);
        }
        let at = (x as u32, y as u32);
        self.owner[center] = match root {
            NOBODY => self.found(at, score),
            root => {
                self.regions[root as usize].absorb(&Region::of(root, at, score));
                root
            }
        };
    }

    /// The regions as they are now, in no particular but a fixed order.
    pub(super) fn regions(&mut self) -> impl Iterator<Item = &Region> {
        self.forget_merged();
        self.live.iter().map(|&root| &self.regions[root as usize])
    }

    /// Calls `visit` with each region as it is now.
    pub(super) fn for_each(&mut self, mut visit: impl FnMut(&mut Region)) {
        self.forget_merged();
        for &root in &self.live {
            visit(&mut self.regions[root as usize]);
        }
    }

    fn forget_merged(&mut self) {
        let Self { regions, live, .. } = self;
        live.retain(|&root| regions[root as usize].parent == root);
    }

    fn is_owned(&self, at: usize) -> bool {
        self.owner[at] != NOBODY
    }

    /// Starts a region with one pixel.
    fn found(&mut self, at: (u32, u32), score: f32) -> u32 {
        let root = self.regions.len() as u32;
        self.regions.push(Region::of(root, at, score));
        self.live.push(root);
        root
    }

    /// Merges the region at a neighbouring pixel, if there is one, with `root`.
    fn join(&mut self, root: &mut u32, neighbour: usize) {
        if !self.is_owned(neighbour) {
            return;
        }
        let other = self.find(self.owner[neighbour]);
        if *root == NOBODY || *root == other {
            *root = other;
            return;
        }
        let larger = self.regions[*root as usize].pixels >= self.regions[other as usize].pixels;
        let (into, from) = if larger { (*root, other) } else { (other, *root) };
        let merged = self.regions[from as usize].clone();
        self.regions[from as usize].parent = into;
        self.regions[into as usize].absorb(&merged);
        *root = into;
    }

    /// The region that `region` has become, shortening the way there.
    fn find(&mut self, mut region: u32) -> u32 {
        loop {
            let parent = self.regions[region as usize].parent;
            if parent == region {
                return region;
            }
            let grandparent = self.regions[parent as usize].parent;
            self.regions[region as usize].parent = grandparent;
            region = grandparent;
        }
    }
}

impl Region {
    fn of(root: u32, (x, y): (u32, u32), score: f32) -> Self {
        let score_sum = score.into();
        Self { parent: root, pixels: 1, score_sum, x: (x, x), y: (y, y), overlap: None }
    }

    fn absorb(&mut self, other: &Self) {
        self.pixels += other.pixels;
        self.score_sum += other.score_sum;
        let x = (self.x.0.min(other.x.0), self.x.1.max(other.x.1));
        let y = (self.y.0.min(other.y.0), self.y.1.max(other.y.1));
        if (x, y) != (self.x, self.y) {
            (self.x, self.y, self.overlap) = (x, y, None);
        }
    }

    /// Larger is more; of equals, further up, then further left.
    pub(super) fn rank(&self) -> impl Ord + use<> {
        (self.pixels, std::cmp::Reverse((self.y.0, self.x.0, self.y.1, self.x.1)))
    }

    pub(super) fn bounds(&self) -> PixelBox {
        PixelBox {
            x0: self.x.0 as f32,
            y0: self.y.0 as f32,
            x1: (self.x.1 + 1) as f32,
            y1: (self.y.1 + 1) as f32,
        }
    }

    fn component(&self) -> Component {
        let score = self.score_sum / self.pixels as f64;
        Component { bounds: self.bounds(), pixels: self.pixels, score }
    }
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
        let found = components(5, 1, |at| at % 2 == 0);
        let starts: Vec<f32> = found.iter().map(|region| region.bounds.x0).collect();
        assert_eq!(starts, [0.0, 2.0, 4.0]);
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
