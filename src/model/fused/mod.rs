//! The layers of a residual network as single operations on the processor.
//!
//! Each has a forward pass on plain slices by `conv-kernels` and a hand-written
//! backward pass in Burn's graph. Activations are `[B, H, W, C]` from the first
//! layer to the last, and nothing is copied between layers. On another device
//! [`composed`](super::composed) does the same with Burn's own operations.

mod chain;
mod max_pool;
mod memory;
mod packed;
mod sync;
mod unit;

use burn::{
    backend::{
        Autodiff, Flex,
        autodiff::{
            checkpoint::strategy::NoCheckpointing,
            ops::{Backward, NodeGuard, OpsKind},
        },
        flex::FlexTensor,
    },
    tensor::{Tensor, TensorData},
};

pub use self::chain::{After, Shortcut};
pub(super) use self::{
    chain::chain, max_pool::max_pool, memory::give, packed::Packed, unit::Unit as FusedUnit,
};

/// Whether a tensor is in host memory, so that the kernels can read it in place.
pub(super) fn reaches<const D: usize>(tensor: &Tensor<D>) -> bool {
    tensor.device().inner() == crate::device::cpu()
}

/// The memory of a tensor whose operations are recorded, and its node.
fn recorded<const D: usize>(tensor: Tensor<D>) -> (FlexTensor, NodeGuard) {
    let tensor =
        tensor.try_into_primitive::<Autodiff<Flex>>().expect("callers ask `reaches` first");
    let (tensor, node) = tensor.into_parts();
    (contiguous(&tensor), node)
}

/// Enters an operation into the graph, with what its backward pass needs.
fn register<const N: usize, B: Backward<Flex, N>>(
    operation: B,
    parents: [NodeGuard; N],
    saved: B::State,
    output: FlexTensor,
) -> Tensor<4> {
    let prepared = operation.prepare::<NoCheckpointing>(parents).compute_bound();
    Tensor::from_primitive::<Autodiff<Flex>>(match prepared.stateful() {
        OpsKind::Tracked(prep) => prep.finish(saved, output),
        OpsKind::UnTracked(prep) => prep.finish(output),
    })
}

fn plain<const D: usize>(tensor: Tensor<D>) -> FlexTensor {
    let tensor = tensor.try_into_primitive::<Flex>().expect("callers ask `reaches` first");
    contiguous(&tensor)
}

/// The same values, row-major and without gaps.
fn contiguous(tensor: &FlexTensor) -> FlexTensor {
    if tensor.is_contiguous() { tensor.clone() } else { tensor.to_contiguous() }
}

/// The values of a contiguous tensor.
fn values(tensor: &FlexTensor) -> &[f32] {
    let (start, end) = tensor.layout().contiguous_offsets().expect("made contiguous on entry");
    &tensor.storage::<f32>()[start..end]
}

/// The values of a tensor, to be overwritten: without a copy where nobody else reads them.
fn owned(tensor: FlexTensor) -> Vec<f32> {
    tensor.into_data().try_into_vec().expect("every tensor of the model holds f32")
}

/// A tensor that takes over `values`.
fn tensor(values: Vec<f32>, shape: impl Into<Vec<usize>>) -> FlexTensor {
    FlexTensor::from_data(TensorData::new(values, shape.into()))
}

/// The four sizes of a batch of images.
fn dims(tensor: &FlexTensor) -> [usize; 4] {
    tensor.layout().shape().dims()
}
