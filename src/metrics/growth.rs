//! Regions of a score map while its threshold falls.
//!
//! Lowering the threshold only adds pixels, so regions grow and meet but never
//! shrink: all thresholds together cost one pass over the image.

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
        let center = (y as usize + 1) * stride + x as usize + 1;
        let (above, below) = (center - stride, center + stride);

        let mut root = NO_REGION;
        // Whatever touches the pixel above or below has been joined with that
        // pixel already, so most neighbours need not be asked.
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
            root = self.join(root, center - 1);
            root = self.join(root, center + 1);
        }
        if root == NO_REGION {
            root = self.regions.start((x, x), y, u64::from(counts), 0.0);
        } else if counts {
            self.regions.add(root, x, y);
        }
        self.owner[center] = root;
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
