//! How the backward pass to the weights is cut into tasks, chunks and tiles, and packs them.

use std::ops::Range;

use rayon::prelude::*;

use super::shape::Conv;
use crate::{
    scratch,
    simd::{Simd, Tile},
};

/// Pixels of a chunk at stride 1: 256 × 16 gradients are half of a first-level cache.
const CHUNK_PIXELS: usize = 256;
/// Copied input floats of a task, to stay within a second-level cache.
const TASK_FLOATS: usize = 64 * 1024;
/// Floats of all partial sums together.
const PARTIAL_FLOATS: usize = 1 << 20;
/// Most splits of the pixels.
const MAX_SPLITS: usize = 16;
/// Tasks to aim for.
const TASKS: usize = 16;
/// Floats copied at once when sums return to the layout of the weights.
const COPIED_FLOATS: usize = 64;
/// Channels below which a group is not cut further.
const MIN_GROUP: usize = 128;

/// The cut; it depends on the shape and the register tile alone.
pub(super) struct Plan {
    conv: Conv,
    tile: Tile,
    /// Input floats per pixel: channels, or a kernel row of them.
    run: usize,
    /// Input pixels skipped while copying.
    sampling: usize,
    /// Copied pixels between neighbouring results.
    pub(super) step: usize,
    /// Offset of each tap in copied pixels.
    pub(super) taps: Vec<usize>,
    /// Copied pixels of a row.
    columns: usize,
    images_per_chunk: usize,
    rows_per_chunk: usize,
    pub(super) splits: usize,
    input_groups: usize,
    output_groups: usize,
}

/// Result rows `first_row..first_row + rows` of some images.
pub(super) struct Chunk {
    first_image: usize,
    images: usize,
    first_row: usize,
    rows: usize,
}

/// How the copied pixels of a chunk are visited, all steps in pixels.
#[derive(Clone, Copy)]
pub(super) struct Lines {
    pub(super) images: usize,
    pub(super) image_step: usize,
    pub(super) rows: usize,
    pub(super) row_step: usize,
    /// Results of a row.
    pub(super) pixels: usize,
}

impl Plan {
    pub(super) fn new(conv: &Conv, tile: Tile) -> Self {
        let filter = *conv.filter();
        let by_rows = filter.reads_rows();
        let sampling = if filter.kernel == 1 { filter.stride } else { 1 };
        let step = filter.stride / sampling;
        let column_step = if by_rows { 1 } else { step };
        let columns = match by_rows {
            true => conv.out_width(),
            false => (conv.out_width() - 1) * step + filter.extent(),
        };
        let taps_across = if by_rows { 1 } else { filter.kernel };
        let tap =
            |index: usize| (index / taps_across * columns + index % taps_across) * filter.dilation;
        let pixels = CHUNK_PIXELS / (step * column_step);
        let mut plan = Self {
            conv: *conv,
            tile,
            run: if by_rows { filter.kernel * filter.in_channels } else { filter.in_channels },
            sampling,
            step: column_step,
            taps: (0..filter.kernel * taps_across).map(tap).collect(),
            columns,
            images_per_chunk: (pixels / (conv.out_height() * conv.out_width()))
                .clamp(1, conv.batch()),
            rows_per_chunk: (pixels / conv.out_width()).clamp(1, conv.out_height()),
            splits: 1,
            input_groups: 1,
            output_groups: 1,
        };
        plan.splits = (PARTIAL_FLOATS / plan.split_len()).clamp(1, MAX_SPLITS.min(plan.chunks()));
        plan.choose_groups();
        plan
    }

    /// First so that a task's input fits its cache, then until there are enough tasks.
    fn choose_groups(&mut self) {
        let (tiles, panels) = (self.tiles(), self.panels());
        self.input_groups = (tiles * self.input_tile_len()).div_ceil(TASK_FLOATS).min(tiles);
        while self.tasks() < TASKS {
            let inputs = self.run / self.input_groups;
            let outputs = self.conv.filter().out_channels / self.output_groups;
            if outputs >= inputs && outputs > MIN_GROUP && self.output_groups * 2 <= panels {
                self.output_groups *= 2;
            } else if inputs > MIN_GROUP && self.input_groups * 2 <= tiles {
                self.input_groups *= 2;
            } else {
                break;
            }
        }
    }

    /// Register tiles along the input channels.
    fn tiles(&self) -> usize {
        self.run.div_ceil(self.tile.rows)
    }

    /// Register tiles along the output channels.
    fn panels(&self) -> usize {
        self.conv.filter().out_channels.div_ceil(self.tile.columns)
    }

    fn chunks_per_image(&self) -> usize {
        self.conv.out_height().div_ceil(self.rows_per_chunk)
    }

    fn chunks(&self) -> usize {
        self.conv.batch().div_ceil(self.images_per_chunk) * self.chunks_per_image()
    }

    pub(super) fn tasks(&self) -> usize {
        self.splits * self.input_groups * self.output_groups
    }

    /// Split, tiles and panels of a task.
    pub(super) fn task(&self, task: usize) -> (usize, Range<usize>, Range<usize>) {
        let groups = self.input_groups * self.output_groups;
        let (split, group) = (task / groups, task % groups);
        let (input, output) = (group / self.output_groups, group % self.output_groups);
        (
            split,
            share(self.tiles(), self.input_groups, input),
            share(self.panels(), self.output_groups, output),
        )
    }

    pub(super) fn split_chunks(&self, split: usize) -> Range<usize> {
        share(self.chunks(), self.splits, split)
    }

    pub(super) fn chunk(&self, index: usize) -> Chunk {
        let (group, part) = (index / self.chunks_per_image(), index % self.chunks_per_image());
        let (first_image, first_row) = (group * self.images_per_chunk, part * self.rows_per_chunk);
        Chunk {
            first_image,
            images: self.images_per_chunk.min(self.conv.batch() - first_image),
            first_row,
            rows: self.rows_per_chunk.min(self.conv.out_height() - first_row),
        }
    }

    /// Copied input rows under `rows` result rows.
    fn input_rows(&self, rows: usize) -> usize {
        let filter = self.conv.filter();
        (rows - 1) * (filter.stride / self.sampling) + filter.extent()
    }

    /// One long line where copied rows follow each other as results do.
    pub(super) fn lines(&self, chunk: &Chunk) -> Lines {
        let row_step = self.conv.filter().stride / self.sampling * self.columns;
        let image_step = self.input_rows(chunk.rows) * self.columns;
        let (images, rows, pixels) = (chunk.images, chunk.rows, self.conv.out_width());
        if (self.step, row_step, image_step) == (1, pixels, rows * pixels) {
            return Lines { images: 1, image_step, rows: 1, row_step, pixels: images * image_step };
        }
        Lines { images, image_step, rows, row_step, pixels }
    }

    /// Floats of one input tile, `[image][row][column][tile row]`.
    pub(super) fn input_tile_len(&self) -> usize {
        self.images_per_chunk * self.input_rows(self.rows_per_chunk) * self.columns * self.tile.rows
    }

    /// Floats of one gradient panel, `[pixel][lane]`.
    pub(super) fn grad_panel_len(&self) -> usize {
        self.images_per_chunk * self.rows_per_chunk * self.conv.out_width() * self.tile.columns
    }

    fn tile_len(&self) -> usize {
        self.taps.len() * self.tile.rows * self.tile.columns
    }

    /// Floats of the sums of one split, `[panel][tile][tap][tile row][lane]`.
    pub(super) fn split_len(&self) -> usize {
        self.panels() * self.tiles() * self.tile_len()
    }

    pub(super) fn sums_at(&self, split: usize, panel: usize, tile: usize) -> usize {
        split * self.split_len() + (panel * self.tiles() + tile) * self.tile_len()
    }

    /// Copies the input under a chunk, tile by tile, zeros around the image included.
    #[inline(always)]
    pub(super) fn pack_input<const R: usize>(
        &self,
        chunk: &Chunk,
        tiles: Range<usize>,
        input: &[f32],
        packed: &mut [f32],
    ) {
        let filter = self.conv.filter();
        let (rows, row_len) = (self.input_rows(chunk.rows), self.columns * R);
        let tile_len = self.input_tile_len();
        let margin = filter.padding * filter.in_channels;
        let image_row = self.conv.width() * filter.in_channels;
        let mut padded = scratch::floats(if margin > 0 { image_row + 2 * margin } else { 0 });
        padded.fill(0.0);
        for line in 0..chunk.images * rows {
            let (image, row) = (chunk.first_image + line / rows, line % rows);
            let y = (chunk.first_row * filter.stride + row * self.sampling)
                .wrapping_sub(filter.padding);
            let mut from = (y < self.conv.height())
                .then(|| &input[(image * self.conv.height() + y) * image_row..][..image_row]);
            if let Some(row) = from.filter(|_| margin > 0) {
                padded[margin..][..image_row].copy_from_slice(row);
                from = Some(&padded);
            }
            for (packed, tile) in packed.chunks_exact_mut(tile_len).zip(tiles.clone()) {
                let to = &mut packed[line * row_len..][..row_len];
                match from {
                    Some(from) => self.pack_line::<R>(tile * R, from, to),
                    None => to.fill(0.0),
                }
            }
        }
    }

    /// Copies `R` channels of each pixel of a row.
    #[inline(always)]
    fn pack_line<const R: usize>(&self, channel: usize, from: &[f32], line: &mut [f32]) {
        let filter = self.conv.filter();
        let skip = if filter.reads_rows() { filter.stride } else { self.sampling };
        let starts = (channel..).step_by(skip * filter.in_channels);
        let used = R.min(self.run - channel);
        for (to, at) in line.as_chunks_mut::<R>().0.iter_mut().zip(starts) {
            if used == R {
                to.copy_from_slice(&from[at..at + R]);
            } else {
                *to = [0.0; R];
                to[..used].copy_from_slice(&from[at..at + used]);
            }
        }
    }

    /// Copies the gradient of a chunk, panel by panel; lanes beyond the channels become zero.
    #[inline(always)]
    pub(super) fn pack_grad<S: Simd, const V: usize>(
        &self,
        simd: S,
        chunk: &Chunk,
        panels: Range<usize>,
        grad: &[f32],
        packed: &mut [f32],
    ) {
        let (channels, lanes) = (self.conv.filter().out_channels, V * S::LANES);
        let pixels = chunk.rows * self.conv.out_width();
        for image in 0..chunk.images {
            let row = (chunk.first_image + image) * self.conv.out_height() + chunk.first_row;
            let from = &grad[row * self.conv.out_width() * channels..][..pixels * channels];
            for (panel, to) in panels.clone().zip(packed.chunks_exact_mut(self.grad_panel_len())) {
                let to = &mut to[image * pixels * lanes..][..pixels * lanes];
                for (to, from) in to.chunks_exact_mut(lanes).zip(from.chunks_exact(channels)) {
                    for j in 0..V {
                        let value = simd.load_at(from, panel * lanes + j * S::LANES);
                        simd.store(&mut to[j * S::LANES..], value);
                    }
                }
            }
        }
    }

    /// Adds the splits in their order, and restores the layout of the weights.
    pub(super) fn collect(&self, partial: &[f32], weights: &mut [f32]) {
        let filter = self.conv.filter();
        let per_output = filter.in_channels * filter.taps();
        let (len, tile_len) = (self.split_len(), self.tile_len());
        weights.par_chunks_mut(self.tile.columns * per_output).enumerate().for_each(
            |(panel, weights)| {
                let group = COPIED_FLOATS.div_ceil(tile_len / self.tile.columns);
                let mut sums = scratch::floats(tile_len);
                let mut transposed = scratch::floats(group * tile_len);
                for first in (0..self.tiles()).step_by(group) {
                    let tiles = group.min(self.tiles() - first);
                    for tile in 0..tiles {
                        let at = self.sums_at(0, panel, first + tile);
                        sums.copy_from_slice(&partial[at..][..tile_len]);
                        for split in 1..self.splits {
                            let part = &partial[split * len + at..][..tile_len];
                            sums.iter_mut().zip(part).for_each(|(sum, part)| *sum += part);
                        }
                        self.transpose(&sums, tile, group, &mut transposed);
                    }
                    self.scatter(first, tiles, group, &transposed, weights);
                }
            },
        );
    }

    /// Copies `[tap][tile row][lane]` of one tile into `[lane][tile][tile row][tap]` of a group.
    fn transpose(&self, sums: &[f32], tile: usize, group: usize, transposed: &mut [f32]) {
        let (lanes, rows, taps) = (self.tile.columns, self.tile.rows, self.taps.len());
        for (line, sums) in sums.chunks_exact(lanes).enumerate() {
            let at = (tile * rows + line % rows) * taps + line / rows;
            for (lane, &sum) in sums.iter().enumerate() {
                transposed[lane * group * rows * taps + at] = sum;
            }
        }
    }

    /// Places a group of `tiles` into `[lane, in_channels, kernel, kernel]`.
    fn scatter(
        &self,
        first: usize,
        tiles: usize,
        group: usize,
        transposed: &[f32],
        weights: &mut [f32],
    ) {
        let filter = self.conv.filter();
        let (rows, taps) = (self.tile.rows, self.taps.len());
        let first = first * rows;
        let used = (tiles * rows).min(self.run - first);
        let outputs = weights.chunks_exact_mut(filter.in_channels * filter.taps());
        for (weights, transposed) in outputs.zip(transposed.chunks_exact(group * rows * taps)) {
            if taps == filter.taps() {
                weights[first * taps..][..used * taps].copy_from_slice(&transposed[..used * taps]);
                continue;
            }
            // A row of the tile is one channel of one kernel column, a tap one kernel row.
            for i in 0..used {
                let (across, channel) =
                    ((first + i) / filter.in_channels, (first + i) % filter.in_channels);
                for tap in 0..taps {
                    let at = channel * filter.taps() + tap * filter.kernel + across;
                    weights[at] = transposed[i * taps + tap];
                }
            }
        }
    }
}

/// Part `index` of `len` things shared among `parts`.
fn share(len: usize, parts: usize, index: usize) -> Range<usize> {
    len * index / parts..len * (index + 1) / parts
}
