//! The two layers that residual networks are made of, named as torchvision names them.
//!
//! Activations are `[B, H, W, C]`, so that a pixel's channels are neighbours in memory.

use burn::{
    module::{Module, Param, RunningState},
    tensor::{Device, Tensor, TensorData},
};
use conv_kernels::{batch_norm::Moments, conv::Filter};

pub use super::fused::{After, Shortcut};
use super::{
    composed,
    fused::{self, FusedUnit, Packed},
    pass::{Branch, Pass},
};
use crate::config::Kernels;

/// Weight of a new batch in the running statistics.
const MOMENTUM: f64 = 0.1;
/// Keeps the division by a channel's spread finite.
pub(crate) const EPSILON: f64 = 1e-5;

/// A convolution without bias, padded so that stride alone decides the output size.
#[derive(Module, Debug)]
pub struct Conv {
    /// `[out, in, k, k]`
    pub weight: Param<Tensor<4>>,
    #[module(skip)]
    stride: usize,
    #[module(skip)]
    dilation: usize,
    #[module(skip)]
    kernels: Kernels,
    #[module(skip)]
    packed: Packed,
}

/// A convolution and its batch norm.
pub type Unit<'a> = (&'a Conv, &'a BatchNorm);

/// Up to three units, each of which convolves, normalizes and rectifies; `after` is for the last.
///
/// Shapes: `[B, H, W, in]` → `[B, h, w, out]`.
pub fn chain(units: &[Unit<'_>], x: Tensor<4>, after: After, pass: Pass) -> Tensor<4> {
    let fused = units.iter().all(|(conv, _)| conv.kernels == Kernels::Fused);
    if fused && fused::reaches(&x) {
        chain_fused(units, x, after, pass)
    } else {
        assert!(
            pass.share().ranks.is_alone(),
            "`train::fit` refuses these kernels on several ranks"
        );
        chain_composed(units, x, after, pass)
    }
}

fn chain_fused(units: &[Unit<'_>], x: Tensor<4>, after: After, pass: Pass) -> Tensor<4> {
    let device = x.device().inner();
    let fused = units.iter().map(|(conv, norm)| FusedUnit {
        filter: conv.filter(),
        packed: conv.packed.clone(),
        running: match pass {
            Pass::Evaluate(branch) => Some(norm.statistics(branch).map(Tensor::inner)),
            _ => None,
        },
        share: pass.share(),
        epsilon: EPSILON as f32,
        weight: conv.weight.val(),
        gamma: norm.weight.val(),
        beta: norm.bias.val(),
    });
    let (output, moments) = fused::chain(fused.collect(), x, after);
    for ((_, norm), moments) in units.iter().zip(moments) {
        if let Some(Moments { mean, variance, count }) = moments {
            let channels = [mean.len()];
            let moments = [mean, variance].map(|values| tensor(values, channels, &device));
            norm.learn(moments, count, pass);
        }
    }
    output
}

fn chain_composed(units: &[Unit<'_>], x: Tensor<4>, after: After, pass: Pass) -> Tensor<4> {
    let shortcut = match after.shortcut {
        Shortcut::None => None,
        Shortcut::Input => Some(x.clone()),
        Shortcut::Of(shortcut) => Some(shortcut),
    };
    let (last, before) = units.split_last().expect("a chain has at least one unit");
    let within = before
        .iter()
        .fold(x, |x, (conv, norm)| composed::finish(conv.normalized(norm, x, pass), None, true));
    let (conv, norm) = last;
    composed::finish(conv.normalized(norm, within, pass), shortcut, after.relu)
}

impl Conv {
    /// A `kernel × kernel` convolution with weights yet to be drawn or loaded.
    pub fn new(
        [input, output]: [usize; 2],
        kernel: usize,
        [stride, dilation]: [usize; 2],
        kernels: Kernels,
        device: &Device,
    ) -> Self {
        // `Tensor::zeros` would write them; these pages stay untouched until weights are known.
        let zeros = vec![0.0; output * input * kernel * kernel];
        let weight = Param::from_tensor(tensor(zeros, [output, input, kernel, kernel], device));
        Self { weight, stride, dilation, kernels, packed: Packed::default() }
    }

    /// Convolves and normalizes by operations that every device has.
    fn normalized(&self, norm: &BatchNorm, x: Tensor<4>, pass: Pass) -> Tensor<4> {
        let x = composed::conv(x, self.weight.val(), self.stride, self.dilation);
        let (gamma, beta) = (norm.weight.val(), norm.bias.val());
        if let Pass::Evaluate(branch) = pass {
            return composed::norm_by(x, gamma, beta, norm.statistics(branch), EPSILON);
        }
        let [batch, height, width, _] = x.dims();
        let (normalized, moments) = composed::norm_by_batch(x, gamma, beta, EPSILON);
        norm.learn(moments.map(Tensor::inner), batch * height * width, pass);
        normalized
    }

    fn filter(&self) -> Filter {
        let [output, input, kernel, _] = self.weight.dims();
        Filter::new(input, output, kernel, self.stride).dilated(self.dilation)
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

    /// Updates the running statistics by those of a batch with `values` values per channel, as the
    /// kind of pass requires.
    fn learn(&self, [mean, variance]: [Tensor<1>; 2], values: usize, pass: Pass) {
        assert!(values > 1, "Config::check refuses maps of one cell");
        let (branch, momentum) = match pass {
            Pass::Train(branch, _) => (branch, MOMENTUM),
            Pass::Calibrate { seen, .. } => (Branch::Whole, 1.0 / (seen + 1) as f64),
            Pass::TrainOnly(_) | Pass::Evaluate(_) => return,
        };
        // Normalization uses the biased variance, the running statistics the unbiased one.
        let unbiased = variance * (values as f64 / (values - 1) as f64);
        for (running, batch) in self.running(branch).into_iter().zip([mean, unbiased]) {
            let kept = running.value() * (1.0 - momentum);
            running.update((kept + batch.detach() * momentum).detach());
            // An update is pending until the value is read.
            running.value_sync();
        }
    }

    /// Mean and variance that evaluation normalizes by.
    pub fn statistics(&self, branch: Branch) -> [Tensor<1>; 2] {
        self.running(branch).map(RunningState::value)
    }

    fn running(&self, branch: Branch) -> [&RunningState<Tensor<1>>; 2] {
        match (branch, &self.foreground_mean, &self.foreground_var) {
            (Branch::Foreground, Some(mean), Some(var)) => [mean, var],
            _ => [&self.running_mean, &self.running_var],
        }
    }
}

/// Largest value of each 3×3 window, every second row and column; `[B, H, W, C]`.
pub fn max_pool(x: Tensor<4>) -> Tensor<4> {
    if fused::reaches(&x) { fused::max_pool(x) } else { composed::max_pool(x) }
}

/// A tensor of `data`, which must have as many values as `shape` says.
pub fn tensor<const D: usize>(data: Vec<f32>, shape: [usize; D], device: &Device) -> Tensor<D> {
    Tensor::from_data(TensorData::new(data, shape), device)
}

/// The values of a tensor, in host memory.
pub fn values<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    tensor.into_data().try_into_vec().expect("every tensor of the model holds f32")
}

/// Gives memory that is not used any more to the layers, which need some soon.
pub fn reuse(values: Vec<f32>) {
    fused::give(values);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        collective::Share,
        device,
        rng::{Purpose, Stream},
    };

    const BATCH: Share = Share::whole(2);

    /// Units in a row, and what is sent through them.
    struct Case {
        units: Vec<(Conv, BatchNorm)>,
        x: Tensor<4>,
        after: After,
        pass: Pass,
    }

    /// Output, gradients of the inputs and weights, running statistics afterwards.
    type Outcome = Vec<Vec<f32>>;

    impl Case {
        /// One unit, a shortcut of its own and a ReLU.
        fn new(channels: [usize; 2], kernel: usize, stride: usize, dilation: usize) -> Self {
            Self::chain(&[(channels, kernel, stride, dilation)])
        }

        fn chain(shapes: &[([usize; 2], usize, usize, usize)]) -> Self {
            let device = device::cpu().autodiff();
            let kernel = shapes[0].1 as u64;
            let mut draw = Drawing(Stream::new(3, Purpose::Synthetic, 0, kernel));
            let mut size = [9_usize, 11];
            let mut units = Vec::new();
            for &([input, output], kernel, stride, dilation) in shapes {
                let (channels, steps) = ([input, output], [stride, dilation]);
                let mut conv = Conv::new(channels, kernel, steps, Kernels::Fused, &device);
                let weight = draw.tensor([output, input, kernel, kernel], &device);
                conv.weight = Param::from_tensor(weight);
                let mut norm = BatchNorm::new(output, false, &device);
                norm.weight = Param::from_tensor(draw.tensor([output], &device) + 1.0);
                norm.bias = Param::from_tensor(draw.tensor([output], &device));
                size = size.map(|side| side.div_ceil(stride));
                units.push((conv, norm));
            }
            let [input, output] = [shapes[0].0[0], shapes[shapes.len() - 1].0[1]];
            let x = draw.tensor([2, 9, 11, input], &device).require_grad();
            let shortcut = draw.tensor([2, size[0], size[1], output], &device).require_grad();
            let after = After { shortcut: Shortcut::Of(shortcut), relu: true };
            Self { units, x, after, pass: Pass::Train(Branch::Whole, BATCH) }
        }

        fn outcome(&self, way: Way) -> Outcome {
            let Self { units, x, after, pass } = self;
            // Clones share their running statistics, so every outcome starts by resetting them.
            for (_, norm) in units {
                for (running, value) in [(&norm.running_mean, 0.0), (&norm.running_var, 1.0)] {
                    running.update(running.value().full_like(value));
                    running.value_sync();
                }
            }
            let pairs: Vec<Unit<'_>> = units.iter().map(|(conv, norm)| (conv, norm)).collect();
            let output = way(&pairs, x.clone(), after.clone(), *pass);
            // A loss that weighs every value differently.
            let [batch, height, width, channels] = output.dims();
            let count = batch * height * width * channels;
            let weights = (0..count).map(|i| (i as f32 * 0.37).sin()).collect();
            let weights = tensor(weights, output.dims(), &output.device().inner()).autodiff();
            let mut gradients = (output.clone() * weights).sum().backward();
            let mut found =
                vec![values(output.inner()), values(x.grad_remove(&mut gradients).unwrap())];
            if let Shortcut::Of(shortcut) = &after.shortcut {
                found.push(values(shortcut.grad_remove(&mut gradients).unwrap()));
            }
            for (conv, norm) in units {
                found.push(values(conv.weight.val().grad_remove(&mut gradients).unwrap()));
                found.push(values(norm.weight.val().grad_remove(&mut gradients).unwrap()));
                found.push(values(norm.bias.val().grad_remove(&mut gradients).unwrap()));
                found.extend(norm.statistics(Branch::Whole).map(|one| values(one.inner())));
            }
            found
        }

        fn assert_both_ways_agree(&self, name: &str) {
            let (fused, composed) = (self.outcome(chain_fused), self.outcome(chain_composed));
            assert_eq!(fused.len(), composed.len());
            for (part, (fused, composed)) in fused.iter().zip(&composed).enumerate() {
                assert_eq!(fused.len(), composed.len());
                let scale = composed.iter().fold(1.0_f32, |scale, value| scale.max(value.abs()));
                for (a, b) in fused.iter().zip(composed) {
                    assert!((a - b).abs() <= 2e-5 * scale, "{name}, part {part}: {a} {b}");
                }
            }
        }
    }

    type Way = fn(&[Unit<'_>], Tensor<4>, After, Pass) -> Tensor<4>;

    struct Drawing(Stream);

    impl Drawing {
        fn tensor<const D: usize>(&mut self, shape: [usize; D], device: &Device) -> Tensor<D> {
            let count = shape.iter().product();
            tensor((0..count).map(|_| self.0.between(-0.5, 0.5) as f32).collect(), shape, device)
        }
    }

    #[test]
    fn one_operation_equals_its_parts_forward_and_backward() {
        for (channels, kernel, stride, dilation) in [
            ([3, 8], 7, 2, 1),
            ([3, 16], 3, 2, 1),
            ([16, 32], 3, 1, 1),
            ([8, 24], 3, 1, 2),
            ([5, 7], 3, 1, 4),
            ([16, 16], 3, 2, 1),
            ([24, 8], 1, 1, 1),
            ([16, 32], 1, 2, 1),
        ] {
            let case = Case::new(channels, kernel, stride, dilation);
            case.assert_both_ways_agree(&format!("{channels:?} {kernel} {stride} {dilation}"));
        }
    }

    #[test]
    fn chains_equal_their_parts_with_every_shortcut() {
        let basic = [([16, 16], 3, 1, 1), ([16, 16], 3, 1, 1)];
        let bottleneck = [([16, 8], 1, 1, 1), ([8, 8], 3, 1, 2), ([8, 16], 1, 1, 1)];
        let strided = [([16, 8], 1, 1, 1), ([8, 8], 3, 2, 1), ([8, 32], 1, 1, 1)];
        for (shapes, keeps_size) in [(&basic[..], true), (&bottleneck, true), (&strided, false)] {
            for relu in [false, true] {
                let mut case = Case::chain(shapes);
                case.after.relu = relu;
                case.assert_both_ways_agree(&format!("{shapes:?}, relu {relu}"));
                case.after.shortcut = Shortcut::None;
                case.assert_both_ways_agree(&format!("{shapes:?}, relu {relu}, no shortcut"));
                if keeps_size {
                    case.after.shortcut = Shortcut::Input;
                    case.assert_both_ways_agree(&format!("{shapes:?}, relu {relu}, residual"));
                }
            }
        }
    }

    #[test]
    fn every_pass_and_every_ending_is_the_same_in_both_ways() {
        let passes = [
            Pass::TrainOnly(BATCH),
            Pass::Calibrate { seen: 3, share: BATCH },
            Pass::Evaluate(Branch::Whole),
        ];
        for pass in passes {
            for relu in [false, true] {
                let mut case = Case { pass, ..Case::new([16, 16], 3, 1, 1) };
                case.after.relu = relu;
                case.assert_both_ways_agree(&format!("{pass:?}, relu {relu}"));
                case.after.shortcut = Shortcut::None;
                case.assert_both_ways_agree(&format!("{pass:?}, relu {relu}, no shortcut"));
            }
        }
    }

    #[test]
    fn prediction_folds_batch_norm_into_the_convolution() {
        let pass = Pass::Evaluate(Branch::Whole);
        for relu in [false, true] {
            let mut case = Case::chain(&[([16, 32], 3, 1, 1), ([32, 16], 1, 1, 1)]);
            for round in 0..2 {
                let frozen: Vec<(Conv, BatchNorm)> = case
                    .units
                    .iter()
                    .map(|(conv, norm)| (conv.clone().valid(), norm.clone().valid()))
                    .collect();
                let pairs: Vec<Unit<'_>> = frozen.iter().map(|(conv, norm)| (conv, norm)).collect();
                let predicted = |way: Way| {
                    let after = After { shortcut: Shortcut::Input, relu };
                    values(way(&pairs, case.x.clone().inner(), after, pass))
                };
                let (fused, composed) = (predicted(chain_fused), predicted(chain_composed));
                for (a, b) in fused.iter().zip(&composed) {
                    assert!((a - b).abs() <= 2e-5, "relu {relu}, round {round}: {a} {b}");
                }
                // Statistics that moved are noticed.
                let norm = &mut case.units[0].1;
                norm.running_var = RunningState::new(norm.running_var.value().full_like(2.5));
            }
        }
    }

    #[test]
    fn new_weights_are_noticed() {
        let mut case = Case::new([16, 16], 3, 1, 1);
        case.assert_both_ways_agree("first");
        let conv = &mut case.units[0].0;
        let changed = conv.weight.val().inner() * 2.0 + 0.1;
        conv.weight = Param::from_tensor(changed.autodiff());
        case.assert_both_ways_agree("second");
    }

    #[test]
    fn both_ways_of_pooling_agree() {
        let device = device::cpu().autodiff();
        let mut draw = Drawing(Stream::new(4, Purpose::Synthetic, 0, 0));
        for (height, width) in [(9, 11), (8, 6), (1, 3)] {
            let x = draw.tensor([2, height, width, 5], &device).require_grad();
            let through = |pooled: Tensor<4>| {
                let mut gradients = (pooled.clone() * pooled.clone()).sum().backward();
                [values(pooled.inner()), values(x.grad_remove(&mut gradients).unwrap())]
            };
            let fused = through(fused::max_pool(x.clone()));
            assert_eq!(fused, through(composed::max_pool(x.clone())));
        }
    }
}
