//! Kernels at the 36 points, in the order the micro-kernel reads.
//!
//! They take four times the memory of the weights. Kept, they serve all passes of a step; computed
//! anew, they never leave the cache, and are the same to the bit.

use std::ops::Range;

use rayon::prelude::*;

use super::{POINTS, transform};
use crate::{
    conv::{
        pack::{Direction, PackedWeights},
        shape::Filter,
    },
    scratch::{self, AlignedFloats},
    shared::Shared,
    simd::{Isa, Kernel, Simd},
};

/// Source channels transformed at a time. Points lie far apart, at addresses that share their place
/// in the cache: written one by one, each would push the others out half-written.
const BLOCK: usize = 16;

/// Where a pass finds kernels at their points.
#[derive(Clone, Copy)]
pub(crate) enum Points<'a> {
    /// In memory.
    Kept(&'a PackedPoints),
    /// Nowhere: they are computed from panels of plain weights.
    OnTheFly(&'a PackedWeights),
}

impl Points<'_> {
    pub(super) fn isa(&self) -> Isa {
        match self {
            Self::Kept(points) => points.isa,
            Self::OnTheFly(weights) => weights.isa(),
        }
    }

    /// Channels of the image that is read.
    pub(super) fn sources(&self) -> usize {
        match self {
            Self::Kept(points) => points.sources,
            Self::OnTheFly(weights) => weights.source_channels(),
        }
    }

    /// Channels of the image that is written.
    pub(super) fn results(&self) -> usize {
        match self {
            Self::Kept(points) => points.results,
            Self::OnTheFly(weights) => weights.result_channels(),
        }
    }

    pub(super) fn panels(&self) -> usize {
        self.results().div_ceil(self.isa().tile().columns)
    }
}

/// Evaluates some source channels of a panel of plain weights, `[point][source channel][lane]`
/// with `step` floats from one point to the next.
#[inline(always)]
pub(super) fn evaluate_panel<S: Simd, const V: usize>(
    simd: S,
    weights: &PackedWeights,
    panel: usize,
    sources: Range<usize>,
    to: &mut [f32],
    step: usize,
) {
    let (lanes, channels) = (V * S::LANES, weights.source_channels());
    let taps = weights.panel(&weights.classes()[0], panel);
    for (row, source) in sources.enumerate() {
        for j in 0..V {
            let mut kernel = [simd.zero(); 9];
            for t in 0..9 {
                let tap = turned(weights.direction(), t);
                kernel[tap] = simd.load(&taps[(t * channels + source) * lanes + j * S::LANES..]);
            }
            let points = transform::kernel(simd, &kernel);
            for point in 0..POINTS {
                simd.store(&mut to[point * step + row * lanes + j * S::LANES..], points[point]);
            }
        }
    }
}

/// The place of a tap: kernels are turned around for the way back.
#[inline(always)]
fn turned(direction: Direction, tap: usize) -> usize {
    match direction {
        Direction::Forward => tap,
        Direction::BackwardData => 8 - tap,
    }
}

/// Transformed weights, `[point][panel of result channels][source channel][lane]`.
#[derive(Clone)]
pub(crate) struct PackedPoints {
    isa: Isa,
    direction: Direction,
    sources: usize,
    results: usize,
    values: AlignedFloats,
}

impl PackedPoints {
    pub(crate) fn new(isa: Isa, filter: &Filter, direction: Direction) -> Self {
        let (sources, results) = match direction {
            Direction::Forward => (filter.in_channels, filter.out_channels),
            Direction::BackwardData => (filter.out_channels, filter.in_channels),
        };
        let padded = results.next_multiple_of(isa.tile().columns);
        let values = AlignedFloats::zeroed(POINTS * sources * padded);
        Self { isa, direction, sources, results, values }
    }

    /// Transforms new weights `[out_channels, in_channels, 3, 3]`.
    pub(crate) fn update(&mut self, weights: &[f32]) {
        let mut values = std::mem::take(&mut self.values);
        let shared = Shared::new(values.as_mut_slice());
        (0..self.panels()).into_par_iter().for_each(|panel| {
            self.isa.run(Panel { packed: self, panel, weights, values: shared });
        });
        self.values = values;
    }

    fn panels(&self) -> usize {
        self.results.div_ceil(self.isa.tile().columns)
    }

    #[inline(always)]
    pub(super) fn panel(&self, point: usize, panel: usize) -> &[f32] {
        let len = self.sources * self.isa.tile().columns;
        &self.values.as_slice()[(point * self.panels() + panel) * len..][..len]
    }
}

/// One panel of result channels.
struct Panel<'a> {
    packed: &'a PackedPoints,
    panel: usize,
    weights: &'a [f32],
    values: Shared<'a>,
}

impl Kernel for Panel<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd, const R: usize, const V: usize>(self, simd: S) {
        let (lanes, sources, panels) = (V * S::LANES, self.packed.sources, self.packed.panels());
        let mut taps = scratch::floats(9 * lanes);
        taps.fill(0.0);
        let mut block = scratch::floats(POINTS * BLOCK * lanes);
        for first in (0..sources).step_by(BLOCK) {
            let count = BLOCK.min(sources - first);
            for source in 0..count {
                self.gather(first + source, lanes, &mut taps);
                for j in 0..V {
                    let mut kernel = [simd.zero(); 9];
                    for t in 0..9 {
                        kernel[t] = simd.load(&taps[t * lanes + j * S::LANES..]);
                    }
                    let points = transform::kernel(simd, &kernel);
                    for point in 0..POINTS {
                        let at = (point * BLOCK + source) * lanes + j * S::LANES;
                        simd.store(&mut block[at..], points[point]);
                    }
                }
            }
            for point in 0..POINTS {
                let at = ((point * panels + self.panel) * sources + first) * lanes;
                // SAFETY: a panel is written by one task only.
                let target = unsafe { self.values.part(at, count * lanes) };
                target.copy_from_slice(&block[point * BLOCK * lanes..][..count * lanes]);
            }
        }
    }
}

impl Panel<'_> {
    /// Taps of one source channel, result channels side by side; turned around for the way back.
    #[inline(always)]
    fn gather(&self, source: usize, lanes: usize, taps: &mut [f32]) {
        let PackedPoints { direction, sources, results, .. } = *self.packed;
        let first = self.panel * lanes;
        for lane in 0..lanes.min(results - first) {
            let result = first + lane;
            let forward = direction == Direction::Forward;
            let pair = if forward { result * sources + source } else { source * results + result };
            for (t, &weight) in self.weights[pair * 9..][..9].iter().enumerate() {
                taps[turned(direction, t) * lanes + lane] = weight;
            }
        }
    }
}
