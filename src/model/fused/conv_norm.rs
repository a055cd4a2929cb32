//! Convolution, batch norm, shortcut and ReLU in one operation.
//!
//! ```text
//! z = conv(x)   y = relu(norm(z) + shortcut)
//! ```
//!
//! The convolution measures its output on the way, so that normalizing, adding and
//! rectifying is one more pass over memory; backward, one pass for the sums and one
//! for the gradient.

use burn::{
    backend::{
        Autodiff, Flex,
        autodiff::{
            checkpoint::{base::Checkpointer, strategy::NoCheckpointing},
            grads::Gradients,
            ops::{Backward, NodeGuard, Ops, OpsKind},
        },
        flex::FlexTensor,
    },
    tensor::Tensor,
};
use conv_kernels::{
    Isa,
    batch_norm::{self, Activation, BatchNorm, Moments, normalize},
    conv::{self, Algorithm, Conv, Epilogue, Filter},
};

use super::{Packed, dims, memory, owned, parts, plain, recorded, tensor, values};

/// A convolution with its batch norm.
#[derive(Debug, Clone)]
pub(in crate::model) struct ConvNorm {
    pub(in crate::model) filter: Filter,
    pub(in crate::model) packed: Packed,
    /// Mean and variance to normalize by, as evaluation does; none takes the batch's own.
    pub(in crate::model) running: Option<[Tensor<1>; 2]>,
    pub(in crate::model) epsilon: f32,
    pub(in crate::model) relu: bool,
}

/// What the operation differentiates by.
pub(in crate::model) struct Inputs {
    /// `[B, H, W, in]`
    pub(in crate::model) x: Tensor<4>,
    /// `[out, in, k, k]`
    pub(in crate::model) weight: Tensor<4>,
    /// `[out]`
    pub(in crate::model) gamma: Tensor<1>,
    /// `[out]`
    pub(in crate::model) beta: Tensor<1>,
    /// `[B, h, w, out]`, added before the ReLU.
    pub(in crate::model) shortcut: Option<Tensor<4>>,
}

/// What came out.
pub(in crate::model) struct Normalized {
    /// `[B, h, w, out]`
    pub(in crate::model) output: Tensor<4>,
    /// Of the convolution's output, where it was normalized by itself.
    pub(in crate::model) moments: Option<Moments>,
}

impl ConvNorm {
    pub(in crate::model) fn forward(self, inputs: Inputs) -> Normalized {
        if inputs.x.is_autodiff() { self.record(inputs) } else { self.run(inputs) }
    }

    fn run(self, inputs: Inputs) -> Normalized {
        let Inputs { x, weight, gamma, beta, shortcut } = inputs;
        let leaves = Leaves {
            input: plain(x),
            weight: plain(weight),
            gamma: plain(gamma),
            beta: plain(beta),
        };
        let shortcut = shortcut.map(plain);
        let (output, moments) = match &self.running {
            None => {
                let (output, saved) = self.compute(leaves, shortcut.as_ref());
                (output, saved.moments())
            }
            Some(running) => {
                let running = running.clone().map(plain);
                (self.predict(leaves, running, shortcut.as_ref()), None)
            }
        };
        shortcut.into_iter().for_each(memory::give_back);
        Normalized { output: Tensor::from_primitive::<Flex>(output), moments }
    }

    /// One pass over memory: with given statistics, the batch norm is part of the convolution.
    fn predict(
        &self,
        leaves: Leaves,
        [mean, variance]: [FlexTensor; 2],
        shortcut: Option<&FlexTensor>,
    ) -> FlexTensor {
        let Leaves { input, weight, gamma, beta } = leaves;
        let conv = self.over(&input);
        let mut output = memory::take(conv.output_len());
        let sources = [weight, gamma, beta, mean, variance];
        self.packed.folded(&self.filter, sources, self.epsilon, |folded| {
            let (bias, residual) = (Some(folded.bias.as_slice()), shortcut.map(values));
            let epilogue = Epilogue { bias, residual, relu: self.relu };
            conv::forward(&conv, &folded.weights, values(&input), epilogue, &mut output);
        });
        memory::give_back(input);
        tensor(output, shape(&conv))
    }

    fn over(&self, input: &FlexTensor) -> Conv {
        let [batch, height, width, _] = dims(input);
        Conv::new(self.filter, batch, height, width).expect("padding fits any image")
    }

    fn record(self, inputs: Inputs) -> Normalized {
        let Inputs { x, weight, gamma, beta, shortcut } = inputs;
        let (input, x) = parts(recorded(x));
        let (weight, w) = parts(recorded(weight));
        let (gamma, g) = parts(recorded(gamma));
        let (beta, b) = parts(recorded(beta));
        let leaves = Leaves { input, weight, gamma, beta };
        match shortcut.map(|shortcut| parts(recorded(shortcut))) {
            Some((shortcut, s)) => self.register(leaves, Some(shortcut), [x, w, g, b, s]),
            None => self.register(leaves, None, [x, w, g, b]),
        }
    }

    fn register<const N: usize>(
        self,
        leaves: Leaves,
        shortcut: Option<FlexTensor>,
        nodes: [NodeGuard; N],
    ) -> Normalized {
        let (output, saved) = self.compute(leaves, shortcut.as_ref());
        shortcut.into_iter().for_each(memory::give_back);
        let moments = saved.moments();
        let prepared = ConvNormBackward.prepare::<NoCheckpointing>(nodes).compute_bound();
        let output = match prepared.stateful() {
            OpsKind::Tracked(prep) => prep.finish(saved, output),
            OpsKind::UnTracked(prep) => prep.finish(output),
        };
        Normalized { output: Tensor::from_primitive::<Autodiff<Flex>>(output), moments }
    }

    fn compute(self, leaves: Leaves, shortcut: Option<&FlexTensor>) -> (FlexTensor, Saved) {
        let isa = Isa::detect();
        let conv = self.over(&leaves.input);
        let input = values(&leaves.input);

        let mut convolved = memory::take(conv.output_len());
        let statistics = self.packed.forward(&self.filter, &leaves.weight, |weights| {
            if let Some(running) = &self.running {
                conv::forward(&conv, weights, input, Epilogue::default(), &mut convolved);
                let [mean, variance] =
                    running.clone().map(|statistic| values(&plain(statistic)).to_vec());
                return Measured { moments: Moments { mean, variance, count: 0 }, of_batch: false };
            }
            self.packed.unfold();
            let moments = conv::forward_with_moments(&conv, weights, input, &mut convolved);
            Measured { moments, of_batch: true }
        });
        let norm = statistics.norm(&leaves.gamma, &leaves.beta, self.epsilon);
        let mut output = memory::take(conv.output_len());
        normalize(isa, &norm, &convolved, shortcut.map(values), self.relu, &mut output);

        let output = tensor(output, shape(&conv));
        let saved = Saved {
            conv,
            leaves,
            convolved,
            relu: match (self.relu, shortcut) {
                (false, _) => Relu::None,
                (true, None) => Relu::OfNorm,
                (true, Some(_)) => Relu::OfSum(output.clone()),
            },
            statistics,
            packed: self.packed,
            epsilon: self.epsilon,
        };
        (output, saved)
    }
}

/// Of a convolution's output.
fn shape(conv: &Conv) -> [usize; 4] {
    [conv.batch(), conv.out_height(), conv.out_width(), conv.filter().out_channels]
}

#[derive(Debug, Clone)]
struct Leaves {
    input: FlexTensor,
    weight: FlexTensor,
    gamma: FlexTensor,
    beta: FlexTensor,
}

#[derive(Debug, Clone)]
struct Measured {
    moments: Moments,
    of_batch: bool,
}

/// What was rectified in the end.
#[derive(Debug, Clone)]
enum Relu {
    None,
    OfNorm,
    /// The sum with the shortcut, which was this.
    OfSum(FlexTensor),
}

/// What the backward pass needs.
#[derive(Debug, Clone)]
struct Saved {
    conv: Conv,
    leaves: Leaves,
    convolved: Vec<f32>,
    relu: Relu,
    statistics: Measured,
    packed: Packed,
    epsilon: f32,
}

impl Measured {
    fn norm<'a>(
        &'a self,
        gamma: &'a FlexTensor,
        beta: &'a FlexTensor,
        epsilon: f32,
    ) -> BatchNorm<'a> {
        BatchNorm {
            mean: &self.moments.mean,
            variance: &self.moments.variance,
            gamma: values(gamma),
            beta: values(beta),
            epsilon,
        }
    }
}

impl Saved {
    fn moments(&self) -> Option<Moments> {
        self.statistics.of_batch.then(|| self.statistics.moments.clone())
    }

    /// Turns the gradient of the output into that of the shortcut, if there was one, and gives
    /// those of the convolution's output, of gamma and of beta.
    fn through_norm(&mut self, grad: &mut [f32], shortcut: bool) -> [Vec<f32>; 3] {
        let Leaves { gamma, beta, .. } = &self.leaves;
        let norm = self.statistics.norm(gamma, beta, self.epsilon);
        let activation = match &self.relu {
            Relu::None => Activation::None,
            Relu::OfNorm => Activation::Relu,
            Relu::OfSum(output) => Activation::ReluOf(values(output)),
        };
        let backward = if self.statistics.of_batch {
            batch_norm::backward
        } else {
            batch_norm::backward_running
        };
        let mut convolved = std::mem::take(&mut self.convolved);
        let (gamma, beta) =
            backward(Isa::detect(), &norm, &mut convolved, activation, grad, shortcut);
        [convolved, gamma, beta]
    }

    /// Hands on the memory that nothing reads any more.
    fn give_back(self) {
        if let Relu::OfSum(output) = self.relu {
            memory::give_back(output);
        }
        memory::give_back(self.leaves.input);
    }

    fn to_input(&self, grad: &[f32]) -> FlexTensor {
        let filter = self.conv.filter();
        let mut input = memory::take(self.conv.input_len());
        self.packed.backward(filter, &self.leaves.weight, |weights| {
            conv::backward_data(&self.conv, weights, grad, None, &mut input);
        });
        tensor(input, dims(&self.leaves.input))
    }

    fn to_weight(&self, grad: &[f32]) -> FlexTensor {
        let filter = self.conv.filter();
        let mut weights = memory::take(filter.weights());
        let algorithm = Algorithm::fastest(filter);
        let input = values(&self.leaves.input);
        conv::backward_weights(Isa::detect(), &self.conv, algorithm, input, grad, &mut weights);
        tensor(weights, [filter.out_channels, filter.in_channels, filter.kernel, filter.kernel])
    }
}

#[derive(Debug)]
struct ConvNormBackward;

/// Parents are the input, the weights, gamma, beta and, with `N = 5`, the shortcut.
impl<const N: usize> Backward<Flex, N> for ConvNormBackward {
    type State = Saved;

    fn backward(self, ops: Ops<Saved, N>, grads: &mut Gradients, _: &mut Checkpointer) {
        let grad = grads.consume::<Flex>(&ops.node);
        let shape = dims(&grad);
        let mut grad = owned(grad);
        let mut saved = ops.state;
        let parent = |index: usize| ops.parents.get(index).and_then(Option::as_ref);
        let channels = saved.conv.filter().out_channels;

        let [convolved, gamma, beta] = saved.through_norm(&mut grad, parent(4).is_some());
        match parent(4) {
            Some(node) => grads.register::<Flex>(node.id, tensor(grad, shape)),
            None => memory::give(grad),
        }
        if let Some(node) = parent(0) {
            grads.register::<Flex>(node.id, saved.to_input(&convolved));
        }
        if let Some(node) = parent(1) {
            grads.register::<Flex>(node.id, saved.to_weight(&convolved));
        }
        if let Some(node) = parent(2) {
            grads.register::<Flex>(node.id, tensor(gamma, [channels]));
        }
        if let Some(node) = parent(3) {
            grads.register::<Flex>(node.id, tensor(beta, [channels]));
        }
        memory::give(convolved);
        saved.give_back();
    }
}
