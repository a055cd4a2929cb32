//! A convolution with its batch norm, on plain slices.

use burn::{backend::flex::FlexTensor, tensor::Tensor};
use conv_kernels::{
    Isa,
    batch_norm::{Activation, BatchNorm, Moments, Sums, backward, normalize},
    conv::{self, Algorithm, Conv, Epilogue, Filter, PackedWeights},
};

use super::{Packed, dims, memory, plain, sync, tensor, values};
use crate::collective::Share;

/// A convolution with its batch norm.
#[derive(Debug)]
pub(in crate::model) struct Unit {
    pub(in crate::model) filter: Filter,
    pub(in crate::model) packed: Packed,
    /// Mean and variance to normalize by, as evaluation does; none takes the batch's own.
    pub(in crate::model) running: Option<[Tensor<1>; 2]>,
    /// The share of the batch that is passed, for mean and variance over all ranks.
    pub(in crate::model) share: Share,
    pub(in crate::model) epsilon: f32,
    /// `[out, in, k, k]`
    pub(in crate::model) weight: Tensor<4>,
    /// `[out]`
    pub(in crate::model) gamma: Tensor<1>,
    /// `[out]`
    pub(in crate::model) beta: Tensor<1>,
}

/// The same in host memory, for images of one size.
#[derive(Debug, Clone)]
pub(super) struct Layer {
    conv: Conv,
    packed: Packed,
    running: Option<[FlexTensor; 2]>,
    share: Share,
    epsilon: f32,
    weight: FlexTensor,
    gamma: FlexTensor,
    beta: FlexTensor,
}

/// What follows the batch norm.
#[derive(Debug, Clone, Copy)]
pub(super) struct End<'a> {
    pub(super) shortcut: Option<&'a FlexTensor>,
    pub(super) relu: bool,
}

/// A layer with what its convolution gave.
#[derive(Debug, Clone)]
pub(super) struct Convolved {
    layer: Layer,
    pub(super) values: Vec<f32>,
    /// What it is normalized by.
    statistics: Moments,
}

impl Layer {
    /// `leaves` are the weights, gamma and beta; `input` is `[B, H, W, in]`.
    pub(super) fn new(unit: Unit, leaves: [FlexTensor; 3], input: &FlexTensor) -> Self {
        let Unit { filter, packed, running, share, epsilon, .. } = unit;
        let [batch, height, width, _] = dims(input);
        let conv = Conv::new(filter, batch, height, width).expect("padding fits any image");
        let running = running.map(|statistics| statistics.map(plain));
        let [weight, gamma, beta] = leaves;
        Self { conv, packed, running, share, epsilon, weight, gamma, beta }
    }

    fn norm<'a>(&'a self, mean: &'a [f32], variance: &'a [f32]) -> BatchNorm<'a> {
        let (gamma, beta) = (values(&self.gamma), values(&self.beta));
        BatchNorm { mean, variance, gamma, beta, epsilon: self.epsilon }
    }

    /// A tensor of the shape that comes out.
    fn output(&self, values: Vec<f32>) -> FlexTensor {
        let Self { conv, .. } = self;
        let channels = conv.filter().out_channels;
        tensor(values, [conv.batch(), conv.out_height(), conv.out_width(), channels])
    }

    /// The whole layer in one pass over memory, with the batch norm folded into the convolution;
    /// `None` if it normalizes by the batch.
    pub(super) fn predict(&self, input: &FlexTensor, end: End<'_>) -> Option<FlexTensor> {
        let [mean, variance] = self.running.as_ref()?;
        let mut output = memory::take(self.conv.output_len());
        let sources =
            [&self.weight, &self.gamma, &self.beta, mean, variance].map(FlexTensor::clone);
        self.packed.folded(self.conv.filter(), sources, self.epsilon, |folded| {
            let (bias, residual) = (Some(folded.bias.as_slice()), end.shortcut.map(values));
            let epilogue = Epilogue { bias, residual, relu: end.relu };
            conv::forward(&self.conv, &folded.weights, values(input), epilogue, &mut output);
        });
        Some(self.output(output))
    }

    pub(super) fn convolve(self, input: &[f32]) -> Convolved {
        let mut convolved = memory::take(self.conv.output_len());
        let (forward, filter) = (&self.packed.forward, self.conv.filter());
        let statistics = forward.with(PackedWeights::forward, filter, &self.weight, |weights| {
            if let Some(running) = &self.running {
                conv::forward(&self.conv, weights, input, Epilogue::default(), &mut convolved);
                let [mean, variance] = running.each_ref().map(|tensor| values(tensor).to_vec());
                return Moments { mean, variance, count: 0 };
            }
            self.packed.unfold();
            conv::forward_with_moments(&self.conv, weights, input, &mut convolved)
        });
        let statistics = match self.running {
            None => sync::moments(&self.share, statistics),
            Some(_) => statistics,
        };
        Convolved { layer: self, values: convolved, statistics }
    }
}

impl Convolved {
    /// Mean and variance of the batch on all ranks, if it was normalized by them.
    pub(super) fn moments(&self) -> Option<Moments> {
        self.layer.running.is_none().then(|| self.statistics.clone())
    }

    /// Normalizes, adds and rectifies.
    pub(super) fn finish(&self, end: End<'_>) -> FlexTensor {
        let mut output = memory::take(self.values.len());
        let norm = self.layer.norm(&self.statistics.mean, &self.statistics.variance);
        let shortcut = end.shortcut.map(values);
        normalize(Isa::detect(), &norm, &self.values, shortcut, end.relu, &mut output);
        self.layer.output(output)
    }

    /// Turns the gradient of the output into that of the convolution's output, which takes its
    /// place, and gives those of gamma and beta.
    ///
    /// With `shortcut`, `grad` becomes the gradient of what was added.
    pub(super) fn differentiate(
        self,
        activation: Activation<'_>,
        grad: &mut [f32],
        shortcut: bool,
    ) -> Differentiated {
        let Self { layer, mut values, statistics } = self;
        let norm = layer.norm(&statistics.mean, &statistics.variance);
        let isa = Isa::detect();
        let whole = |mine: &Sums| layer.running.is_none().then(|| sync::sums(&layer.share, mine));
        let (gamma, beta) = backward(isa, &norm, &mut values, activation, grad, shortcut, whole);
        Differentiated { layer, grad: values, gamma, beta }
    }
}

/// A layer with the gradient of its convolution's output.
pub(super) struct Differentiated {
    layer: Layer,
    pub(super) grad: Vec<f32>,
    pub(super) gamma: Vec<f32>,
    pub(super) beta: Vec<f32>,
}

impl Differentiated {
    /// The gradient of the input, plus `add`: what reaches the same input on another path.
    pub(super) fn to_input(&self, add: Option<&[f32]>) -> Vec<f32> {
        let Layer { conv, packed, weight, .. } = &self.layer;
        let mut input = memory::take(conv.input_len());
        let filter = conv.filter();
        packed.backward.with(PackedWeights::backward_data, filter, weight, |weights| {
            conv::backward_data(conv, weights, &self.grad, add, &mut input);
        });
        input
    }

    pub(super) fn to_weight(&self, input: &[f32]) -> FlexTensor {
        let Layer { conv, .. } = &self.layer;
        let filter = conv.filter();
        let mut weights = memory::take(filter.weights());
        let algorithm = Algorithm::fastest(filter);
        conv::backward_weights(Isa::detect(), conv, algorithm, input, &self.grad, &mut weights);
        tensor(weights, [filter.out_channels, filter.in_channels, filter.kernel, filter.kernel])
    }
}
