//! Max pooling, forward and backward.

use rayon::prelude::*;

use crate::{
    conv::{Conv, Filter, ShapeError},
    simd::{Isa, Kernel, Simd},
};

/// The largest value under a square window that moves over `[batch, height, width, channels]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MaxPool {
    /// Windows move as kernels do.
    windows: Conv,
}

impl MaxPool {
    /// A window of side `kernel`; the zeros of `padding` never win.
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
        output.par_chunks_mut(row).zip(places.par_chunks_mut(row)).enumerate().for_each(
            |(index, (output, places))| {
                isa.run(ForwardRow { pool: self, index, input, output, places });
            },
        );
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
    type Output = ();

    #[inline(always)]
    fn run<S: Simd, const R: usize, const V: usize>(self, _: S) {
        let windows = &self.pool.windows;
        let &Filter { kernel, stride, padding, out_channels: channels, .. } = windows.filter();
        let (image, out_y) = (self.index / windows.out_height(), self.index % windows.out_height());
        self.output.fill(f32::NEG_INFINITY);
        for x in 0..windows.out_width() {
            let output = &mut self.output[x * channels..][..channels];
            let places = &mut self.places[x * channels..][..channels];
            let mut first = true;
            for place in 0..kernel * kernel {
                let y = (out_y * stride + place / kernel).wrapping_sub(padding);
                let x = (x * stride + place % kernel).wrapping_sub(padding);
                if y >= windows.height() || x >= windows.width() {
                    continue;
                }
                let pixel = (image * windows.height() + y) * windows.width() + x;
                let input = &self.input[pixel * channels..][..channels];
                if std::mem::take(&mut first) {
                    output.copy_from_slice(input);
                    places.fill(place as u8);
                } else {
                    keep_larger(input, place as u8, output, places);
                }
            }
        }
    }
}

#[inline(always)]
fn keep_larger(input: &[f32], place: u8, output: &mut [f32], places: &mut [u8]) {
    for ((&value, best), at) in input.iter().zip(output).zip(places) {
        let larger = value > *best || value.is_nan();
        *best = if larger { value } else { *best };
        *at = if larger { place } else { *at };
    }
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
    type Output = ();

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
