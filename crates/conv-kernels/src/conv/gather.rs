//! Convolution as a matrix product that gathers its rows through pointers.
//!
//! Result pixels are rows, result channels columns, taps × source channels the summed dimension.
//! Patches are not copied (no im2col): for each tap a table holds the address of the pixel's
//! source channels, or of a row of zeros outside of the image.
//!
//! A task computes one block of pixels: weights pass through the first-level cache in panels, the
//! block's source pixels stay in the second level. Blocks depend on the shape alone, and a pixel's
//! sum runs over taps and channels in one fixed order: neither threads nor the rest of the batch
//! change a result.

use std::{cell::RefCell, ops::Range};

use rayon::prelude::*;

use super::{
    epilogue::Epilogue,
    moments::MomentSink,
    pack::{Class, PackedWeights},
    tile::{DEPTH, Stretch, accumulate, load_tile, store_tile},
};
use crate::{
    scratch::{self, Floats},
    shared::Shared,
    simd::{Kernel, MAX_LANES, Simd},
};

/// Pixels of a block when few channels leave room.
const MAX_PIXELS: usize = 96;
/// Source floats of a block, to stay within a second-level cache.
const BLOCK_FLOATS: usize = 64 * 1024;
/// Tasks to aim for, so that small images still occupy many cores.
const TASKS: usize = 32;

/// Images that are read or written.
#[derive(Clone, Copy)]
pub(super) struct Images {
    pub(super) height: usize,
    pub(super) width: usize,
    pub(super) channels: usize,
    /// Pixels between neighbouring result pixels of a class.
    pub(super) step: usize,
}

/// The result pixels of one class and the places their taps read.
struct Grid<'a> {
    class: &'a Class,
    rows: usize,
    columns: usize,
    taps: Vec<(isize, isize)>,
}

/// One pass over a batch.
pub(super) struct Gather<'a> {
    pub(super) weights: &'a PackedWeights,
    pub(super) batch: usize,
    /// Of the images that taps read from.
    pub(super) values: &'a [f32],
    /// Their copy with zeros around, which is read instead where taps read whole kernel rows.
    pub(super) padded: Option<Floats>,
    pub(super) source: Images,
    /// Floats that a tap reads from its pixel on.
    pub(super) run: usize,
    pub(super) target: Images,
    pub(super) epilogue: Epilogue<'a>,
}

impl Gather<'_> {
    /// Writes every pixel of `result`; `moments` collects sums of what is written.
    pub(super) fn run(&self, result: &mut [f32], moments: Option<&MomentSink<'_>>) {
        let result = Shared::new(result);
        let panels = self.weights.panel_count();
        for grid in self.weights.classes.iter().map(|class| self.grid(class)) {
            let (pixels, block) = (self.batch * grid.rows * grid.columns, self.block());
            let blocks = pixels.div_ceil(block);
            let groups = TASKS.div_ceil(blocks.max(1)).min(panels);
            let group = panels.div_ceil(groups);
            (0..blocks * groups).into_par_iter().with_max_len(1).for_each(|task| {
                let (index, first_panel) = (task / groups, task % groups * group);
                let first = index * block;
                self.weights.isa.run(Block {
                    gather: self,
                    grid: &grid,
                    first,
                    pixels: block.min(pixels - first),
                    panels: first_panel.min(panels)..(first_panel + group).min(panels),
                    result,
                    moments: moments.map(|sink| (sink, index)),
                });
            });
        }
    }

    /// Pixels of each block, in a pass of a single class.
    pub(super) fn block_pixels(&self) -> Vec<usize> {
        let pixels = self.batch * self.target.height * self.target.width;
        let block = self.block();
        (0..pixels).step_by(block).map(|first| block.min(pixels - first)).collect()
    }

    /// Pixels of a block: whole tiles.
    fn block(&self) -> usize {
        let rows = self.weights.isa.tile().rows;
        let fitting = (BLOCK_FLOATS / self.source.channels).clamp(MAX_PIXELS / 2, MAX_PIXELS);
        fitting.next_multiple_of(rows)
    }

    fn grid<'a>(&self, class: &'a Class) -> Grid<'a> {
        let Images { height, width, step, .. } = self.target;
        let columns_per_tap = self.run / self.source.channels;
        Grid {
            class,
            rows: height.saturating_sub(class.row).div_ceil(step),
            columns: width.saturating_sub(class.column).div_ceil(step),
            taps: class.taps.iter().step_by(columns_per_tap).map(|tap| (tap.dy, tap.dx)).collect(),
        }
    }

    /// Cuts taps × channels into stretches of about [`DEPTH`].
    fn stretches(&self, taps: usize) -> impl Iterator<Item = Stretch> + Clone {
        let run = self.run;
        let pieces = run.div_ceil(DEPTH);
        let len = run.div_ceil(pieces);
        let together = (DEPTH / run).max(1);
        let together = taps.div_ceil(taps.div_ceil(together).max(1)).max(1);
        (0..taps).step_by(together).flat_map(move |tap| {
            (0..pieces).map(move |piece| Stretch {
                first_tap: tap,
                taps: together.min(taps - tap),
                offset: piece * len,
                len: len.min(run - piece * len),
            })
        })
    }
}

/// Where a block of pixels reads and writes.
#[derive(Default)]
struct Table {
    /// Addresses to read from, by tap and pixel.
    reads: Vec<*const f32>,
    /// Indices to write to, by pixel.
    writes: Vec<usize>,
}

thread_local! {
    /// Kept for the memory of its lists.
    static TABLE: RefCell<Table> = RefCell::default();
}

/// A block of pixels × a range of panels: the work of one task.
struct Block<'a> {
    gather: &'a Gather<'a>,
    grid: &'a Grid<'a>,
    first: usize,
    pixels: usize,
    panels: Range<usize>,
    result: Shared<'a>,
    moments: Option<(&'a MomentSink<'a>, usize)>,
}

impl Kernel for Block<'_> {
    #[inline(always)]
    fn run<S: Simd, const R: usize, const V: usize>(self, simd: S) {
        let tiles = self.pixels.div_ceil(R);
        let mut zeros = scratch::floats(self.gather.run);
        zeros.fill(0.0);
        let mut table = TABLE.take();
        self.fill_table(tiles * R, zeros.as_ptr(), &mut table);
        let mut sums = scratch::floats(tiles * R * V * S::LANES);
        for panel in self.panels.clone() {
            self.panel::<S, R, V>(simd, panel, &table, &mut sums);
        }
        TABLE.set(table);
    }
}

impl Block<'_> {
    /// One panel of result channels for all pixels of the block.
    #[inline(always)]
    fn panel<S: Simd, const R: usize, const V: usize>(
        &self,
        simd: S,
        panel: usize,
        table: &Table,
        sums: &mut [f32],
    ) {
        let lanes = V * S::LANES;
        let (tiles, taps) = (self.pixels.div_ceil(R), self.grid.taps.len());
        let weights = self.gather.weights.panel(self.grid.class, panel);
        let (run, stride) = (self.gather.run, tiles * R);
        let depth = taps * run;
        for stretch in self.gather.stretches(taps) {
            let start = stretch.first_tap * run + stretch.offset;
            let last = start + stretch.taps * stretch.len == depth;
            let rows = &table.reads[stretch.first_tap * stride..][..stretch.taps * stride];
            let weights = &weights[start * lanes..][..stretch.taps * stretch.len * lanes];
            for (tile, sums) in sums.chunks_exact_mut(R * lanes).enumerate() {
                let mut acc = [[simd.zero(); V]; R];
                if start > 0 {
                    load_tile(simd, sums, &mut acc);
                }
                // SAFETY: `fill_table` made `taps` rows of `stride` addresses, each with `run`
                // readable floats, and `tile * R + R <= stride`.
                unsafe { accumulate(simd, rows, stride, tile * R, stretch, weights, &mut acc) };
                if last {
                    self.finish(simd, panel, tile, table, acc);
                } else {
                    store_tile(simd, &acc, sums, false);
                }
            }
        }
        if depth == 0 {
            for tile in 0..tiles {
                self.finish(simd, panel, tile, table, [[simd.zero(); V]; R]);
            }
        }
    }

    /// Writes a register tile whose sums are complete.
    #[inline(always)]
    fn finish<S: Simd, const R: usize, const V: usize>(
        &self,
        simd: S,
        panel: usize,
        tile: usize,
        table: &Table,
        mut acc: [[S::Vector; V]; R],
    ) {
        let (channel, rows) = (panel * V * S::LANES, R.min(self.pixels - tile * R));
        let writes = table.writes[tile * R..].first_chunk::<R>().expect("a place for each row");
        if channel + V * S::LANES > self.gather.target.channels {
            self.write_narrow(simd, &writes[..rows], channel, &acc);
        } else if rows == R && self.gather.epilogue.is_empty() {
            for i in 0..R {
                self.write_plain(simd, writes[i] + channel, &acc[i]);
            }
        } else {
            for i in 0..R {
                if i < rows {
                    self.write_row(simd, writes[i] + channel, channel, &mut acc[i]);
                }
            }
        }
        if let Some((sink, block)) = self.moments {
            sink.add_tile(simd, block, channel, rows, tile == 0, &acc);
        }
    }

    /// The common case of training: nothing but stores.
    #[inline(always)]
    fn write_plain<S: Simd, const V: usize>(&self, simd: S, at: usize, row: &[S::Vector; V]) {
        for j in 0..V {
            // SAFETY: a pixel's channels of one panel lie in the result, and are written by one
            // tile only.
            unsafe { simd.store_ptr(self.result.address(at + j * S::LANES), row[j]) };
        }
    }

    #[inline(always)]
    fn write_row<S: Simd, const V: usize>(
        &self,
        simd: S,
        at: usize,
        channel: usize,
        row: &mut [S::Vector; V],
    ) {
        // SAFETY: a pixel's channels of one panel are written by one tile only.
        let result = unsafe { self.result.part(at, V * S::LANES) };
        for j in 0..V {
            let lane = j * S::LANES;
            row[j] = self.gather.epilogue.apply_vector(simd, row[j], channel + lane, at + lane);
            simd.store(&mut result[lane..], row[j]);
        }
    }

    /// The last panel, of which only the first columns are channels.
    #[inline(always)]
    fn write_narrow<S: Simd, const R: usize, const V: usize>(
        &self,
        simd: S,
        writes: &[usize],
        channel: usize,
        acc: &[[S::Vector; V]; R],
    ) {
        let columns = self.gather.target.channels - channel;
        for (acc, pixel) in acc.iter().zip(writes) {
            let mut row = [[0.0; MAX_LANES]; V];
            for j in 0..V {
                simd.store(&mut row.as_flattened_mut()[j * S::LANES..], acc[j]);
            }
            let at = pixel + channel;
            // SAFETY: as above.
            let result = unsafe { self.result.part(at, columns) };
            for (column, (result, &sum)) in result.iter_mut().zip(row.as_flattened()).enumerate() {
                *result = self.gather.epilogue.apply_scalar(sum, channel + column, at + column);
            }
        }
    }

    /// Finds where each pixel reads and writes.
    ///
    /// Rows that fill up the last tile repeat its last pixel; they are computed and not written.
    fn fill_table(&self, padded: usize, zeros: *const f32, table: &mut Table) {
        let values = self.gather.padded.as_deref().unwrap_or(self.gather.values);
        let Images { height, width, channels, step } = self.gather.source;
        table.reads.clear();
        table.writes.clear();
        for &(dy, dx) in &self.grid.taps {
            table.reads.extend(self.places(padded).map(|(image, row, column)| {
                let y = ((row * step) as isize + dy) as usize;
                let x = ((column * step) as isize + dx) as usize;
                if y < height && x < width {
                    values[((image * height + y) * width + x) * channels..].as_ptr()
                } else {
                    zeros
                }
            }));
        }
        let (target, class) = (self.gather.target, self.grid.class);
        table.writes.extend(self.places(padded).map(|(image, row, column)| {
            let (y, x) = (row * target.step + class.row, column * target.step + class.column);
            ((image * target.height + y) * target.width + x) * target.channels
        }));
    }

    /// Image, row and column of each pixel in the class's grid; the last repeated up to `padded`.
    fn places(&self, padded: usize) -> impl Iterator<Item = (usize, usize, usize)> {
        let Grid { rows, columns, .. } = *self.grid;
        let (line, column) = (self.first / columns, self.first % columns);
        let mut next = (line / rows, line % rows, column);
        (0..padded).map(move |i| {
            let place @ (image, row, column) = next;
            if i + 1 < self.pixels {
                next = match (column + 1 < columns, row + 1 < rows) {
                    (true, _) => (image, row, column + 1),
                    (false, true) => (image, row + 1, 0),
                    (false, false) => (image + 1, 0, 0),
                };
            }
            place
        })
    }
}
