//! Connected regions of a score map at falling thresholds.
//!
//! Lowering the threshold only adds pixels, so that regions grow and merge but never shrink: all
//! thresholds together take one pass over the image.

use super::region::Regions;

/// The regions of the pixels added so far.
#[derive(Debug)]
pub(super) struct Growth {
    /// Pixels in a row of `owner`.
    stride: u32,
    /// The region each pixel was added to, which may have merged since; with a
    /// border of one pixel, so that every pixel has eight neighbours.
    owner: Vec<u32>,
    pub(super) regions: Regions,
}

const NO_REGION: u32 = u32::MAX;

impl Growth {
    pub(super) fn new(width: usize, height: usize) -> Self {
        let owner = vec![NO_REGION; (width + 2) * (height + 2)];
        Self { stride: width as u32 + 2, owner, regions: Regions::default() }
    }

    /// Adds a pixel and joins the regions it touches, whether it counts itself or not.
    pub(super) fn add(&mut self, x: u32, y: u32, counts: bool) {
        let stride = self.stride as usize;
        let centre = (y as usize + 1) * stride + x as usize + 1;
        let (above, below) = (centre - stride, centre + stride);

        let mut root = NO_REGION;
        // Neighbours that touch the pixel above or below are joined with that one already, so that
        // most need not be checked.
        let (up, down) = (self.owner[above] != NO_REGION, self.owner[below] != NO_REGION);
        for (middle, is_owned) in [(above, up), (below, down)] {
            if is_owned {
                root = self.join(root, middle);
            } else {
                root = self.join(root, middle - 1);
                root = self.join(root, middle + 1);
            }
        }
        if !up && !down {
            root = self.join(root, centre - 1);
            root = self.join(root, centre + 1);
        }
        if root == NO_REGION {
            root = self.regions.start((x, x), y, u64::from(counts), 0.0);
        } else if counts {
            self.regions.add(root, x, y);
        }
        self.owner[centre] = root;
    }

    /// Merges `root` with the region at a neighbouring pixel, where there are such.
    fn join(&mut self, root: u32, neighbour: usize) -> u32 {
        match self.owner[neighbour] {
            NO_REGION => root,
            owner => {
                let other = self.regions.find(owner);
                if root == NO_REGION { other } else { self.regions.merge(root, other) }
            }
        }
    }
}
