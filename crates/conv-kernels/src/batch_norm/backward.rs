//! The backward pass: sums first, then gradients, which overwrite the saved input.

use rayon::prelude::*;

use super::{BatchNorm, block_len};
use crate::{
    scratch,
    simd::{Isa, Kernel, Simd},
};

/// What followed the batch norm.
#[derive(Debug, Clone, Copy)]
pub enum Activation<'a> {
    /// Nothing, or a residual alone.
    None,
    /// A ReLU of the normalized values, which are computed again to see where gradient passes.
    Relu,
    /// A ReLU after a residual was added; its output tells where gradient passes.
    ReluOf(&'a [f32]),
}

/// What the gradient at each pixel needs to know of all pixels of the batch.
#[derive(Debug, Clone, PartialEq)]
pub struct Sums {
    /// Sum of the gradient times the normalized input: the gradient of `gamma`.
    pub gamma: Vec<f32>,
    /// Sum of the gradient: the gradient of `beta`.
    pub beta: Vec<f32>,
    /// Pixels they were taken from.
    pub pixels: usize,
}

/// Gradient of a batch norm of a batch, or of one part of it.
///
/// `values` are the input, and become its gradient. `grad` is the gradient of the output, and
/// becomes that of the residual if there was one; else it stays. Returns the gradients of
/// `gamma` and `beta`, or the part's share of them.
///
/// `whole` is given the part's sums and gives those of the whole batch, of which `norm.mean` and
/// `norm.variance` are; none if these are constants, as in evaluation.
pub fn backward(
    isa: Isa,
    norm: &BatchNorm<'_>,
    values: &mut [f32],
    activation: Activation<'_>,
    grad: &mut [f32],
    residual: bool,
    whole: impl FnOnce(&Sums) -> Option<Sums>,
) -> (Vec<f32>, Vec<f32>) {
    let gate = Gate::new(norm, activation);
    let (gamma, beta) = gate.reduce(isa, values, grad);
    let part = Sums { gamma, beta, pixels: values.len() / norm.channels() };
    let (inverse, whole) = (norm.inverse_deviations(), whole(&part));
    let terms = |c: usize| match &whole {
        None => (0.0, 0.0),
        Some(Sums { gamma, beta, pixels }) => {
            let (scale, pixels) = (gate.scale[c], *pixels as f32);
            (-scale * inverse[c] * gamma[c] / pixels, -scale * beta[c] / pixels)
        }
    };
    let (slope, offset): (Vec<f32>, Vec<f32>) = (0..norm.channels()).map(terms).unzip();
    let len = block_len(values.len(), norm.channels());
    let blocks = values.par_chunks_mut(len).zip(grad.par_chunks_mut(len)).enumerate();
    blocks.for_each(|(block, (values, grad))| {
        let (gate, slope, offset) = (&gate, &slope, &offset);
        isa.run(Spread { gate, start: block * len, slope, offset, values, grad, residual });
    });
    (part.gamma, part.beta)
}

/// A batch norm and its activation, which decides where gradient passes.
struct Gate<'a> {
    norm: &'a BatchNorm<'a>,
    activation: Activation<'a>,
    /// Of the normalized values, `scale · x + shift`.
    scale: Vec<f32>,
    shift: Vec<f32>,
}

impl<'a> Gate<'a> {
    fn new(norm: &'a BatchNorm<'a>, activation: Activation<'a>) -> Self {
        Self { norm, activation, scale: norm.scales(), shift: norm.shifts() }
    }

    /// Sums of the gradient, with and without the normalized input: gradients of `gamma` and
    /// `beta`.
    fn reduce(&self, isa: Isa, values: &[f32], grad: &[f32]) -> (Vec<f32>, Vec<f32>) {
        let channels = self.norm.channels();
        let len = block_len(values.len(), channels);
        assert_eq!(values.len(), grad.len(), "gradient does not match the input");
        if let Activation::ReluOf(output) = self.activation {
            assert_eq!(values.len(), output.len(), "output does not match the input");
        }
        let mut sums = scratch::floats(values.len().div_ceil(len) * 2 * channels);
        sums.par_chunks_exact_mut(2 * channels).enumerate().for_each(|(block, sums)| {
            let here = block * len..(block * len + len).min(values.len());
            let (values, grad) = (&values[here.clone()], &grad[here.clone()]);
            isa.run(Reduce { gate: self, start: here.start, values, grad, sums });
        });
        let total = |at: usize| -> f64 {
            sums.chunks_exact(2 * channels).map(|block| f64::from(block[at])).sum()
        };
        let inverse = self.norm.inverse_deviations();
        let gamma = |c: usize| (total(channels + c) * f64::from(inverse[c])) as f32;
        ((0..channels).map(gamma).collect(), (0..channels).map(|c| total(c) as f32).collect())
    }

    /// The gradient that passes at channels `c` of the row that starts at `at`.
    #[inline(always)]
    fn pass<S: Simd>(
        &self,
        simd: S,
        at: usize,
        c: usize,
        value: S::Vector,
        grad: S::Vector,
    ) -> S::Vector {
        match self.activation {
            Activation::None => grad,
            Activation::Relu => {
                let (scale, shift) = (simd.load_at(&self.scale, c), simd.load_at(&self.shift, c));
                simd.where_positive(simd.mul_add(value, scale, shift), grad)
            }
            Activation::ReluOf(output) => {
                let row = &output[at..][..self.scale.len()];
                simd.where_positive(simd.load_at(row, c), grad)
            }
        }
    }
}

/// Sums a block's gradient, plain and times `x − mean`.
struct Reduce<'a> {
    gate: &'a Gate<'a>,
    /// Index of the first value.
    start: usize,
    values: &'a [f32],
    grad: &'a [f32],
    sums: &'a mut [f32],
}

impl Kernel for Reduce<'_> {
    #[inline(always)]
    fn run<S: Simd, const R: usize, const V: usize>(self, simd: S) {
        let mean = self.gate.norm.mean;
        let channels = mean.len();
        self.sums.fill(0.0);
        let (plain, weighted) = self.sums.split_at_mut(channels);
        let weighted = &mut weighted[..channels];
        for (row, values) in self.values.chunks_exact(channels).enumerate() {
            let at = row * channels;
            let grad = &self.grad[at..][..channels];
            for c in (0..channels).step_by(S::LANES) {
                let (value, grad) = (simd.load_at(values, c), simd.load_at(grad, c));
                let grad = self.gate.pass(simd, self.start + at, c, value, grad);
                let centred = simd.sub(value, simd.load_at(mean, c));
                let sum = simd.add(simd.load_at(plain, c), grad);
                let product = simd.mul_add(grad, centred, simd.load_at(weighted, c));
                simd.store_at(plain, c, sum);
                simd.store_at(weighted, c, product);
            }
        }
    }
}

/// Writes the gradient of the input: what passes, times the scale, plus
/// `slope·(x − mean) + offset`.
struct Spread<'a> {
    gate: &'a Gate<'a>,
    /// Index of the first value.
    start: usize,
    slope: &'a [f32],
    offset: &'a [f32],
    values: &'a mut [f32],
    grad: &'a mut [f32],
    residual: bool,
}

impl Kernel for Spread<'_> {
    #[inline(always)]
    fn run<S: Simd, const R: usize, const V: usize>(self, simd: S) {
        let mean = self.gate.norm.mean;
        let channels = mean.len();
        let [scale, slope, offset] =
            [&self.gate.scale, self.slope, self.offset].map(|values| &values[..channels]);
        for (row, values) in self.values.chunks_exact_mut(channels).enumerate() {
            let at = row * channels;
            let grad = &mut self.grad[at..][..channels];
            for c in (0..channels).step_by(S::LANES) {
                let value = simd.load_at(values, c);
                let passed = self.gate.pass(simd, self.start + at, c, value, simd.load_at(grad, c));
                let centred = simd.sub(value, simd.load_at(mean, c));
                let rest = simd.mul_add(centred, simd.load_at(slope, c), simd.load_at(offset, c));
                simd.store_at(values, c, simd.mul_add(passed, simd.load_at(scale, c), rest));
                if self.residual {
                    simd.store_at(grad, c, passed);
                }
            }
        }
    }
}
