//! The backward pass: one sweep for the sums, one for the gradients.

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
    /// A ReLU, whose output tells where gradient passes.
    Relu(&'a [f32]),
}

/// Gradient of a batch norm in training, whose `norm.mean` and `norm.variance` are the batch's own.
///
/// Writes the gradient of the input, and of the residual where one was added; returns those of
/// `gamma` and `beta`.
pub fn backward(
    isa: Isa,
    norm: &BatchNorm<'_>,
    input: &[f32],
    activation: Activation<'_>,
    grad_output: &[f32],
    grad_input: &mut [f32],
    grad_residual: Option<&mut [f32]>,
) -> (Vec<f32>, Vec<f32>) {
    let (grad_gamma, grad_beta) = reduce(isa, norm, input, activation, grad_output);
    let pixels = (input.len() / norm.channels()) as f32;
    let (scale, inverse) = (norm.scales(), norm.inverse_deviations());
    let slope = |c: usize| -scale[c] * inverse[c] * grad_gamma[c] / pixels;
    let offset = |c: usize| -scale[c] * grad_beta[c] / pixels;
    let terms = Terms {
        slope: (0..norm.channels()).map(slope).collect(),
        offset: (0..norm.channels()).map(offset).collect(),
        mean: norm.mean,
        scale,
    };
    terms.spread(isa, input, activation, grad_output, grad_input, grad_residual);
    (grad_gamma, grad_beta)
}

/// Gradient of a batch norm in evaluation, whose `norm.mean` and `norm.variance` are constants.
pub fn backward_running(
    isa: Isa,
    norm: &BatchNorm<'_>,
    input: &[f32],
    activation: Activation<'_>,
    grad_output: &[f32],
    grad_input: &mut [f32],
    grad_residual: Option<&mut [f32]>,
) -> (Vec<f32>, Vec<f32>) {
    let gradients = reduce(isa, norm, input, activation, grad_output);
    let none = vec![0.0; norm.channels()];
    let terms = Terms { slope: none.clone(), offset: none, mean: norm.mean, scale: norm.scales() };
    terms.spread(isa, input, activation, grad_output, grad_input, grad_residual);
    gradients
}

/// Sums of the gradient, with and without the normalized input: gradients of `gamma` and `beta`.
fn reduce(
    isa: Isa,
    norm: &BatchNorm<'_>,
    input: &[f32],
    activation: Activation<'_>,
    grad_output: &[f32],
) -> (Vec<f32>, Vec<f32>) {
    let channels = norm.channels();
    let len = block_len(input.len(), channels);
    check(input.len(), activation, grad_output.len());
    let mut sums = scratch::floats(input.len().div_ceil(len) * 2 * channels);
    sums.par_chunks_exact_mut(2 * channels).enumerate().for_each(|(block, sums)| {
        let here = block * len..(block * len + len).min(input.len());
        isa.run(Reduce {
            input: &input[here.clone()],
            activation: activation.part(here.clone()),
            grad: &grad_output[here],
            mean: norm.mean,
            sums,
        });
    });
    let total = |at: usize| -> f64 {
        sums.chunks_exact(2 * channels).map(|block| f64::from(block[at])).sum()
    };
    let inverse = norm.inverse_deviations();
    let gamma = |c: usize| (total(channels + c) * f64::from(inverse[c])) as f32;
    ((0..channels).map(gamma).collect(), (0..channels).map(|c| total(c) as f32).collect())
}

fn check(len: usize, activation: Activation<'_>, grad_len: usize) {
    assert_eq!(len, grad_len, "gradient does not match the input");
    if let Activation::Relu(output) = activation {
        assert_eq!(len, output.len(), "output does not match the input");
    }
}

impl<'a> Activation<'a> {
    fn part(self, range: std::ops::Range<usize>) -> Self {
        match self {
            Self::None => Self::None,
            Self::Relu(output) => Self::Relu(&output[range]),
        }
    }

    /// One row of `channels`.
    #[inline(always)]
    fn row(self, row: usize, channels: usize) -> Self {
        match self {
            Self::None => Self::None,
            Self::Relu(output) => Self::Relu(&output[row * channels..][..channels]),
        }
    }

    /// The gradient that passes, from channel `c` of a row on.
    #[inline(always)]
    fn pass<S: Simd>(self, simd: S, grad: &[f32], c: usize) -> S::Vector {
        let grad = simd.load_at(grad, c);
        match self {
            Self::None => grad,
            Self::Relu(output) => simd.where_positive(simd.load_at(output, c), grad),
        }
    }
}

struct Reduce<'a> {
    input: &'a [f32],
    activation: Activation<'a>,
    grad: &'a [f32],
    mean: &'a [f32],
    sums: &'a mut [f32],
}

impl Kernel for Reduce<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd, const R: usize, const V: usize>(self, simd: S) {
        let channels = self.mean.len();
        self.sums.fill(0.0);
        let (plain, weighted) = self.sums.split_at_mut(channels);
        let weighted = &mut weighted[..channels];
        for (row, input) in self.input.chunks_exact(channels).enumerate() {
            let activation = self.activation.row(row, channels);
            let grad = &self.grad[row * channels..][..channels];
            for c in (0..channels).step_by(S::LANES) {
                let grad = activation.pass(simd, grad, c);
                let centred = simd.sub(simd.load_at(input, c), simd.load_at(self.mean, c));
                let sum = simd.add(simd.load_at(plain, c), grad);
                let product = simd.mul_add(grad, centred, simd.load_at(weighted, c));
                simd.store_at(plain, c, sum);
                simd.store_at(weighted, c, product);
            }
        }
    }
}

/// Gradient of the input as a function of each pixel: `scale·g + slope·(x − mean) + offset`.
struct Terms<'a> {
    scale: Vec<f32>,
    slope: Vec<f32>,
    offset: Vec<f32>,
    mean: &'a [f32],
}

impl Terms<'_> {
    fn spread(
        &self,
        isa: Isa,
        input: &[f32],
        activation: Activation<'_>,
        grad: &[f32],
        grad_input: &mut [f32],
        grad_residual: Option<&mut [f32]>,
    ) {
        assert_eq!(input.len(), grad_input.len(), "result does not match the input");
        let len = block_len(input.len(), self.mean.len());
        let run = |block: usize, grad_input: &mut [f32], grad_residual: Option<&mut [f32]>| {
            let here = block * len..block * len + grad_input.len();
            let (input, grad) = (&input[here.clone()], &grad[here.clone()]);
            let activation = activation.part(here);
            isa.run(Spread { terms: self, input, activation, grad, grad_input, grad_residual });
        };
        let blocks = grad_input.par_chunks_mut(len).enumerate();
        match grad_residual {
            None => blocks.for_each(|(block, grad_input)| run(block, grad_input, None)),
            Some(residual) => {
                assert_eq!(input.len(), residual.len(), "residual does not match the input");
                blocks.zip(residual.par_chunks_mut(len)).for_each(
                    |((block, grad_input), residual)| run(block, grad_input, Some(residual)),
                );
            }
        }
    }
}

struct Spread<'a> {
    terms: &'a Terms<'a>,
    input: &'a [f32],
    activation: Activation<'a>,
    grad: &'a [f32],
    grad_input: &'a mut [f32],
    grad_residual: Option<&'a mut [f32]>,
}

impl Kernel for Spread<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd, const R: usize, const V: usize>(mut self, simd: S) {
        let mean = self.terms.mean;
        let channels = mean.len();
        let (scale, slope) = (&self.terms.scale[..channels], &self.terms.slope[..channels]);
        let offset = &self.terms.offset[..channels];
        for (row, input) in self.input.chunks_exact(channels).enumerate() {
            let here = row * channels..(row + 1) * channels;
            let activation = self.activation.row(row, channels);
            let grad = &self.grad[here.clone()][..channels];
            let grad_input = &mut self.grad_input[here.clone()][..channels];
            let mut residual =
                self.grad_residual.as_deref_mut().map(|values| &mut values[here][..channels]);
            for c in (0..channels).step_by(S::LANES) {
                let grad = activation.pass(simd, grad, c);
                let centred = simd.sub(simd.load_at(input, c), simd.load_at(mean, c));
                let rest = simd.mul_add(centred, simd.load_at(slope, c), simd.load_at(offset, c));
                simd.store_at(grad_input, c, simd.mul_add(grad, simd.load_at(scale, c), rest));
                if let Some(residual) = residual.as_deref_mut() {
                    simd.store_at(residual, c, grad);
                }
            }
        }
    }
}
