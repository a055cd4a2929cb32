//! Regions that merge: the bookkeeping behind connected components.

use crate::data::PixelBox;

/// A set of regions in which any two can become one (union-find).
#[derive(Debug, Default)]
pub(super) struct Regions {
    all: Vec<Region>,
    /// Regions that had not merged into another when they were last visited.
    roots: Vec<u32>,
}

/// Some connected pixels: how many of them count, and the box around those.
#[derive(Debug, Clone, Copy)]
pub(super) struct Region {
    /// The region it merged into, or itself.
    parent: u32,
    /// Best overlap with a true box, while the box has not changed.
    pub(super) overlap: Option<f32>,
    /// First and last column.
    pub(super) x: (u32, u32),
    /// First and last row.
    pub(super) y: (u32, u32),
    pub(super) pixels: u64,
    pub(super) score_sum: f64,
}

impl Regions {
    /// Starts a region with `pixels` that count, of row `y` and within the columns `x`.
    pub(super) fn start(&mut self, x: (u32, u32), y: u32, pixels: u64, score_sum: f64) -> u32 {
        let root = u32::try_from(self.all.len()).expect("regions are fewer than pixels");
        self.all.push(Region { parent: root, overlap: None, x, y: (y, y), pixels, score_sum });
        self.roots.push(root);
        root
    }

    /// The root of a region; halves the path to it for later calls.
    pub(super) fn find(&mut self, mut region: u32) -> u32 {
        let parent = |all: &[Region], region: u32| all[region as usize].parent;
        while parent(&self.all, region) != region {
            let grandparent = parent(&self.all, parent(&self.all, region));
            self.all[region as usize].parent = grandparent;
            region = grandparent;
        }
        region
    }

    /// Merges two regions, given by their roots.
    pub(super) fn merge(&mut self, a: u32, b: u32) -> u32 {
        if a == b {
            return a;
        }
        let a_is_larger = self.all[a as usize].pixels >= self.all[b as usize].pixels;
        let (into, from) = if a_is_larger { (a, b) } else { (b, a) };
        let merged = self.all[from as usize];
        self.all[from as usize].parent = into;
        if merged.pixels > 0 {
            let region = &mut self.all[into as usize];
            region.pixels += merged.pixels;
            region.score_sum += merged.score_sum;
            region.stretch(merged.x, merged.y);
        }
        into
    }

    /// Adds one pixel that counts to a region.
    pub(super) fn add(&mut self, root: u32, x: u32, y: u32) {
        let region = &mut self.all[root as usize];
        if region.pixels == 0 {
            (region.x, region.y, region.overlap) = ((x, x), (y, y), None);
        }
        region.pixels += 1;
        region.stretch((x, x), (y, y));
    }

    /// Calls `visit` with each present region that has pixels that count, in a fixed order.
    pub(super) fn for_each(&mut self, mut visit: impl FnMut(&mut Region)) {
        let Self { all, roots } = self;
        roots.retain(|&root| all[root as usize].parent == root);
        for &root in roots.iter() {
            let region = &mut all[root as usize];
            if region.pixels > 0 {
                visit(region);
            }
        }
    }
}

impl Region {
    fn stretch(&mut self, x: (u32, u32), y: (u32, u32)) {
        let wider = (self.x.0.min(x.0), self.x.1.max(x.1));
        let taller = (self.y.0.min(y.0), self.y.1.max(y.1));
        if wider != self.x || taller != self.y {
            (self.x, self.y, self.overlap) = (wider, taller, None);
        }
    }

    /// The root of the region, once all merging is done.
    pub(super) fn root(&self) -> u32 {
        self.parent
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
}
