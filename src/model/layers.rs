//! The two layers that residual networks are made of, named as torchvision names them.

use burn::{
    module::{Module, Param, RunningState},
    tensor::{
        Device, Tensor, TensorData,
        module::{batch_norm, batch_norm_train, conv2d, max_pool2d},
        ops::{ConvOptions, MaxPoolOptions},
    },
};

/// How far each new batch moves the running statistics.
const MOMENTUM: f64 = 0.1;
/// Keeps the division by a channel's spread finite.
const EPSILON: f64 = 1e-5;

/// How a forward pass treats batch norm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pass {
    /// Normalizes by the batch, and moves the running statistics towards it.
    Train,
    /// Normalizes by the batch, and leaves the running statistics alone.
    TrainOnly,
    /// Normalizes by the batch, and averages it into the statistics of the batches `seen` before.
    Calibrate {
        /// How many batches the statistics already stand for.
        seen: usize,
    },
    /// Normalizes by the running statistics.
    Evaluate,
}

/// A convolution without bias, padded so that stride alone decides the output size.
#[derive(Module, Debug)]
pub struct Conv {
    /// `[out, in, k, k]`
    pub weight: Param<Tensor<4>>,
    #[module(skip)]
    stride: usize,
    #[module(skip)]
    dilation: usize,
}

impl Conv {
    /// A `kernel × kernel` convolution with weights yet to be drawn or loaded.
    pub fn new(
        [input, output]: [usize; 2],
        kernel: usize,
        stride: usize,
        dilation: usize,
        device: &Device,
    ) -> Self {
        let weight = Param::from_tensor(Tensor::zeros([output, input, kernel, kernel], device));
        Self { weight, stride, dilation }
    }

    /// Shapes: `[B, in, H, W]` → `[B, out, ⌈H/stride⌉, ⌈W/stride⌉]`.
    pub fn forward(&self, x: Tensor<4>) -> Tensor<4> {
        let [_, _, kernel, _] = self.weight.dims();
        let padding = self.dilation * (kernel / 2);
        let options = ConvOptions::new([self.stride; 2], [padding; 2], [self.dilation; 2], 1);
        conv2d(x, self.weight.val(), None, options)
    }
}

/// Batch normalization with running statistics, as PyTorch's.
#[derive(Module, Debug)]
pub struct BatchNorm {
    /// `[C]`
    pub weight: Param<Tensor<1>>,
    /// `[C]`
    pub bias: Param<Tensor<1>>,
    /// `[C]`
    pub running_mean: RunningState<Tensor<1>>,
    /// `[C]`, of the unbiased variance.
    pub running_var: RunningState<Tensor<1>>,
}

impl BatchNorm {
    /// The identity, until it has seen data.
    pub fn new(channels: usize, device: &Device) -> Self {
        Self {
            weight: Param::from_tensor(Tensor::ones([channels], device)),
            bias: Param::from_tensor(Tensor::zeros([channels], device)),
            running_mean: RunningState::new(Tensor::zeros([channels], device)),
            running_var: RunningState::new(Tensor::ones([channels], device)),
        }
    }

    /// Shapes: `[B, C, H, W]` → same.
    pub fn forward(&self, x: Tensor<4>, pass: Pass) -> Tensor<4> {
        let (weight, bias) = (self.weight.val(), self.bias.val());
        if pass == Pass::Evaluate {
            let (mean, var) = (self.running_mean.value(), self.running_var.value());
            return batch_norm(x, weight, bias, mean, var, EPSILON);
        }
        let [batch, _, height, width] = x.dims();
        let values = (batch * height * width) as f64;
        assert!(values > 1.0, "Config::check refuses maps of one cell");

        let normalized = batch_norm_train(x, weight, bias, EPSILON);
        let momentum = match pass {
            Pass::Train => MOMENTUM,
            Pass::Calibrate { seen } => 1.0 / (seen + 1) as f64,
            Pass::TrainOnly | Pass::Evaluate => return normalized.output,
        };
        // Normalization uses the biased variance, the running statistics the unbiased one.
        let unbiased = normalized.variance * (values / (values - 1.0));
        move_towards(&self.running_mean, normalized.mean, momentum);
        move_towards(&self.running_var, unbiased, momentum);
        normalized.output
    }
}

/// Largest value of each 3×3 window, every second row and column.
pub fn max_pool(x: Tensor<4>) -> Tensor<4> {
    max_pool2d(x, MaxPoolOptions::new([3; 2]).with_stride([2; 2]).with_padding([1; 2]))
}

/// A tensor of `data`, which must have as many values as `shape` says.
pub fn tensor<const D: usize>(data: Vec<f32>, shape: [usize; D], device: &Device) -> Tensor<D> {
    Tensor::from_data(TensorData::new(data, shape), device)
}

/// The values of a tensor, in host memory.
pub fn values<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    tensor.into_data().try_into_vec().expect("every tensor of the model holds f32")
}

fn move_towards(running: &RunningState<Tensor<1>>, batch: Tensor<1>, momentum: f64) {
    let kept = running.value() * (1.0 - momentum);
    running.update((kept + batch.detach() * momentum).detach());
    // An update is only pending until it is asked for.
    running.value_sync();
}
