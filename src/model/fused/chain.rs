//! Units in a row, as one operation.
//!
//! ```text
//! z₁ = conv₁(x)   y₁ = relu(norm₁(z₁))   z₂ = conv₂(y₁)   …   y = relu(normₙ(zₙ) + shortcut)
//! ```
//!
//! A convolution computes the moments of its output while it writes it, so that normalizing, adding
//! and rectifying take one more pass over memory; the backward pass takes one for the sums and one
//! for the gradient. Only the outputs of the convolutions are kept for the backward pass: the
//! activations between them are computed again, in one pass as well.

use burn::{
    backend::{
        Flex,
        autodiff::{
            checkpoint::base::Checkpointer,
            grads::Gradients,
            ops::{Backward, NodeGuard, Ops},
        },
        flex::FlexTensor,
    },
    tensor::Tensor,
};
use conv_kernels::batch_norm::{Activation, Moments};

use super::{
    dims, memory, owned, plain, recorded, register, tensor,
    unit::{Convolved, End, Layer, Unit},
    values,
};

/// What follows the last unit.
#[derive(Debug, Clone, Default)]
pub struct After {
    /// Added to the normalized values.
    pub shortcut: Shortcut,
    /// Whether negative values become zero in the end.
    pub relu: bool,
}

impl After {
    /// A ReLU.
    pub fn relu() -> Self {
        Self { shortcut: Shortcut::None, relu: true }
    }
}

/// What is added to the last normalized values.
#[derive(Debug, Clone, Default)]
#[expect(clippy::large_enum_variant, reason = "one at a time, on its way into a block")]
pub enum Shortcut {
    /// Nothing.
    #[default]
    None,
    /// What went into the first unit.
    Input,
    /// Something else, `[B, h, w, out]`.
    Of(Tensor<4>),
}

/// What follows a unit between two others.
const WITHIN: End<'_> = End { shortcut: None, relu: true };

type Normalized = (Tensor<4>, Vec<Option<Moments>>);

/// Sends `x` through units that end in a ReLU, all but the last, which `after` follows.
///
/// Gives the moments of each convolution's output too, where it was normalized by itself.
///
/// Shapes: `[B, H, W, in]` → `[B, h, w, out]`.
pub(in crate::model) fn chain(units: Vec<Unit>, x: Tensor<4>, after: After) -> Normalized {
    if x.is_autodiff() { record(units, x, after) } else { run(units, x, after) }
}

fn run(units: Vec<Unit>, x: Tensor<4>, After { shortcut, relu }: After) -> Normalized {
    let mut x = plain(x);
    let shortcut = match shortcut {
        Shortcut::None => None,
        Shortcut::Input => Some(x.clone()),
        Shortcut::Of(shortcut) => Some(plain(shortcut)),
    };
    let last = End { shortcut: shortcut.as_ref(), relu };
    let (count, mut moments) = (units.len(), Vec::new());
    for (index, unit) in units.into_iter().enumerate() {
        let end = if index + 1 < count { WITHIN } else { last };
        let leaves =
            [plain(unit.weight.clone()), plain(unit.gamma.clone()), plain(unit.beta.clone())];
        let layer = Layer::new(unit, leaves, &x);
        let output = match layer.predict(&x, end) {
            Some(output) => output,
            None => {
                let convolved = layer.convolve(values(&x));
                moments.push(convolved.moments());
                let output = convolved.finish(end);
                memory::give(convolved.values);
                output
            }
        };
        memory::give_back(std::mem::replace(&mut x, output));
    }
    shortcut.into_iter().for_each(memory::give_back);
    (Tensor::from_primitive::<Flex>(x), moments)
}

fn record(units: Vec<Unit>, x: Tensor<4>, After { shortcut, relu }: After) -> Normalized {
    let mut nodes = Nodes::default();
    let input = nodes.leaf(x);
    let count = units.len();
    let mut layers = Vec::with_capacity(count);
    let mut within = None;
    for (index, unit) in units.into_iter().enumerate() {
        let leaves = [
            nodes.leaf(unit.weight.clone()),
            nodes.leaf(unit.gamma.clone()),
            nodes.leaf(unit.beta.clone()),
        ];
        let x = within.as_ref().unwrap_or(&input);
        let convolved = Layer::new(unit, leaves, x).convolve(values(x));
        within.take().into_iter().for_each(memory::give_back);
        if index + 1 < count {
            within = Some(convolved.finish(WITHIN));
        }
        layers.push(convolved);
    }
    let (path, shortcut) = match shortcut {
        Shortcut::None => (Path::None, None),
        Shortcut::Input => (Path::Input, Some(input.clone())),
        Shortcut::Of(shortcut) => (Path::Apart, Some(nodes.leaf(shortcut))),
    };
    let last = layers.last().expect("a chain has at least one unit");
    let output = last.finish(End { shortcut: shortcut.as_ref(), relu });
    let moments = layers.iter().map(Convolved::moments).collect();
    let relu = match (relu, &shortcut) {
        (false, _) => Relu::None,
        (true, None) => Relu::OfNorm,
        (true, Some(_)) => Relu::OfSum(output.clone()),
    };
    shortcut.into_iter().for_each(memory::give_back);
    (nodes.register(Saved { input, layers, relu, path }, output), moments)
}

/// What an operation depends on, as its graph knows it.
#[derive(Default)]
struct Nodes(Vec<NodeGuard>);

impl Nodes {
    fn leaf<const D: usize>(&mut self, tensor: Tensor<D>) -> FlexTensor {
        let (tensor, node) = recorded(tensor);
        self.0.push(node);
        tensor
    }

    /// Enters the operation into the graph.
    fn register(self, saved: Saved, output: FlexTensor) -> Tensor<4> {
        // The input, three for each unit, and perhaps a shortcut.
        match self.0.len() {
            4 => self.register_as::<4>(saved, output),
            5 => self.register_as::<5>(saved, output),
            7 => self.register_as::<7>(saved, output),
            8 => self.register_as::<8>(saved, output),
            10 => self.register_as::<10>(saved, output),
            11 => self.register_as::<11>(saved, output),
            _ => unreachable!("chains have up to three units"),
        }
    }

    fn register_as<const N: usize>(self, saved: Saved, output: FlexTensor) -> Tensor<4> {
        let nodes: [NodeGuard; N] =
            self.0.try_into().unwrap_or_else(|_| unreachable!("the caller has counted them"));
        register(ChainBackward, nodes, saved, output)
    }
}

/// What the backward pass needs.
#[derive(Debug, Clone)]
struct Saved {
    input: FlexTensor,
    layers: Vec<Convolved>,
    relu: Relu,
    path: Path,
}

/// The ReLU at the end.
#[derive(Debug, Clone)]
enum Relu {
    None,
    OfNorm,
    /// The sum with the shortcut, which was this.
    OfSum(FlexTensor),
}

/// Where the gradient of the shortcut goes.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Path {
    None,
    /// To the input of the first unit.
    Input,
    /// To a parent of its own, the last one.
    Apart,
}

#[derive(Debug)]
struct ChainBackward;

/// Parents are the input, weights, gamma and beta of each unit, and what was added apart.
impl<const N: usize> Backward<Flex, N> for ChainBackward {
    type State = Saved;

    fn backward(self, ops: Ops<Saved, N>, grads: &mut Gradients, _: &mut Checkpointer) {
        let Ops { parents, node, state } = ops;
        let parent = |index: usize| parents.get(index).and_then(Option::as_ref);
        let Saved { input, mut layers, relu, mut path } = state;
        let grad = grads.consume::<Flex>(&node);
        let shape = dims(&grad);
        let mut grad = owned(grad);

        let mut end = match &relu {
            Relu::None => Activation::None,
            Relu::OfNorm => Activation::Relu,
            Relu::OfSum(output) => Activation::ReluOf(values(output)),
        };
        // The gradient of the shortcut, if that is the input of the units.
        let mut past = None;
        while let Some(layer) = layers.pop() {
            let index = layers.len();
            let found = layer.differentiate(end, &mut grad, path != Path::None);
            match (path, parents.last()) {
                (Path::Input, _) => past = Some(grad),
                (Path::Apart, Some(Some(node))) => {
                    grads.register::<Flex>(node.id, tensor(grad, shape));
                }
                _ => memory::give(grad),
            }
            (end, path, grad) = (Activation::Relu, Path::None, Vec::new());

            let [weight, gamma, beta] = [1, 2, 3].map(|leaf| parent(3 * index + leaf));
            if let Some(node) = weight {
                let between = layers.last().map(|before| before.finish(WITHIN));
                let x = between.as_ref().unwrap_or(&input);
                grads.register::<Flex>(node.id, found.to_weight(values(x)));
                between.into_iter().for_each(memory::give_back);
            }
            for (node, values) in [(gamma, &found.gamma), (beta, &found.beta)] {
                if let Some(node) = node {
                    grads.register::<Flex>(node.id, tensor(values.clone(), [values.len()]));
                }
            }
            if index > 0 {
                grad = found.to_input(None);
            } else if let Some(node) = parent(0) {
                let input = tensor(found.to_input(past.as_deref()), dims(&input));
                grads.register::<Flex>(node.id, input);
            }
            memory::give(found.grad);
        }
        past.into_iter().for_each(memory::give);
        if let Relu::OfSum(output) = relu {
            memory::give_back(output);
        }
        memory::give_back(input);
    }
}
