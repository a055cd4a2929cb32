//! The forward pass, and the backward pass to the image, which is the same with rotated kernels.
//!
//! Tiles are transformed, multiplied and transformed back in blocks. Many blocks are one task each,
//! and stay within their core's cache. With few blocks every step is shared out among the cores,
//! as it is where kernels are transformed on the fly, once for several blocks. The order of every
//! sum is the same.

use std::ops::Range;

use rayon::prelude::*;

use super::{
    GAP, OUT, POINTS,
    tiles::{Tile, Tiles},
    transform,
    weights::transform_panel,
};
use crate::{
    conv::{
        epilogue::Epilogue,
        moments::MomentSink,
        pack::{Algorithm, PackedWeights},
        shape::Conv,
        tile::{DEPTH, multiply},
    },
    scratch,
    shared::Shared,
    simd::{Kernel, Simd},
};

/// Tiles of a block where few channels leave room.
const MAX_TILES: usize = 48;
/// Floats of a block's transformed inputs and sums, to stay within a second-level cache.
const BLOCK_FLOATS: usize = 112 * 1024;
/// With fewer blocks, each step is shared out instead.
const MANY_BLOCKS: usize = 8;
/// Blocks that share kernels transformed on the fly: enough to make these cheap.
const ON_THE_FLY_BLOCKS: usize = 6;
/// Source channels whose kernels are transformed on the fly at a time, to stay within a
/// second-level cache.
const ON_THE_FLY_SOURCES: usize = 128;

/// One pass over a batch.
pub(crate) struct Pass<'a> {
    weights: &'a PackedWeights,
    tiles: Tiles,
    source: &'a [f32],
    epilogue: Epilogue<'a>,
}

impl<'a> Pass<'a> {
    pub(crate) fn new(
        conv: &Conv,
        weights: &'a PackedWeights,
        source: &'a [f32],
        epilogue: Epilogue<'a>,
    ) -> Self {
        Self { weights, tiles: Tiles::new(conv), source, epilogue }
    }

    /// Tiles of a block: whole register tiles.
    fn block(&self) -> usize {
        let rows = self.weights.isa.tile().rows;
        let floats = POINTS * (self.weights.source_channels() + self.weights.result_channels());
        (BLOCK_FLOATS / floats).clamp(MAX_TILES / 2, MAX_TILES).next_multiple_of(rows)
    }

    fn blocks(&self) -> usize {
        self.tiles.count().div_ceil(self.block())
    }

    fn block_tiles(&self, blocks: Range<usize>) -> Range<usize> {
        blocks.start * self.block()..(blocks.end * self.block()).min(self.tiles.count())
    }

    /// Pixels written by each block.
    pub(crate) fn block_pixels(&self) -> Vec<usize> {
        (0..self.blocks())
            .map(|block| self.tiles.pixels(self.block_tiles(block..block + 1)))
            .collect()
    }

    /// Writes every pixel of `result`; `moments` collects sums of what is written.
    pub(crate) fn run(&self, result: &mut [f32], moments: Option<&MomentSink<'_>>) {
        let target = Target { result: Shared::new(result), moments };
        let blocks = self.blocks();
        if self.weights.algorithm == Algorithm::WinogradOnTheFly {
            for first in (0..blocks).step_by(ON_THE_FLY_BLOCKS) {
                self.run_in_steps(first..blocks.min(first + ON_THE_FLY_BLOCKS), target);
            }
        } else if blocks < MANY_BLOCKS {
            self.run_in_steps(0..blocks, target);
        } else {
            (0..blocks).into_par_iter().with_max_len(1).for_each(|block| {
                self.with_stage(self.block_tiles(block..block + 1), self.block(), |stage| {
                    stage.transform(stage.tiles.clone());
                    stage.multiply(0..POINTS);
                    stage.finish(block, target);
                });
            });
        }
    }

    /// Shares out every step of some blocks among the cores.
    fn run_in_steps(&self, blocks: Range<usize>, target: Target<'_>) {
        let tiles = self.block_tiles(blocks.clone());
        self.with_stage(tiles.clone(), tiles.len(), |stage| {
            tiles.into_par_iter().for_each(|tile| stage.transform(tile..tile + 1));
            if self.weights.algorithm == Algorithm::WinogradOnTheFly {
                let panels = (0..self.weights.panel_count()).into_par_iter().with_max_len(1);
                panels.for_each(|panel| self.weights.isa.run(MultiplyOnTheFly { stage, panel }));
            } else {
                let points = (0..POINTS).into_par_iter().with_max_len(1);
                points.for_each(|point| stage.multiply(point..point + 1));
            }
            let blocks = blocks.into_par_iter().with_max_len(1);
            blocks.for_each(|block| stage.finish(block, target));
        });
    }

    /// Calls `work` with memory for some tiles, laid out as for `len` of them.
    fn with_stage(&self, tiles: Range<usize>, len: usize, work: impl FnOnce(&Stage<'_>)) {
        let points_len = POINTS * self.points_step(len);
        let sums_len = self.weights.panel_count() * POINTS * self.sums_step(len);
        let mut memory = scratch::floats(points_len + sums_len);
        let (points, sums) = memory.split_at_mut(points_len);
        let (points, sums) = (Shared::new(points), Shared::new(sums));
        work(&Stage { pass: self, tiles, len, points, sums });
    }

    /// Floats from one point's inputs to the next's.
    fn points_step(&self, tiles: usize) -> usize {
        tiles * self.weights.source_channels() + GAP
    }

    /// Result channels of a panel.
    fn lanes(&self) -> usize {
        self.weights.isa.tile().columns
    }

    /// Floats from one point's sums to the next's, within a panel.
    fn sums_step(&self, tiles: usize) -> usize {
        tiles * self.lanes() + GAP
    }
}

/// What a pass writes to.
#[derive(Clone, Copy)]
struct Target<'a> {
    result: Shared<'a>,
    moments: Option<&'a MomentSink<'a>>,
}

/// Some tiles: their inputs at each point and the sums over channels, with room for `len` of them.
struct Stage<'a> {
    pass: &'a Pass<'a>,
    tiles: Range<usize>,
    len: usize,
    /// `[point][tile][source channel]`
    points: Shared<'a>,
    /// `[panel of result channels][point][tile][lane]`
    sums: Shared<'a>,
}

impl<'a> Stage<'a> {
    fn transform(&self, tiles: Range<usize>) {
        self.pass.weights.isa.run(Transform { stage: self, tiles });
    }

    fn multiply(&self, points: Range<usize>) {
        self.pass.weights.isa.run(Multiply { stage: self, points });
    }

    /// Inputs at a point, `[tile][source channel]`.
    ///
    /// # Safety
    /// They are complete.
    unsafe fn inputs(&self, point: usize) -> &'a [f32] {
        let at = point * self.pass.points_step(self.len);
        // SAFETY: complete inputs are only read.
        unsafe { self.points.view(at, self.tiles.len() * self.pass.weights.source_channels()) }
    }

    /// Where the sums of a panel's point start.
    fn sums_at(&self, panel: usize, point: usize) -> usize {
        (panel * POINTS + point) * self.pass.sums_step(self.len)
    }

    /// Sums of a panel's point, `[tile][lane]`.
    ///
    /// # Safety
    /// No other task uses them.
    unsafe fn sums(&self, panel: usize, point: usize) -> &'a mut [f32] {
        let len = self.tiles.len() * self.pass.lanes();
        // SAFETY: promised by the caller.
        unsafe { self.sums.part(self.sums_at(panel, point), len) }
    }

    fn finish(&self, block: usize, target: Target<'_>) {
        self.pass.weights.isa.run(Finish { stage: self, block, target });
    }
}

/// Step one: transforms inputs.
struct Transform<'a> {
    stage: &'a Stage<'a>,
    tiles: Range<usize>,
}

impl Kernel for Transform<'_> {
    #[inline(always)]
    fn run<S: Simd, const R: usize, const V: usize>(self, simd: S) {
        let pass = self.stage.pass;
        let channels = pass.weights.source_channels();
        let step = pass.points_step(self.stage.len);
        let mut zeros = scratch::floats(channels);
        zeros.fill(0.0);
        for tile in self.tiles {
            let row = (tile - self.stage.tiles.start) * channels;
            let tile = pass.tiles.tile(tile);
            let points = &self.stage.points;
            transform_tile(simd, &pass.tiles, tile, pass.source, &zeros, points, row, step);
        }
    }
}

/// Transforms one tile of `source`: point `p`, channel `c` goes to `p·step + at + c`.
///
/// `zeros` has one value for each channel. No other task may use these places.
#[inline(always)]
#[expect(clippy::too_many_arguments, reason = "shared by the passes, each with its own memory")]
pub(super) fn transform_tile<S: Simd>(
    simd: S,
    tiles: &Tiles,
    tile: Tile,
    source: &[f32],
    zeros: &[f32],
    points: &Shared<'_>,
    at: usize,
    step: usize,
) {
    let channels = zeros.len();
    let mut pixels = [zeros; POINTS];
    tiles.inputs(tile, |place, pixel| {
        if let Some(pixel) = pixel {
            pixels[place] = &source[pixel * channels..][..channels];
        }
    });
    for c in (0..channels).step_by(S::LANES) {
        let mut values = [simd.zero(); POINTS];
        for place in 0..POINTS {
            values[place] = simd.load(&pixels[place][c..]);
        }
        transform::input(simd, &mut values);
        for point in 0..POINTS {
            // SAFETY: a tile is transformed by one task only.
            let to = unsafe { points.part(point * step + at + c, S::LANES) };
            simd.store(to, values[point]);
        }
    }
}

/// Step two: a matrix product over channels at each point.
struct Multiply<'a> {
    stage: &'a Stage<'a>,
    points: Range<usize>,
}

impl Kernel for Multiply<'_> {
    #[inline(always)]
    fn run<S: Simd, const R: usize, const V: usize>(self, simd: S) {
        let Self { stage, points } = self;
        let weights = stage.pass.weights;
        let (channels, lanes) = (weights.source_channels(), stage.pass.lanes());
        for point in points {
            // SAFETY: this step follows the one that writes the inputs.
            let inputs = unsafe { stage.inputs(point) };
            for panel in 0..weights.panel_count() {
                let weights = weights.panel_at(point, panel);
                // SAFETY: the sums of a point are computed by one task only.
                let sums = unsafe { stage.sums(panel, point) };
                for from in (0..channels).step_by(DEPTH) {
                    let depth = from..channels.min(from + DEPTH);
                    let weights = &weights[from * lanes..];
                    multiply::<S, R, V>(simd, inputs, channels, depth, weights, sums, lanes);
                }
            }
        }
    }
}

/// Step two with kernels transformed on the fly: one panel of result channels.
struct MultiplyOnTheFly<'a> {
    stage: &'a Stage<'a>,
    panel: usize,
}

impl Kernel for MultiplyOnTheFly<'_> {
    #[inline(always)]
    fn run<S: Simd, const R: usize, const V: usize>(self, simd: S) {
        let Self { stage, panel } = self;
        let weights = stage.pass.weights;
        let (channels, lanes) = (weights.source_channels(), stage.pass.lanes());
        let step = ON_THE_FLY_SOURCES * lanes + GAP;
        let mut kernels = scratch::floats(POINTS * step);
        for from in (0..channels).step_by(ON_THE_FLY_SOURCES) {
            let depth = from..channels.min(from + ON_THE_FLY_SOURCES);
            transform_panel::<S, V>(simd, weights, panel, depth.clone(), &mut kernels, step);
            for point in 0..POINTS {
                // SAFETY: this step follows the one that writes the inputs.
                let inputs = unsafe { stage.inputs(point) };
                // SAFETY: the sums of a panel are computed by one task only.
                let sums = unsafe { stage.sums(panel, point) };
                let kernels = &kernels[point * step..];
                multiply::<S, R, V>(simd, inputs, channels, depth.clone(), kernels, sums, lanes);
            }
        }
    }
}

/// Step three: transforms sums back into results.
struct Finish<'a> {
    stage: &'a Stage<'a>,
    block: usize,
    target: Target<'a>,
}

impl Kernel for Finish<'_> {
    #[inline(always)]
    fn run<S: Simd, const R: usize, const V: usize>(self, simd: S) {
        let (pass, Target { result, moments }) = (self.stage.pass, self.target);
        let (channels, lanes) = (pass.weights.result_channels(), pass.lanes());
        let step = pass.sums_step(self.stage.len);
        let mut start = true;
        for index in pass.block_tiles(self.block..self.block + 1) {
            let tile = pass.tiles.tile(index);
            let (rows, columns) = pass.tiles.extent(tile);
            if rows * columns == 0 {
                continue;
            }
            let row = (index - self.stage.tiles.start) * lanes;
            for c in (0..channels).step_by(S::LANES) {
                let first = self.stage.sums_at(c / lanes, 0) + row + c % lanes;
                let mut points = [simd.zero(); POINTS];
                for point in 0..POINTS {
                    // SAFETY: the sums are complete, and only read from now on.
                    let from = unsafe { self.stage.sums.view(first + point * step, S::LANES) };
                    points[point] = simd.load(from);
                }
                let mut values = transform::output(simd, &points);
                for i in 0..OUT {
                    for j in 0..OUT {
                        if i < rows && j < columns {
                            let at = pass.tiles.output(tile, i, j) * channels + c;
                            values[i][j] = pass.epilogue.apply_vector(simd, values[i][j], c, at);
                            // SAFETY: a pixel belongs to one tile only.
                            simd.store(unsafe { result.part(at, S::LANES) }, values[i][j]);
                        }
                    }
                }
                if let Some(sink) = moments {
                    sink.add_square(simd, self.block, c, (rows, columns), start, &values);
                }
            }
            start = false;
        }
    }
}
