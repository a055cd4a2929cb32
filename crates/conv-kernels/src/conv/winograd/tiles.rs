//! Where tiles lie: a dilated convolution is one plain convolution for each of the `dilation²`
//! grids of pixels that are `dilation` apart.

use std::ops::Range;

use super::{OUT, SIDE};
use crate::conv::shape::Conv;

/// The tiles that cover a batch of images.
#[derive(Clone, Copy)]
pub(super) struct Tiles {
    batch: usize,
    height: usize,
    width: usize,
    dilation: usize,
    rows: usize,
    columns: usize,
}

/// One tile: its image and the image coordinates of its first result.
#[derive(Clone, Copy)]
pub(super) struct Tile {
    image: usize,
    y: usize,
    x: usize,
}

impl Tiles {
    pub(super) fn new(conv: &Conv) -> Self {
        let dilation = conv.filter().dilation;
        let (height, width) = (conv.height(), conv.width());
        Self {
            batch: conv.batch(),
            height,
            width,
            dilation,
            rows: height.div_ceil(dilation).div_ceil(OUT),
            columns: width.div_ceil(dilation).div_ceil(OUT),
        }
    }

    pub(super) fn count(&self) -> usize {
        self.batch * self.dilation * self.dilation * self.rows * self.columns
    }

    pub(super) fn tile(&self, index: usize) -> Tile {
        let (rest, column) = (index / self.columns, index % self.columns);
        let (rest, row) = (rest / self.rows, rest % self.rows);
        let (rest, phase_x) = (rest / self.dilation, rest % self.dilation);
        let (image, phase_y) = (rest / self.dilation, rest % self.dilation);
        let start = |tile: usize, phase: usize| tile * OUT * self.dilation + phase;
        Tile { image, y: start(row, phase_y), x: start(column, phase_x) }
    }

    /// Calls `each` with the 36 pixels a tile reads, by row; none outside of the image.
    ///
    /// An array of them, made first, costs up to a tenth of a pass.
    #[inline(always)]
    pub(super) fn inputs(&self, tile: Tile, mut each: impl FnMut(usize, Option<usize>)) {
        for i in 0..SIDE {
            let y = (tile.y + i * self.dilation).wrapping_sub(self.dilation);
            for j in 0..SIDE {
                let x = (tile.x + j * self.dilation).wrapping_sub(self.dilation);
                let inside = y < self.height && x < self.width;
                each(i * SIDE + j, inside.then(|| self.pixel(tile.image, y, x)));
            }
        }
    }

    /// Rows and columns of a tile's results that lie in the image.
    #[inline(always)]
    pub(super) fn extent(&self, tile: Tile) -> (usize, usize) {
        let along =
            |start: usize, size: usize| size.saturating_sub(start).div_ceil(self.dilation).min(OUT);
        (along(tile.y, self.height), along(tile.x, self.width))
    }

    /// Pixel of result `(i, j)` of a tile.
    #[inline(always)]
    pub(super) fn output(&self, tile: Tile, i: usize, j: usize) -> usize {
        self.pixel(tile.image, tile.y + i * self.dilation, tile.x + j * self.dilation)
    }

    /// Results of some tiles that lie in their images.
    pub(super) fn pixels(&self, tiles: Range<usize>) -> usize {
        let area = |tile| {
            let (rows, columns) = self.extent(self.tile(tile));
            rows * columns
        };
        tiles.map(area).sum()
    }

    fn pixel(&self, image: usize, y: usize, x: usize) -> usize {
        (image * self.height + y) * self.width + x
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conv::shape::Filter;

    #[test]
    fn tiles_cover_each_pixel_once() {
        for dilation in [1, 2, 4] {
            let conv = Conv::new(Filter::new(1, 1, 3, 1).dilated(dilation), 2, 9, 14).unwrap();
            let tiles = Tiles::new(&conv);
            let mut seen = vec![0; 2 * 9 * 14];
            for tile in (0..tiles.count()).map(|index| tiles.tile(index)) {
                let (rows, columns) = tiles.extent(tile);
                for at in 0..rows * columns {
                    seen[tiles.output(tile, at / columns, at % columns)] += 1;
                }
            }
            assert!(seen.iter().all(|&times| times == 1));
            assert_eq!(tiles.pixels(0..tiles.count()), seen.len());
        }
    }
}
