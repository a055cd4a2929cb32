//! Transformed kernels, in the order the micro-kernel reads.
//!
//! They take four times the memory of the weights. Kept, they serve all passes of a step; computed
//! on the fly, they stay in the cache, and are the same to the bit.

use std::ops::Range;

use rayon::prelude::*;

use super::{POINTS, transform};
use crate::{
    conv::pack::{Direction, PackedWeights},
    scratch,
    shared::Shared,
    simd::{Kernel, Simd},
};

/// Source channels transformed at a time. The points of a channel lie far apart, at addresses that
/// share few cache sets: written one by one, they would evict each other's lines half-written.
const BLOCK: usize = 16;

/// Transforms some source channels of a panel of packed weights to `[point][source channel][lane]`,
/// with `step` floats from one point to the next.
#[inline(always)]
pub(super) fn transform_panel<S: Simd, const V: usize>(
    simd: S,
    weights: &PackedWeights,
    panel: usize,
    sources: Range<usize>,
    to: &mut [f32],
    step: usize,
) {
    let (lanes, channels) = (V * S::LANES, weights.source_channels());
    let taps = weights.panel(&weights.classes[0], panel);
    for (row, source) in sources.enumerate() {
        let (taps, to) = (&taps[source * lanes..], &mut to[row * lanes..]);
        transform_kernels::<S, V>(simd, weights.direction, taps, channels * lanes, to, step);
    }
}

/// Transforms the kernels of one source channel, `tap_step` floats from one tap to the next.
#[inline(always)]
fn transform_kernels<S: Simd, const V: usize>(
    simd: S,
    direction: Direction,
    taps: &[f32],
    tap_step: usize,
    to: &mut [f32],
    step: usize,
) {
    for j in 0..V {
        let mut kernel = [simd.zero(); 9];
        for t in 0..9 {
            // The backward pass convolves with kernels rotated by 180°.
            let place = if direction == Direction::Forward { t } else { 8 - t };
            kernel[place] = simd.load(&taps[t * tap_step + j * S::LANES..]);
        }
        let points = transform::kernel(simd, &kernel);
        for point in 0..POINTS {
            simd.store(&mut to[point * step + j * S::LANES..], points[point]);
        }
    }
}

/// Transforms `weights`, `[out_channels, in_channels, 3, 3]`, into those of
/// [`PackedWeights::panel_at`].
pub(crate) fn transform_weights(packed: &PackedWeights, weights: &[f32], values: &mut [f32]) {
    let values = Shared::new(values);
    (0..packed.panel_count()).into_par_iter().for_each(|panel| {
        packed.isa.run(Panel { packed, panel, weights, values });
    });
}

/// One panel of result channels.
struct Panel<'a> {
    packed: &'a PackedWeights,
    panel: usize,
    weights: &'a [f32],
    values: Shared<'a>,
}

impl Kernel for Panel<'_> {
    #[inline(always)]
    fn run<S: Simd, const R: usize, const V: usize>(self, simd: S) {
        let Self { packed, panel, values, .. } = self;
        let (lanes, sources) = (V * S::LANES, packed.source_channels());
        let mut taps = scratch::floats(9 * lanes);
        taps.fill(0.0);
        let step = BLOCK * lanes;
        let mut block = scratch::floats(POINTS * step);
        for first in (0..sources).step_by(BLOCK) {
            let count = BLOCK.min(sources - first);
            for source in 0..count {
                self.gather(first + source, lanes, &mut taps);
                let to = &mut block[source * lanes..];
                transform_kernels::<S, V>(simd, packed.direction, &taps, lanes, to, step);
            }
            for point in 0..POINTS {
                let at = ((point * packed.panel_count() + panel) * sources + first) * lanes;
                // SAFETY: a panel is written by one task only.
                let target = unsafe { values.part(at, count * lanes) };
                target.copy_from_slice(&block[point * step..][..count * lanes]);
            }
        }
    }
}

impl Panel<'_> {
    /// Taps of one source channel, result channels side by side.
    #[inline(always)]
    fn gather(&self, source: usize, lanes: usize, taps: &mut [f32]) {
        let (sources, results) = (self.packed.source_channels(), self.packed.result_channels());
        let first = self.panel * lanes;
        for lane in 0..lanes.min(results - first) {
            let result = first + lane;
            let pair = match self.packed.direction {
                Direction::Forward => result * sources + source,
                Direction::BackwardData => source * results + result,
            };
            for (t, &weight) in self.weights[pair * 9..][..9].iter().enumerate() {
                taps[t * lanes + lane] = weight;
            }
        }
    }
}
