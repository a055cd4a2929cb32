//! The forward pass, and the backward pass of the image, which is the same with turned kernels.
//!
//! Tiles are transformed, multiplied and transformed back in blocks. Where there are many, each
//! block is one task and stays within its core's cache; where there are few, every step is shared
//! out among the cores. Both compute every value in the same order.

use std::ops::Range;

use rayon::prelude::*;

use super::{
    GAP, OUT, POINTS,
    tiles::{Tile, Tiles},
    transform,
    weights::PackedPoints,
};
use crate::{
    conv::{
        epilogue::Epilogue,
        moments::MomentSink,
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

/// One pass over a batch.
pub(crate) struct Pass<'a> {
    weights: &'a PackedPoints,
    tiles: Tiles,
    source: &'a [f32],
    epilogue: Epilogue<'a>,
}

impl<'a> Pass<'a> {
    pub(crate) fn new(
        conv: &Conv,
        weights: &'a PackedPoints,
        source: &'a [f32],
        epilogue: Epilogue<'a>,
    ) -> Self {
        Self { weights, tiles: Tiles::new(conv), source, epilogue }
    }

    /// Tiles of a block: whole register tiles.
    fn block(&self) -> usize {
        let rows = self.weights.isa().tile().rows;
        let floats = POINTS * (self.weights.sources() + self.weights.results());
        (BLOCK_FLOATS / floats).clamp(MAX_TILES / 2, MAX_TILES).next_multiple_of(rows)
    }

    pub(crate) fn blocks(&self) -> usize {
        self.tiles.count().div_ceil(self.block())
    }

    /// Pixels written by each block.
    pub(crate) fn block_pixels(&self) -> impl Iterator<Item = usize> {
        (0..self.blocks()).map(|block| self.tiles.pixels(self.block_tiles(block)))
    }

    fn block_tiles(&self, block: usize) -> Range<usize> {
        block * self.block()..((block + 1) * self.block()).min(self.tiles.count())
    }

    /// Writes every pixel of `result`; `moments` collects sums of what is written.
    pub(crate) fn run(&self, result: &mut [f32], moments: Option<&MomentSink<'_>>) {
        let result = Shared::new(result);
        if self.blocks() >= MANY_BLOCKS {
            let len = self.block();
            (0..self.blocks()).into_par_iter().with_max_len(1).for_each(|block| {
                let mut memory = scratch::floats(self.points_len(len) + self.sums_len(len));
                let (points, sums) = memory.split_at_mut(self.points_len(len));
                let (points, sums) = (Shared::new(points), Shared::new(sums));
                let tiles = self.block_tiles(block);
                let stage = Stage { pass: self, first: tiles.start, len, points, sums };
                stage.evaluate(tiles.clone());
                stage.multiply(0..POINTS, tiles.len());
                stage.finish(block, tiles, result, moments);
            });
            return;
        }
        let count = self.tiles.count();
        let mut memory = scratch::floats(self.points_len(count) + self.sums_len(count));
        let (points, sums) = memory.split_at_mut(self.points_len(count));
        let (points, sums) = (Shared::new(points), Shared::new(sums));
        let stage = Stage { pass: self, first: 0, len: count, points, sums };
        let each = || (0..self.blocks()).into_par_iter().with_max_len(1);
        (0..count).into_par_iter().for_each(|tile| stage.evaluate(tile..tile + 1));
        (0..POINTS).into_par_iter().with_max_len(1).for_each(|point| {
            stage.multiply(point..point + 1, count);
        });
        each().for_each(|block| stage.finish(block, self.block_tiles(block), result, moments));
    }

    /// Floats from one point's inputs to the next's.
    fn points_step(&self, tiles: usize) -> usize {
        tiles * self.weights.sources() + GAP
    }

    fn points_len(&self, tiles: usize) -> usize {
        POINTS * self.points_step(tiles)
    }

    /// Channels of the result filled up to whole panels.
    fn padded(&self) -> usize {
        self.weights.panels() * self.weights.isa().tile().columns
    }

    /// Floats from one point's sums to the next's.
    fn sums_step(&self, tiles: usize) -> usize {
        tiles * self.padded() + GAP
    }

    fn sums_len(&self, tiles: usize) -> usize {
        POINTS * self.sums_step(tiles)
    }
}

/// Tiles from `first` on, up to `len`: their inputs at each point and the sums over channels.
struct Stage<'a> {
    pass: &'a Pass<'a>,
    first: usize,
    len: usize,
    /// `[point][tile][source channel]`
    points: Shared<'a>,
    /// `[point][tile][result channel]`
    sums: Shared<'a>,
}

impl Stage<'_> {
    fn evaluate(&self, tiles: Range<usize>) {
        self.pass.weights.isa().run(Evaluate { stage: self, tiles });
    }

    fn multiply(&self, points: Range<usize>, tiles: usize) {
        self.pass.weights.isa().run(Multiply { stage: self, points, tiles });
    }

    fn finish(
        &self,
        block: usize,
        tiles: Range<usize>,
        result: Shared<'_>,
        moments: Option<&MomentSink<'_>>,
    ) {
        self.pass.weights.isa().run(Finish { stage: self, block, tiles, result, moments });
    }
}

/// Step one: inputs at their points.
struct Evaluate<'a> {
    stage: &'a Stage<'a>,
    tiles: Range<usize>,
}

impl Kernel for Evaluate<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd, const R: usize, const V: usize>(self, simd: S) {
        let pass = self.stage.pass;
        let channels = pass.weights.sources();
        let step = pass.points_step(self.stage.len);
        let mut zeros = scratch::floats(channels);
        zeros.fill(0.0);
        for tile in self.tiles {
            let row = (tile - self.stage.first) * channels;
            let tile = pass.tiles.tile(tile);
            let points = &self.stage.points;
            evaluate(simd, &pass.tiles, tile, pass.source, &zeros, points, row, step);
        }
    }
}

/// Writes one tile of `source` at its points: point `p`, channel `c` goes to `p·step + at + c`.
///
/// `zeros` has one value for each channel. No other task may use these places.
#[inline(always)]
#[expect(clippy::too_many_arguments, reason = "shared by the passes, each with its own memory")]
pub(super) fn evaluate<S: Simd>(
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
            // SAFETY: a tile is evaluated by one task only.
            let to = unsafe { points.part(point * step + at + c, S::LANES) };
            simd.store(to, values[point]);
        }
    }
}

/// Step two: a matrix product over channels at each point.
struct Multiply<'a> {
    stage: &'a Stage<'a>,
    points: Range<usize>,
    tiles: usize,
}

impl Kernel for Multiply<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd, const R: usize, const V: usize>(self, simd: S) {
        let pass = self.stage.pass;
        let (channels, padded) = (pass.weights.sources(), pass.padded());
        let (points_step, sums_step) =
            (pass.points_step(self.stage.len), pass.sums_step(self.stage.len));
        for point in self.points {
            // SAFETY: the inputs of a point are complete, and only read from now on.
            let inputs =
                unsafe { self.stage.points.part(point * points_step, self.tiles * channels) };
            // SAFETY: the sums of a point are computed by one task only.
            let sums = unsafe { self.stage.sums.part(point * sums_step, self.tiles * padded) };
            for panel in 0..pass.weights.panels() {
                let weights = pass.weights.panel(point, panel);
                let at = panel * V * S::LANES;
                for from in (0..channels).step_by(DEPTH) {
                    let depth = from..channels.min(from + DEPTH);
                    multiply::<S, R, V>(
                        simd,
                        inputs,
                        channels,
                        depth,
                        weights,
                        &mut sums[at..],
                        padded,
                    );
                }
            }
        }
    }
}

/// Step three: results from the sums.
struct Finish<'a> {
    stage: &'a Stage<'a>,
    block: usize,
    tiles: Range<usize>,
    result: Shared<'a>,
    moments: Option<&'a MomentSink<'a>>,
}

impl Kernel for Finish<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd, const R: usize, const V: usize>(self, simd: S) {
        let pass = self.stage.pass;
        let (channels, step) = (pass.weights.results(), pass.sums_step(self.stage.len));
        let mut start = true;
        for index in self.tiles.clone() {
            let tile = pass.tiles.tile(index);
            let (rows, columns) = pass.tiles.extent(tile);
            let row = (index - self.stage.first) * pass.padded();
            for c in (0..channels).step_by(S::LANES) {
                let mut points = [simd.zero(); POINTS];
                for at in 0..POINTS {
                    // SAFETY: the sums are complete, and only read from now on.
                    let from = unsafe { self.stage.sums.part(at * step + row + c, S::LANES) };
                    points[at] = simd.load(from);
                }
                let mut values = transform::output(simd, &points);
                for i in 0..OUT {
                    for j in 0..OUT {
                        if i < rows && j < columns {
                            let at = pass.tiles.output(tile, i, j) * channels + c;
                            values[i][j] = pass.epilogue.apply_vector(simd, values[i][j], c, at);
                            // SAFETY: a pixel belongs to one tile only.
                            simd.store(unsafe { self.result.part(at, S::LANES) }, values[i][j]);
                        }
                    }
                }
                if let Some(sink) = self.moments {
                    sink.add_square(simd, self.block, c, (rows, columns), start, &values);
                }
            }
            start &= rows * columns == 0;
        }
    }
}
