//! First weights, drawn from the seed.
//!
//! Each tensor has its own stream, named after it, so that the weights of one
//! layer do not depend on which other layers there are.

use burn::{module::Module, tensor::Tensor};

use super::{
    layers::tensor,
    params::{self, Description},
    role::{Part, Role},
};
use crate::rng::{Purpose, Stream};

/// Draws the weights of a module.
///
/// Backbone convolutions are normal with variance `2 / (k² · out)`, so that the
/// scale of activations survives depth; heads are uniform in `±1/√inputs`, biases in `±1/√features`.
/// Batch norm starts as the identity.
pub(super) fn draw<M: Module>(module: M, features: usize, seed: u64) -> M {
    params::map_described(module, |Description { name, role, part, shape }, weights| {
        let mut stream = Stream::new(seed, Purpose::Init, 0, fnv1a(name));
        let mut uniform = |inputs: usize| {
            let bound = 1.0 / (inputs as f64).sqrt();
            filled(&weights, || stream.between(-bound, bound))
        };
        match (part, role, &shape[..]) {
            (Some(Part::Head), Role::Weight, [_, inputs, ..]) => uniform(*inputs),
            (Some(Part::Head), Role::Bias, _) => uniform(features),
            (_, Role::Weight, [output, _, kernel, _]) => {
                let spread = (2.0 / (kernel * kernel * output) as f64).sqrt();
                filled(&weights, || spread * stream.normal())
            }
            _ => weights,
        }
    })
}

fn filled(like: &Tensor<1>, mut draw: impl FnMut() -> f64) -> Tensor<1> {
    let shape = like.dims();
    tensor((0..shape[0]).map(|_| draw() as f32).collect(), shape, &like.device())
}

/// A stable number for a name.
///
/// It tells streams apart and proves nothing, so it is no digest: another function would draw
/// other weights from every seed.
fn fnv1a(name: &str) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    name.bytes().fold(0xcbf2_9ce4_8422_2325, step)
}
