//! Packed weights: in the order the micro-kernels read, prepared once a step for all its passes.

use rayon::prelude::*;

use super::{
    shape::{Conv, Filter},
    winograd::{self, POINTS},
};
use crate::{scratch::AlignedFloats, simd::Isa};

/// A tap of a [`Class`]: where it reads, relative to the pixel's place in the source.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tap {
    pub(crate) dy: isize,
    pub(crate) dx: isize,
    /// Position in the kernel, row by row.
    index: usize,
}

/// Result pixels `(step·i + row, step·j + column)` that all use the same taps.
///
/// A forward pass has one class. The backward pass of stride 2 has four, each with its own share
/// of the taps: nothing is multiplied with the zeros that a stride inserts.
#[derive(Debug, Clone)]
pub(crate) struct Class {
    pub(crate) row: usize,
    pub(crate) column: usize,
    pub(crate) taps: Vec<Tap>,
    /// Where its panels start.
    pub(crate) offset: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    Forward,
    BackwardData,
}

/// How a convolution is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Algorithm {
    /// Sums of products, for every shape.
    Direct,
    /// F(4×4, 3×3): a quarter of the products, twice the rounding; see [`Algorithm::fastest`].
    Winograd,
    /// The same, but packed weights take no more memory than plain ones: their transformed form,
    /// four times as large, is computed in every pass and never leaves the cache. Where a batch
    /// is too small for that to pay, sums are direct.
    WinogradOnTheFly,
}

impl Algorithm {
    /// Winograd where it applies (3×3, stride 1, padding that keeps the size, channels in
    /// multiples of 16, not too many of them), else the direct one.
    pub fn fastest(filter: &Filter) -> Self {
        if winograd::suits(filter) { Self::Winograd } else { Self::Direct }
    }

    /// Winograd as well, but without memory for transformed weights where they are large:
    /// 38 MB for 512 × 512 channels.
    pub fn frugal(filter: &Filter) -> Self {
        let large = filter.in_channels * filter.out_channels >= LARGE;
        match Self::fastest(filter) {
            Self::Winograd if large => Self::WinogradOnTheFly,
            fastest => fastest,
        }
    }
}

/// Channels in times channels out from which on [`Algorithm::frugal`] saves memory.
const LARGE: usize = 512 * 512;

/// Weights of a [`Filter`], ready for one direction and one instruction set.
pub struct PackedWeights {
    pub(super) isa: Isa,
    pub(super) filter: Filter,
    pub(super) direction: Direction,
    pub(super) algorithm: Algorithm,
    pub(super) classes: Vec<Class>,
    /// For each class, for each panel of result channels, `[tap][source channel][lane]`;
    /// transformed, `[point][panel][source channel][lane]`.
    values: AlignedFloats,
}

impl std::fmt::Debug for PackedWeights {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { isa, filter, direction, .. } = self;
        write!(f, "PackedWeights({direction:?}, {isa:?}, {filter:?})")
    }
}

impl PackedWeights {
    /// For [`forward`](super::forward()), from `[out_channels, in_channels, kernel, kernel]`.
    ///
    /// # Panics
    /// Where Winograd is asked for and does not apply to the filter.
    pub fn forward(isa: Isa, filter: &Filter, algorithm: Algorithm, weights: &[f32]) -> Self {
        Self::new(isa, filter, Direction::Forward, algorithm, weights)
    }

    /// For [`backward_data`](super::backward_data()), from the same weights.
    ///
    /// # Panics
    /// As [`PackedWeights::forward`].
    pub fn backward_data(isa: Isa, filter: &Filter, algorithm: Algorithm, weights: &[f32]) -> Self {
        Self::new(isa, filter, Direction::BackwardData, algorithm, weights)
    }

    fn new(
        isa: Isa,
        filter: &Filter,
        direction: Direction,
        algorithm: Algorithm,
        weights: &[f32],
    ) -> Self {
        let fits = algorithm == Algorithm::Direct || winograd::suits(filter);
        assert!(fits, "Winograd does not apply to {filter:?}");
        let classes = match direction {
            Direction::Forward => forward_classes(filter),
            Direction::BackwardData => backward_classes(filter),
        };
        let values = AlignedFloats::default();
        let mut packed = Self { isa, filter: *filter, direction, algorithm, classes, values };
        let per_tap = packed.panel_count() * packed.source_channels() * isa.tile().columns;
        let mut taps = 0;
        for class in &mut packed.classes {
            class.offset = taps * per_tap;
            taps += class.taps.len();
        }
        let transformed = algorithm == Algorithm::Winograd;
        packed.values = AlignedFloats::zeroed(per_tap * if transformed { POINTS } else { taps });
        packed.update(weights);
        packed
    }

    /// Takes over new weights of the same filter without allocating.
    pub fn update(&mut self, weights: &[f32]) {
        assert_eq!(weights.len(), self.filter.weights(), "weights do not belong to the filter");
        let mut values = std::mem::take(&mut self.values);
        if self.algorithm == Algorithm::Winograd {
            winograd::transform_weights(self, weights, &mut values);
        } else {
            for class in self.classes.iter().filter(|class| !class.taps.is_empty()) {
                let panels = values[class.offset..].par_chunks_exact_mut(self.panel_len(class));
                let panels = panels.take(self.panel_count()).enumerate();
                panels.for_each(|(panel, packed)| self.pack_panel(class, panel, weights, packed));
            }
        }
        self.values = values;
    }

    /// Transposes one panel: source channels become rows, result channels become lanes.
    fn pack_panel(&self, class: &Class, panel: usize, weights: &[f32], packed: &mut [f32]) {
        let (taps, lanes) = (self.filter.taps(), self.isa.tile().columns);
        let (channel_step, lane_step) = match self.direction {
            Direction::Forward => (taps, self.filter.in_channels * taps),
            Direction::BackwardData => (self.filter.in_channels * taps, taps),
        };
        let first = panel * lanes;
        let used = lanes.min(self.result_channels() - first);
        let channels = self.source_channels();
        for channel in 0..channels {
            for (t, tap) in class.taps.iter().enumerate() {
                let start = first * lane_step + channel * channel_step + tap.index;
                let row = &mut packed[(t * channels + channel) * lanes..][..used];
                for (lane, value) in row.iter_mut().enumerate() {
                    *value = weights[start + lane * lane_step];
                }
            }
        }
    }

    /// Whether a convolution is to be computed by Winograd's algorithm.
    pub(super) fn uses_winograd(&self, conv: &Conv) -> bool {
        match self.algorithm {
            Algorithm::Direct => false,
            Algorithm::Winograd => true,
            Algorithm::WinogradOnTheFly => winograd::pays_on_the_fly(conv),
        }
    }

    /// Channels of the image that the taps read.
    pub(crate) fn source_channels(&self) -> usize {
        match self.direction {
            Direction::Forward => self.filter.in_channels,
            Direction::BackwardData => self.filter.out_channels,
        }
    }

    /// Channels of the image that is written.
    pub(crate) fn result_channels(&self) -> usize {
        match self.direction {
            Direction::Forward => self.filter.out_channels,
            Direction::BackwardData => self.filter.in_channels,
        }
    }

    pub(crate) fn panel_count(&self) -> usize {
        self.result_channels().div_ceil(self.isa.tile().columns)
    }

    fn panel_len(&self, class: &Class) -> usize {
        class.taps.len() * self.source_channels() * self.isa.tile().columns
    }

    pub(crate) fn panel(&self, class: &Class, panel: usize) -> &[f32] {
        let len = self.panel_len(class);
        &self.values[class.offset + panel * len..][..len]
    }

    /// Transformed weights of a panel at one point, `[source channel][lane]`.
    #[inline(always)]
    pub(crate) fn panel_at(&self, point: usize, panel: usize) -> &[f32] {
        let len = self.source_channels() * self.isa.tile().columns;
        &self.values[(point * self.panel_count() + panel) * len..][..len]
    }
}

/// Taps in reading order; a filter that reads whole rows reads them from a padded copy.
fn forward_classes(filter: &Filter) -> Vec<Class> {
    let (kernel, dilation) = (filter.kernel, filter.dilation as isize);
    let padding = if filter.reads_rows() { 0 } else { filter.padding as isize };
    let taps = (0..filter.taps()).map(|index| Tap {
        dy: (index / kernel) as isize * dilation - padding,
        dx: (index % kernel) as isize * dilation - padding,
        index,
    });
    vec![Class { row: 0, column: 0, taps: taps.collect(), offset: 0 }]
}

/// Pixel `y` of the image was read by result `(y + padding − ky·dilation) / stride` where that is
/// whole; which taps qualify depends on `y` modulo the stride.
fn backward_classes(filter: &Filter) -> Vec<Class> {
    let stride = filter.stride;
    let reach = |phase: usize, k: usize| {
        let shift = (phase + filter.padding) as isize - (k * filter.dilation) as isize;
        (shift.rem_euclid(stride as isize) == 0).then(|| shift.div_euclid(stride as isize))
    };
    let class = |phase: usize| {
        let (row, column) = (phase / stride, phase % stride);
        let taps = (0..filter.taps()).filter_map(|index| {
            let dy = reach(row, index / filter.kernel)?;
            let dx = reach(column, index % filter.kernel)?;
            Some(Tap { dy, dx, index })
        });
        Class { row, column, taps: taps.collect(), offset: 0 }
    };
    (0..stride * stride).map(class).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stride_two_shares_the_nine_taps_among_four_classes() {
        let classes = backward_classes(&Filter::new(1, 1, 3, 2));
        let taps: Vec<_> = classes.iter().map(|class| class.taps.len()).collect();
        assert_eq!(taps, [1, 2, 2, 4]);
    }

    #[test]
    fn a_panel_holds_result_channels_side_by_side_and_zeros_beyond() {
        let filter = Filter::new(2, 3, 1, 1);
        let packed = {
            let weights = [1., 2., 3., 4., 5., 6.];
            PackedWeights::forward(Isa::Portable, &filter, Algorithm::Direct, &weights)
        };
        let panel = packed.panel(&packed.classes[0], 0);
        assert_eq!(panel, [1., 3., 5., 0., 0., 0., 0., 0., 2., 4., 6., 0., 0., 0., 0., 0.]);
    }
}
