//! The gradient of the weights at the 36 points: the transpose of the forward pass.
//!
//! `dg = Gᵀ[Σ (Bᵀ d B) ⊙ (A dY Aᵀ)]G`, the sum over all tiles being 36 matrix products. Tiles come
//! in blocks; each split of the blocks has its own sums, which are added in the splits' order.

use std::ops::Range;

use rayon::prelude::*;

use super::{GAP, OUT, POINTS, pass::transform_tile, tiles::Tiles, transform};
use crate::{
    conv::{backward_weights::outer, shape::Conv, tile::store_tile},
    scratch,
    shared::Shared,
    simd::{Isa, Kernel, Simd, Tile as RegisterTile},
};

/// Tiles of a block.
const BLOCK: usize = 96;
/// Floats of all splits' sums together.
const PARTIAL_FLOATS: usize = 4 << 20;
/// Most splits of the tiles.
const MAX_SPLITS: usize = 16;
/// With fewer splits, every step is shared out among the cores instead.
const MANY_SPLITS: usize = 4;

/// Writes the gradient of the weights, `[out_channels, in_channels, 3, 3]`.
pub(crate) fn backward_weights(
    isa: Isa,
    conv: &Conv,
    input: &[f32],
    grad: &[f32],
    grad_weights: &mut [f32],
) {
    let grad = Grad {
        isa,
        register: isa.tile(),
        tiles: Tiles::new(conv),
        inputs: conv.filter().in_channels,
        outputs: conv.filter().out_channels,
        input,
        grad,
    };
    let blocks = grad.tiles.count().div_ceil(BLOCK);
    let splits = (PARTIAL_FLOATS / grad.sums_len()).min(MAX_SPLITS).min(blocks);
    if splits >= MANY_SPLITS {
        grad.run_split(blocks, splits, grad_weights);
    } else {
        grad.run_together(grad_weights);
    }
}

struct Grad<'a> {
    isa: Isa,
    register: RegisterTile,
    tiles: Tiles,
    inputs: usize,
    outputs: usize,
    input: &'a [f32],
    grad: &'a [f32],
}

impl Grad<'_> {
    /// Each split is a task, block after block.
    fn run_split(&self, blocks: usize, splits: usize, grad_weights: &mut [f32]) {
        let mut partial = scratch::floats(splits * self.sums_len());
        let partials = partial.par_chunks_exact_mut(self.sums_len()).enumerate().with_max_len(1);
        partials.for_each(|(split, sums)| {
            self.with_stage(BLOCK, |stage| {
                let range = blocks * split / splits..blocks * (split + 1) / splits;
                for block in range.clone() {
                    let tiles = block * BLOCK..((block + 1) * BLOCK).min(self.tiles.count());
                    stage.transform(tiles.start, tiles.clone());
                    for (point, sums) in sums.chunks_exact_mut(self.point_len()).enumerate() {
                        stage.multiply(point, tiles.len(), block > range.start, sums);
                    }
                }
            });
        });
        self.collect(&partial, grad_weights);
    }

    /// Every step is shared out: tiles first, then points.
    fn run_together(&self, grad_weights: &mut [f32]) {
        let count = self.tiles.count();
        let mut sums = scratch::floats(self.sums_len());
        self.with_stage(count, |stage| {
            (0..count).into_par_iter().for_each(|tile| stage.transform(0, tile..tile + 1));
            let points = sums.par_chunks_exact_mut(self.point_len()).enumerate().with_max_len(1);
            points.for_each(|(point, sums)| stage.multiply(point, count, false, sums));
        });
        self.collect(&sums, grad_weights);
    }

    /// Calls `work` with memory for `len` tiles.
    fn with_stage(&self, len: usize, work: impl FnOnce(&Stage<'_>)) {
        let inputs_len = POINTS * self.inputs_step(len);
        let mut memory = scratch::floats(inputs_len + POINTS * self.grads_step(len));
        let (inputs, grads) = memory.split_at_mut(inputs_len);
        let (inputs, grads) = (Shared::new(inputs), Shared::new(grads));
        work(&Stage { grad: self, len, inputs, grads });
    }

    /// Floats from one tile's inputs at a point to the next's: seldom a power of two, so that they
    /// do not share cache sets.
    fn input_step(&self) -> usize {
        self.inputs + GAP
    }

    /// Floats from one point's `[tile][input channel]` to the next's.
    fn inputs_step(&self, tiles: usize) -> usize {
        tiles * self.input_step() + GAP
    }

    /// Register tiles along the output channels.
    fn panels(&self) -> usize {
        self.outputs.div_ceil(self.register.columns)
    }

    /// Register tiles along the input channels.
    fn row_tiles(&self) -> usize {
        self.inputs.div_ceil(self.register.rows)
    }

    /// Floats from one point's `[panel][tile][lane]` to the next's.
    fn grads_step(&self, tiles: usize) -> usize {
        self.panels() * tiles * self.register.columns + GAP
    }

    /// Floats of one point's sums, `[panel][register tile][row][lane]`.
    fn point_len(&self) -> usize {
        self.panels() * self.row_tiles() * self.register.rows * self.register.columns
    }

    fn sums_len(&self) -> usize {
        POINTS * self.point_len()
    }

    /// Adds the splits in their order and transforms the sums into gradients of taps.
    fn collect(&self, partial: &[f32], grad_weights: &mut [f32]) {
        let lanes = self.register.columns;
        let panels = grad_weights.par_chunks_mut(lanes * self.inputs * 9).enumerate();
        panels.for_each(|(panel, grad_weights)| {
            self.isa.run(Collect { grad: self, panel, partial, grad_weights });
        });
    }
}

/// Transformed inputs and gradients of some tiles.
struct Stage<'a> {
    grad: &'a Grad<'a>,
    /// Tiles there is room for.
    len: usize,
    inputs: Shared<'a>,
    grads: Shared<'a>,
}

impl Stage<'_> {
    fn transform(&self, first: usize, tiles: Range<usize>) {
        self.grad.isa.run(Transform { stage: self, first, tiles });
    }

    fn multiply(&self, point: usize, tiles: usize, add: bool, sums: &mut [f32]) {
        self.grad.isa.run(Multiply { stage: self, point, tiles, add, sums });
    }
}

/// Transforms inputs and gradients.
struct Transform<'a> {
    stage: &'a Stage<'a>,
    /// The tile that has the first place.
    first: usize,
    tiles: Range<usize>,
}

impl Kernel for Transform<'_> {
    #[inline(always)]
    fn run<S: Simd, const R: usize, const V: usize>(self, simd: S) {
        let Stage { grad, len, inputs, grads } = self.stage;
        let mut zeros = scratch::floats(grad.inputs);
        zeros.fill(0.0);
        let step = grad.inputs_step(*len);
        for index in self.tiles {
            let (tile, place) = (grad.tiles.tile(index), index - self.first);
            let at = place * grad.input_step();
            transform_tile(simd, &grad.tiles, tile, grad.input, &zeros, inputs, at, step);
            let (rows, columns) = grad.tiles.extent(tile);
            for c in (0..grad.outputs).step_by(S::LANES) {
                let mut values = [[simd.zero(); OUT]; OUT];
                for i in 0..OUT {
                    for j in 0..OUT {
                        if i < rows && j < columns {
                            let at = grad.tiles.output(tile, i, j) * grad.outputs + c;
                            values[i][j] = simd.load(&grad.grad[at..]);
                        }
                    }
                }
                let points = transform::gradient(simd, &values);
                let lanes = V * S::LANES;
                let at = (c / lanes * len + place) * lanes + c % lanes;
                for point in 0..POINTS {
                    let at = point * grad.grads_step(*len) + at;
                    // SAFETY: a tile is transformed by one task only.
                    simd.store(unsafe { grads.part(at, S::LANES) }, points[point]);
                }
            }
        }
    }
}

/// The sums of one point over the first tiles of a stage.
struct Multiply<'a> {
    stage: &'a Stage<'a>,
    point: usize,
    tiles: usize,
    /// Add to the sums of earlier blocks.
    add: bool,
    sums: &'a mut [f32],
}

impl Kernel for Multiply<'_> {
    #[inline(always)]
    fn run<S: Simd, const R: usize, const V: usize>(self, simd: S) {
        let Stage { grad, len, inputs, grads } = self.stage;
        let (lanes, step) = (V * S::LANES, grad.input_step());
        let at = [grad.inputs_step(*len), grad.grads_step(*len)].map(|step| self.point * step);
        // SAFETY: inputs and gradients are complete, and only read from now on.
        let inputs = unsafe { inputs.view(at[0], self.tiles * step + GAP) };
        // SAFETY: as above.
        let grads = unsafe { grads.view(at[1], grad.panels() * len * lanes) };
        let sums = self.sums.chunks_exact_mut(grad.row_tiles() * R * lanes);
        for (sums, grads) in sums.zip(grads.chunks_exact(len * lanes)) {
            for (row, sums) in sums.chunks_exact_mut(R * lanes).enumerate() {
                let mut acc = [[simd.zero(); V]; R];
                // SAFETY: each tile has `step` inputs from its first on, of which `R` are read
                // (the last may lie in the gap), and a vector of gradients.
                unsafe { outer(simd, &inputs[row * R..], step, grads, self.tiles, &mut acc) };
                store_tile(simd, &acc, sums, self.add);
            }
        }
    }
}

/// One panel of output channels, from sums at points to gradients of taps.
struct Collect<'a> {
    grad: &'a Grad<'a>,
    panel: usize,
    partial: &'a [f32],
    grad_weights: &'a mut [f32],
}

impl Kernel for Collect<'_> {
    #[inline(always)]
    fn run<S: Simd, const R: usize, const V: usize>(self, simd: S) {
        let grad = self.grad;
        let (lanes, rows) = (V * S::LANES, grad.row_tiles() * R);
        let mut taps = scratch::floats(9 * lanes);
        for input in 0..grad.inputs {
            let at = (self.panel * rows + input) * lanes;
            for j in 0..V {
                let mut points = [simd.zero(); POINTS];
                for sums in self.partial.chunks_exact(grad.sums_len()) {
                    for point in 0..POINTS {
                        let from = &sums[point * grad.point_len() + at + j * S::LANES..];
                        points[point] = simd.add(points[point], simd.load(from));
                    }
                }
                let values = transform::kernel_gradient(simd, &points);
                for t in 0..9 {
                    simd.store(&mut taps[t * lanes + j * S::LANES..], values[t]);
                }
            }
            let outputs = self.grad_weights.chunks_exact_mut(grad.inputs * 9).enumerate();
            for (lane, weights) in outputs {
                for t in 0..9 {
                    weights[input * 9 + t] = taps[t * lanes + lane];
                }
            }
        }
    }
}
