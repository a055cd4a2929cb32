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
    /// Normalizes by the batch, and moves the running statistics of these images towards it.
    Train(Branch),
    /// Normalizes by the batch, and leaves the running statistics alone.
    TrainOnly,
    /// Normalizes by the batch, and averages it into the statistics of the batches `seen` before.
    Calibrate {
        /// How many batches the statistics already stand for.
        seen: usize,
    },
    /// Normalizes by the running statistics of these images.
    Evaluate(Branch),
}

/// Which images a pass sees; they may have statistics of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Branch {
    /// Whole images, seen by the localizer.
    Whole,
    /// What masks show of them, seen by the classifier.
    Foreground,
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
    /// `[C]`, of masked images, if they are kept apart.
    pub foreground_mean: Option<RunningState<Tensor<1>>>,
    /// `[C]`, likewise.
    pub foreground_var: Option<RunningState<Tensor<1>>>,
}

impl BatchNorm {
    /// The identity, until it has seen data.
    ///
    /// With `separate`, masked images have running statistics of their own.
    pub fn new(channels: usize, separate: bool, device: &Device) -> Self {
        let zeros = || RunningState::new(Tensor::zeros([channels], device));
        let ones = || RunningState::new(Tensor::ones([channels], device));
        Self {
            weight: Param::from_tensor(Tensor::ones([channels], device)),
            bias: Param::from_tensor(Tensor::zeros([channels], device)),
            running_mean: zeros(),
            running_var: ones(),
            foreground_mean: separate.then(zeros),
            foreground_var: separate.then(ones),
        }
    }

    /// Shapes: `[B, C, H, W]` → same.
    pub fn forward(&self, x: Tensor<4>, pass: Pass) -> Tensor<4> {
        let (weight, bias) = (self.weight.val(), self.bias.val());
        if let Pass::Evaluate(branch) = pass {
            let (mean, var) = self.running(branch);
            return batch_norm(x, weight, bias, mean.value(), var.value(), EPSILON);
        }
        let [batch, _, height, width] = x.dims();
        let values = (batch * height * width) as f64;
        assert!(values > 1.0, "Config::check refuses maps of one cell");

        let normalized = batch_norm_train(x, weight, bias, EPSILON);
        let (branch, momentum) = match pass {
            Pass::Train(branch) => (branch, MOMENTUM),
            Pass::Calibrate { seen } => (Branch::Whole, 1.0 / (seen + 1) as f64),
            Pass::TrainOnly | Pass::Evaluate(_) => return normalized.output,
        };
        // Normalization uses the biased variance, the running statistics the unbiased one.
        let unbiased = normalized.variance * (values / (values - 1.0));
        let (mean, var) = self.running(branch);
        move_towards(mean, normalized.mean, momentum);
        move_towards(var, unbiased, momentum);
        normalized.output
    }

    fn running(&self, branch: Branch) -> (&RunningState<Tensor<1>>, &RunningState<Tensor<1>>) {
        match (branch, &self.foreground_mean, &self.foreground_var) {
            (Branch::Foreground, Some(mean), Some(var)) => (mean, var),
            _ => (&self.running_mean, &self.running_var),
        }
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
