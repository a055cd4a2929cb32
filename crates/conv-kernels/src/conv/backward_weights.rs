//! The gradient with respect to the weights: a sum of outer products over all pixels.
//!
//! Both operands are copied chunk by chunk into the order the micro-kernel reads; a tile of input
//! channels is copied once and read by every tap. Chunks, splits and groups depend on the shape
//! alone, and the partial sums of splits are added in their order.

use rayon::prelude::*;

use super::{
    outer_plan::{Lines, Plan},
    pack::Algorithm,
    shape::Conv,
    tile::store_tile,
    winograd,
};
use crate::{
    scratch,
    shared::Shared,
    simd::{Isa, Kernel, Simd},
};

/// Writes the gradient of the weights, `[out_channels, in_channels, kernel, kernel]`.
///
/// # Panics
/// Where Winograd is asked for and does not apply to the filter.
pub fn backward_weights(
    isa: Isa,
    conv: &Conv,
    algorithm: Algorithm,
    input: &[f32],
    grad_output: &[f32],
    grad_weights: &mut [f32],
) {
    assert_eq!(input.len(), conv.input_len(), "input does not match the convolution");
    assert_eq!(grad_output.len(), conv.output_len(), "gradient does not match the convolution");
    assert_eq!(grad_weights.len(), conv.filter().weights(), "result does not match the filter");
    if conv.batch() == 0 {
        return grad_weights.fill(0.0);
    }
    if algorithm != Algorithm::Direct {
        assert!(winograd::suits(conv.filter()), "Winograd does not apply to {conv:?}");
        return winograd::backward_weights(isa, conv, input, grad_output, grad_weights);
    }
    let plan = Plan::new(conv, isa.tile());
    let mut partial = scratch::floats(plan.splits * plan.split_len());
    let sums = Shared::new(&mut partial);
    (0..plan.tasks()).into_par_iter().with_max_len(1).for_each(|task| {
        isa.run(Task { plan: &plan, input, grad_output, sums, task });
    });
    plan.collect(&partial, grad_weights);
}

/// A group of input channels × a group of output channels over one split of the pixels.
struct Task<'a> {
    plan: &'a Plan,
    input: &'a [f32],
    grad_output: &'a [f32],
    sums: Shared<'a>,
    task: usize,
}

impl Kernel for Task<'_> {
    #[inline(always)]
    fn run<S: Simd, const R: usize, const V: usize>(self, simd: S) {
        let plan = self.plan;
        let (split, tiles, panels) = plan.task(self.task);
        let (tile_len, panel_len) = (plan.input_tile_len(), plan.grad_panel_len());
        let chunks = plan.split_chunks(split);
        let mut packed_input = scratch::floats(tiles.len() * tile_len);
        let mut packed_grad = scratch::floats(panels.len() * panel_len);
        for index in chunks.clone() {
            let chunk = plan.chunk(index);
            let lines = plan.lines(&chunk);
            plan.pack_input::<R>(&chunk, tiles.clone(), self.input, &mut packed_input);
            let grad = self.grad_output;
            plan.pack_grad::<S, V>(simd, &chunk, panels.clone(), grad, &mut packed_grad);
            for (grad, panel) in packed_grad.chunks_exact(panel_len).zip(panels.clone()) {
                for (input, tile) in packed_input.chunks_exact(tile_len).zip(tiles.clone()) {
                    let at = plan.sums_at(split, panel, tile);
                    let len = plan.taps.len() * R * V * S::LANES;
                    // SAFETY: a tile of a panel in one split belongs to one task only.
                    let sums = unsafe { self.sums.part(at, len) };
                    let first = index == chunks.start;
                    self.tile::<S, R, V>(simd, lines, input, grad, first, sums);
                }
            }
        }
    }
}

impl Task<'_> {
    /// Adds one chunk to the sums of every tap of a register tile.
    #[inline(always)]
    fn tile<S: Simd, const R: usize, const V: usize>(
        &self,
        simd: S,
        lines: Lines,
        input: &[f32],
        grad: &[f32],
        first: bool,
        sums: &mut [f32],
    ) {
        let (step, lanes) = (self.plan.step, V * S::LANES);
        let Lines { images, image_step, rows, row_step, pixels } = lines;
        for (&tap, sums) in self.plan.taps.iter().zip(sums.chunks_exact_mut(R * lanes)) {
            let mut acc = [[simd.zero(); V]; R];
            let mut grads = grad.chunks_exact(pixels * lanes);
            for image in 0..images {
                for (row, grad) in (0..rows).zip(&mut grads) {
                    let start = (image * image_step + row * row_step + tap) * R;
                    let input = &input[start..][..((pixels - 1) * step + 1) * R];
                    // SAFETY: both slices hold every pixel of the line.
                    unsafe { outer(simd, input, step * R, grad, pixels, &mut acc) };
                }
            }
            store_tile(simd, &acc, sums, !first);
        }
    }
}

/// The micro-kernel: for each pixel of a line, adds `R` inputs × `V` vectors of gradients.
///
/// # Safety
/// `input` holds `(pixels - 1) * step + R` floats, `grad` holds `pixels` times `V` vectors.
#[inline(always)]
pub(super) unsafe fn outer<S: Simd, const R: usize, const V: usize>(
    simd: S,
    input: &[f32],
    step: usize,
    grad: &[f32],
    pixels: usize,
    acc: &mut [[S::Vector; V]; R],
) {
    let (mut input, mut grad) = (input.as_ptr(), grad.as_ptr());
    let mut sums = *acc;
    for _ in 0..pixels {
        // SAFETY: promised by the caller; the pointers end at most one step past the last pixel.
        unsafe {
            let mut g = [simd.zero(); V];
            for j in 0..V {
                g[j] = simd.load_ptr(grad.add(j * S::LANES));
            }
            for i in 0..R {
                let value = simd.splat(*input.add(i));
                for j in 0..V {
                    sums[i][j] = simd.mul_add(value, g[j], sums[i][j]);
                }
            }
            input = input.wrapping_add(step);
            grad = grad.wrapping_add(V * S::LANES);
        }
    }
    *acc = sums;
}
