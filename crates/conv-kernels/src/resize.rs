//! Bilinear resizing with aligned corners, forward and backward.

use rayon::prelude::*;

use crate::simd::{Isa, Kernel, Simd};

/// A change of size of images `[batch, height, width, channels]`; corners stay where they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Resize {
    /// Images.
    pub batch: usize,
    /// Rows and columns before.
    pub from: (usize, usize),
    /// Rows and columns after.
    pub to: (usize, usize),
    /// Channels.
    pub channels: usize,
}

/// Where a result lies between its two source positions.
#[derive(Debug, Clone, Copy)]
struct Between {
    low: usize,
    high: usize,
    /// Share of `high`.
    weight: f32,
}

/// Source positions along one axis; single precision as in PyTorch.
fn axis(from: usize, to: usize) -> Vec<Between> {
    let scale = if to > 1 { (from - 1) as f32 / (to - 1) as f32 } else { 0.0 };
    let between = |i: usize| {
        let position = i as f32 * scale;
        let low = (position as usize).min(from - 1);
        Between { low, high: (low + 1).min(from - 1), weight: position - low as f32 }
    };
    (0..to).map(between).collect()
}

impl Resize {
    /// Floats before.
    pub fn input_len(&self) -> usize {
        self.batch * self.from.0 * self.from.1 * self.channels
    }

    /// Floats after.
    pub fn output_len(&self) -> usize {
        self.batch * self.to.0 * self.to.1 * self.channels
    }

    /// Writes the resized images.
    pub fn forward(&self, isa: Isa, input: &[f32], output: &mut [f32]) {
        self.check(input.len(), output.len());
        let (rows, columns) = (axis(self.from.0, self.to.0), axis(self.from.1, self.to.1));
        let from = self.from.1 * self.channels;
        output.par_chunks_mut(self.to.1 * self.channels).enumerate().for_each(|(line, output)| {
            let (image, y) = (line / self.to.0, rows[line % self.to.0]);
            let row = |y: usize| &input[(image * self.from.0 + y) * from..][..from];
            let (low, high) = (row(y.low), row(y.high));
            let channels = self.channels;
            isa.run(ForwardRow {
                channels,
                columns: &columns,
                low,
                high,
                weight: y.weight,
                output,
            });
        });
    }

    /// Writes the gradient of the input: the transposed resizing.
    pub fn backward(&self, isa: Isa, grad_output: &[f32], grad_input: &mut [f32]) {
        self.check(grad_input.len(), grad_output.len());
        let (rows, columns) = (axis(self.from.0, self.to.0), axis(self.from.1, self.to.1));
        let to = self.to.1 * self.channels;
        grad_input.par_chunks_mut(self.from.1 * self.channels).enumerate().for_each(
            |(line, grad_input)| {
                let (image, y) = (line / self.from.0, line % self.from.0);
                grad_input.fill(0.0);
                // Positions grow with the result row: those near `y` are neighbours.
                let first = rows.partition_point(|row| row.high < y);
                for (out_y, row) in
                    (first..).zip(&rows[first..]).take_while(|(_, row)| row.low <= y)
                {
                    let share = row.share_of(y);
                    let grad = &grad_output[(image * self.to.0 + out_y) * to..][..to];
                    let channels = self.channels;
                    isa.run(BackwardRow { channels, columns: &columns, grad, share, grad_input });
                }
            },
        );
    }

    fn check(&self, input: usize, output: usize) {
        let sizes = [self.from.0, self.from.1, self.to.0, self.to.1, self.channels];
        assert!(sizes.iter().all(|&size| size > 0), "a size is zero");
        assert_eq!(input, self.input_len(), "input does not match the resizing");
        assert_eq!(output, self.output_len(), "output does not match the resizing");
    }
}

impl Between {
    /// How much of the value at `position` is in this result.
    fn share_of(&self, position: usize) -> f32 {
        let low = if self.low == position { 1.0 - self.weight } else { 0.0 };
        low + if self.high == position { self.weight } else { 0.0 }
    }
}

struct ForwardRow<'a> {
    channels: usize,
    columns: &'a [Between],
    low: &'a [f32],
    high: &'a [f32],
    weight: f32,
    output: &'a mut [f32],
}

impl Kernel for ForwardRow<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd, const R: usize, const V: usize>(self, _: S) {
        let channels = self.channels;
        for (output, x) in self.output.chunks_exact_mut(channels).zip(self.columns) {
            let pixel =
                |row: &'_ [f32], x: usize| x * channels..(x * channels + channels).min(row.len());
            let top = (&self.low[pixel(self.low, x.low)], &self.low[pixel(self.low, x.high)]);
            let bottom =
                (&self.high[pixel(self.high, x.low)], &self.high[pixel(self.high, x.high)]);
            for (c, value) in output.iter_mut().enumerate() {
                let upper = top.0[c] * (1.0 - x.weight) + top.1[c] * x.weight;
                let lower = bottom.0[c] * (1.0 - x.weight) + bottom.1[c] * x.weight;
                *value = upper * (1.0 - self.weight) + lower * self.weight;
            }
        }
    }
}

struct BackwardRow<'a> {
    channels: usize,
    columns: &'a [Between],
    grad: &'a [f32],
    share: f32,
    grad_input: &'a mut [f32],
}

impl Kernel for BackwardRow<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd, const R: usize, const V: usize>(self, _: S) {
        for (grad, x) in self.grad.chunks_exact(self.channels).zip(self.columns) {
            for (position, weight) in [(x.low, 1.0 - x.weight), (x.high, x.weight)] {
                let to = &mut self.grad_input[position * self.channels..][..self.channels];
                for (to, grad) in to.iter_mut().zip(grad) {
                    *to += grad * (weight * self.share);
                }
            }
        }
    }
}
