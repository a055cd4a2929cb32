//! Images of any size, passed through a network in overlapping windows.
//!
//! ```text
//! image ─▶ windows ─▶ network ─▶ maps of each window ─▶ their inner cells ─▶ maps of the image
//!                                   maps ─▶ scores, soft mask (row by row)
//! image × mask, half size ─▶ windows ─▶ network ─▶ … ─▶ maps of the image ─▶ class
//! ```
//!
//! The mask is normalized over the whole image, so that masks of windows could not be put together,
//! but class maps can. Batch norm uses its running statistics, so that a cell depends only on the
//! pixels of its receptive field: with a halo that large, the maps are those of the whole image.
//! Windows start at multiples of the stride, so that their cells are aligned.

use std::ops::Range;

use image::RgbImage;

use crate::data::preprocess::{EvalGeometry, InputView, Normalizer, Window};
pub use crate::model::soft_mask::SoftMask;

/// An image whose input to the network is too large to be held at once.
#[derive(Debug)]
pub struct LargeImage<'a> {
    /// The network's input.
    pub(crate) input: InputView<'a>,
    geometry: EvalGeometry,
}

impl<'a> LargeImage<'a> {
    /// Prepares an image to be read window by window.
    pub fn new(image: &'a RgbImage, geometry: EvalGeometry, normalizer: &'a Normalizer) -> Self {
        Self { input: geometry.view(image, normalizer), geometry }
    }

    /// The scores of the image's own pixels, from the mask of the input.
    pub fn restore(self, mask: &SoftMask) -> Vec<f32> {
        let Self { input, geometry } = self;
        // The input may be an enlarged copy of the image, and the scores take room.
        drop(input);
        geometry.restore_rows(|row, left, line| mask.fill(row, left, line))
    }
}

/// How images are cut into windows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tiling {
    /// Longest side of a window, in pixels of the network's input.
    ///
    /// Windows are longer where the halo would leave no room for a cell.
    pub tile: usize,
    /// Pixels of context around the cells that a window computes; by default the reach of the
    /// network's cells, with which tiling changes nothing.
    pub halo: Option<usize>,
}

impl Default for Tiling {
    /// Windows of 4.2 megapixels.
    fn default() -> Self {
        Self { tile: 2048, halo: None }
    }
}

impl Tiling {
    /// Inputs of up to this many pixels are not cut.
    pub fn max_pixels(&self) -> usize {
        self.tile * self.tile
    }

    /// Sets the default halo for a network whose cells reach `reach` pixels beyond their place.
    pub fn for_reach(self, reach: usize) -> Self {
        Self { halo: Some(self.halo.unwrap_or(reach)), ..self }
    }

    /// Cuts a line of `length` pixels.
    fn spans(&self, length: usize, stride: usize) -> Vec<Span> {
        let cells = length.div_ceil(stride);
        if length <= self.tile {
            return vec![Span { cells: 0..cells, pixels: 0..length }];
        }
        let halo = self.halo.unwrap_or(0).div_ceil(stride);
        let most = (self.tile / stride).saturating_sub(2 * halo).max(1);
        let count = cells.div_ceil(most);
        let border = |index: usize| index * cells / count;
        let span = |index: usize| {
            let cells = border(index)..border(index + 1);
            let start = cells.start.saturating_sub(halo) * stride;
            let end = ((cells.end + halo) * stride).min(length);
            Span { cells, pixels: start..end }
        };
        (0..count).map(span).collect()
    }
}

/// Neighbouring cells of a line, and the pixels that they are computed from.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Span {
    cells: Range<usize>,
    pixels: Range<usize>,
}

/// One map per class for a whole image, `[classes, rows, columns]`.
#[derive(Debug, Clone, PartialEq)]
pub struct ClassMaps {
    /// Rows and columns of each map.
    pub grid: [usize; 2],
    /// Class by class, row by row.
    pub values: Vec<f32>,
}

/// A window of an image, and the pixels within it whose cells it computes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tile {
    /// The network's input.
    pub window: Window,
    /// Rows and columns, counted from the window's corner.
    pub inner: [Range<usize>; 2],
}

impl Tile {
    /// The cells that the window computes, line by line: their places in the window, and the place
    /// of the first of them on the grid of the image.
    pub fn lines(
        &self,
        stride: usize,
        grid: [usize; 2],
    ) -> impl Iterator<Item = (Range<usize>, usize)> {
        let Window { left, top, width, .. } = self.window;
        let [rows, columns] =
            self.inner.clone().map(|side| side.start / stride..side.end.div_ceil(stride));
        rows.map(move |row| {
            let from = row * width.div_ceil(stride) + columns.start;
            let to = (top / stride + row) * grid[1] + left / stride + columns.start;
            (from..from + columns.len(), to)
        })
    }
}

/// The windows of an image of height and width `size`, each starting at multiples of `stride`.
pub fn tiles(size: [usize; 2], stride: usize, tiling: Tiling) -> Vec<Tile> {
    let inner = |span: &Span, length: usize| {
        let end = (span.cells.end * stride).min(length);
        span.cells.start * stride - span.pixels.start..end - span.pixels.start
    };
    let (rows, columns) = (tiling.spans(size[0], stride), tiling.spans(size[1], stride));
    let tile = |down: &Span, across: &Span| {
        let (left, top) = (across.pixels.start, down.pixels.start);
        Tile {
            window: Window { left, top, width: across.pixels.len(), height: down.pixels.len() },
            inner: [inner(down, size[0]), inner(across, size[1])],
        }
    };
    rows.iter().flat_map(|down| columns.iter().map(move |across| tile(down, across))).collect()
}

/// Puts the maps of an image together from those of its windows.
///
/// `maps` gives those of one window, `[classes, rows, columns]` with a cell for every `stride`
/// pixels begun. `size` is height and width of the image.
pub fn assemble(
    size: [usize; 2],
    stride: usize,
    classes: usize,
    tiling: Tiling,
    mut maps: impl FnMut(Window) -> Vec<f32>,
) -> ClassMaps {
    let grid = size.map(|side| side.div_ceil(stride));
    let mut whole = ClassMaps { grid, values: vec![0.0; classes * grid[0] * grid[1]] };
    for tile in tiles(size, stride, tiling) {
        let Window { width, height, .. } = tile.window;
        let found = maps(tile.window);
        let cells = height.div_ceil(stride) * width.div_ceil(stride);
        assert_eq!(found.len(), classes * cells, "one map each");
        let pairs = whole.values.chunks_exact_mut(grid[0] * grid[1]);
        for (map, found) in pairs.zip(found.chunks_exact(cells)) {
            for (line, to) in tile.lines(stride, grid) {
                map[to..][..line.len()].copy_from_slice(&found[line]);
            }
        }
    }
    whole
}

impl ClassMaps {
    /// The maps of the classes, one after the other.
    pub fn classes(&self) -> impl Iterator<Item = &[f32]> {
        self.values.chunks_exact(self.grid[0] * self.grid[1])
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_line_that_fits_is_not_cut() {
        let tiling = Tiling { tile: 100, halo: Some(30) };
        assert_eq!(tiling.spans(100, 32), [Span { cells: 0..4, pixels: 0..100 }]);
    }

    #[test]
    fn windows_reach_a_halo_beyond_their_cells_and_end_with_the_image() {
        let tiling = Tiling { tile: 32, halo: Some(5) };
        let spans = tiling.spans(50, 8);
        // Seven cells; a window has room for two between halos of one cell.
        let expected = [(0..1, 0..16), (1..3, 0..32), (3..5, 16..48), (5..7, 32..50)];
        assert_eq!(spans, expected.map(|(cells, pixels)| Span { cells, pixels }));
    }

    #[test]
    fn a_tile_smaller_than_its_halo_still_computes_a_cell() {
        let spans = Tiling { tile: 16, halo: Some(64) }.spans(300, 16);
        assert_eq!(spans.len(), 19);
    }

    /// Blurred by a box of `reach` pixels around each cell's first pixel, zeros beyond the image.
    fn blurred(image: &dyn Fn(usize, usize) -> f32, window: Window, stride: usize) -> Vec<f32> {
        let reach = 5;
        let mut cells = Vec::new();
        for y in (0..window.height).step_by(stride) {
            for x in (0..window.width).step_by(stride) {
                let rows = y.saturating_sub(reach)..(y + reach + 1).min(window.height);
                let columns = || x.saturating_sub(reach)..(x + reach + 1).min(window.width);
                let pixels = rows.flat_map(|row| columns().map(move |column| (row, column)));
                cells.push(
                    pixels
                        .map(|(row, column)| image(window.top + row, window.left + column))
                        .sum::<f32>(),
                );
            }
        }
        cells
    }

    #[test]
    fn tiles_compute_every_pixel_once() {
        let (size, tiling) = ([150, 211], Tiling { tile: 100, halo: Some(20) });
        let mut seen = vec![0; 150 * 211];
        for Tile { window, inner: [rows, columns] } in tiles(size, 32, tiling) {
            for row in rows {
                for column in columns.clone() {
                    seen[(window.top + row) * 211 + window.left + column] += 1;
                }
            }
        }
        assert!(seen.iter().all(|&count| count == 1));
    }

    proptest! {
        #[test]
        fn with_a_halo_of_its_reach_a_network_cannot_tell_that_the_image_was_cut(
            height in 1_usize..90, width in 1_usize..90, tile in 24_usize..60, stride in 1_usize..9
        ) {
            let image = |y: usize, x: usize| (y * 31 % 17 + x * 7 % 13) as f32;
            let whole = Window { left: 0, top: 0, width, height };
            let expected = blurred(&image, whole, stride);
            let tiling = Tiling { tile, halo: Some(5) };
            let found = assemble([height, width], stride, 1, tiling, |window| {
                blurred(&image, window, stride)
            });
            prop_assert_eq!(found.values, expected);
        }

        #[test]
        fn no_window_is_larger_than_a_tile(
            length in 1_usize..5000, cells in 4_usize..40, stride in 1_usize..33, halo in 0_usize..40
        ) {
            let halo = Some(halo.min((cells - 1) / 2 * stride));
            let tiling = Tiling { tile: cells * stride, halo };
            let spans = tiling.spans(length, stride);
            prop_assert!(spans.iter().all(|span| span.pixels.len() <= tiling.tile));
            prop_assert!(spans.iter().all(|span| span.pixels.start % stride == 0));
            let covered: Vec<usize> = spans.into_iter().flat_map(|span| span.cells).collect();
            prop_assert_eq!(covered, (0..length.div_ceil(stride)).collect::<Vec<_>>());
        }
    }
}
