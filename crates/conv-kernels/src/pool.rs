//! Max pooling, forward and backward.

use rayon::prelude::*;

use crate::{
    conv::{Conv, Filter, ShapeError},
    simd::{Isa, Kernel, MAX_LANES, Simd},
};

/// The largest value under a square window that moves over `[batch, height, width, channels]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MaxPool {
    /// Windows move as kernels do.
    windows: Conv,
}

impl MaxPool {
    /// A window of side `kernel`; pixels of the `padding` never win.
    ///
    /// # Panics
    /// Where the window has more than 255 places, or the padding could cover a whole window.
    pub fn new(
        (kernel, stride, padding): (usize, usize, usize),
        batch: usize,
        (height, width, channels): (usize, usize, usize),
    ) -> Result<Self, ShapeError> {
        assert!(kernel < 16, "a place in the window is kept in one byte");
        assert!(padding * 2 <= kernel, "padding exceeds half of the window");
        let filter = Filter { padding, ..Filter::new(channels, channels, kernel, stride) };
        Ok(Self { windows: Conv::new(filter, batch, height, width)? })
    }

    /// Rows and columns of the result.
    pub fn out_size(&self) -> (usize, usize) {
        (self.windows.out_height(), self.windows.out_width())
    }

    /// Floats of the result.
    pub fn output_len(&self) -> usize {
        self.windows.output_len()
    }

    /// Writes the largest value of each window, and its place in the window, row by row;
    /// the first of equal values wins, NaN wins over all.
    pub fn forward(&self, isa: Isa, input: &[f32], output: &mut [f32], places: &mut [u8]) {
        assert_eq!(input.len(), self.windows.input_len(), "input does not match the pooling");
        assert_eq!(output.len(), self.output_len(), "output does not match the pooling");
        assert_eq!(places.len(), self.output_len(), "places do not match the pooling");
        let row = self.windows.out_width() * self.windows.filter().out_channels;
        let rows = output.par_chunks_mut(row).zip(places.par_chunks_mut(row)).enumerate();
        rows.for_each(|(index, (output, places))| {
            isa.run(ForwardRow { pool: self, index, input, output, places });
        });
    }

    /// Gives each gradient back to the place its value came from.
    pub fn backward(&self, isa: Isa, grad_output: &[f32], places: &[u8], grad_input: &mut [f32]) {
        assert_eq!(grad_output.len(), self.output_len(), "gradient does not match the pooling");
        assert_eq!(places.len(), self.output_len(), "places do not match the pooling");
        assert_eq!(grad_input.len(), self.windows.input_len(), "result does not match the pooling");
        let row = self.windows.width() * self.windows.filter().in_channels;
        grad_input.par_chunks_mut(row).enumerate().for_each(|(index, grad_input)| {
            isa.run(BackwardRow { pool: self, index, grad_output, places, grad_input });
        });
    }
}

/// One row of results.
struct ForwardRow<'a> {
    pool: &'a MaxPool,
    index: usize,
    input: &'a [f32],
    output: &'a mut [f32],
    places: &'a mut [u8],
}

impl Kernel for ForwardRow<'_> {
    #[inline(always)]
    fn run<S: Simd, const R: usize, const V: usize>(self, simd: S) {
        let windows = &self.pool.windows;
        let &Filter { kernel, stride, padding, out_channels: channels, .. } = windows.filter();
        let (image, out_y) = (self.index / windows.out_height(), self.index % windows.out_height());
        let top = (out_y * stride) as isize - padding as isize;
        let rows = inside(top, kernel, windows.height());
        for out_x in 0..windows.out_width() {
            let left = (out_x * stride) as isize - padding as isize;
            let columns = inside(left, kernel, windows.width());
            let output = &mut self.output[out_x * channels..][..channels];
            let places = &mut self.places[out_x * channels..][..channels];
            for c in (0..channels).step_by(S::LANES) {
                let mut best = simd.splat(f32::NEG_INFINITY);
                let mut place = simd.splat((rows.start * kernel + columns.start) as f32);
                for ky in rows.clone() {
                    for kx in columns.clone() {
                        let y = (top + ky as isize) as usize;
                        let x = (left + kx as isize) as usize;
                        let pixel = (image * windows.height() + y) * windows.width() + x;
                        let pixel = &self.input[pixel * channels..][..channels];
                        let value = simd.load_at(pixel, c);
                        let here = simd.splat((ky * kernel + kx) as f32);
                        place = simd.select_larger(value, best, here, place);
                        best = simd.select_larger(value, best, value, best);
                    }
                }
                simd.store_at(output, c, best);
                let mut wide = [0.0; MAX_LANES];
                simd.store(&mut wide, place);
                for (place, wide) in places[c..].iter_mut().zip(&wide[..S::LANES]) {
                    *place = *wide as u8;
                }
            }
        }
    }
}

/// Places of a window that lie in the image.
#[inline(always)]
fn inside(start: isize, kernel: usize, size: usize) -> std::ops::Range<usize> {
    let first = (-start).max(0) as usize;
    first..kernel.min((size as isize - start).max(0) as usize)
}

/// One row of the input's gradient.
struct BackwardRow<'a> {
    pool: &'a MaxPool,
    index: usize,
    grad_output: &'a [f32],
    places: &'a [u8],
    grad_input: &'a mut [f32],
}

impl Kernel for BackwardRow<'_> {
    #[inline(always)]
    fn run<S: Simd, const R: usize, const V: usize>(self, _: S) {
        let windows = &self.pool.windows;
        let &Filter { kernel, stride, padding, in_channels: channels, .. } = windows.filter();
        let (image, y) = (self.index / windows.height(), self.index % windows.height());
        self.grad_input.fill(0.0);
        // Windows that cover a place, and which of their places it is.
        let covering = |at: usize, count: usize| {
            let first = (at + padding + 1).saturating_sub(kernel).div_ceil(stride);
            (first..count.min((at + padding) / stride + 1))
                .map(move |window| (window, at + padding - window * stride))
        };
        for x in 0..windows.width() {
            let to = &mut self.grad_input[x * channels..][..channels];
            for (out_y, ky) in covering(y, windows.out_height()) {
                for (out_x, kx) in covering(x, windows.out_width()) {
                    let row = image * windows.out_height() + out_y;
                    let at = (row * windows.out_width() + out_x) * channels;
                    let place = (ky * kernel + kx) as u8;
                    let grad = &self.grad_output[at..][..channels];
                    let places = &self.places[at..][..channels];
                    for ((to, &grad), &from) in to.iter_mut().zip(grad).zip(places) {
                        *to += if from == place { grad } else { 0.0 };
                    }
                }
            }
        }
    }
}
