//! Weights, images and dropout masks from a name and an index, as `make_method.py` has them.

use burn::{
    module::Module,
    tensor::{Device, Tensor, TensorData},
};
use pinpoint::model::params;

/// Probability that a cell is dropped.
const DROPOUT: f64 = 0.5;
/// Side of the squares in the images, in pixels.
const SQUARE: usize = 8;

/// A pseudo-random number for each index, decided by the name.
pub(super) fn words(name: &str) -> impl Fn(usize) -> u32 + use<> {
    let step = |hash: u32, byte: u8| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    let start = name.bytes().fold(0x811c_9dc5, step);
    move |index| {
        let mut x = (index as u32).wrapping_mul(2_654_435_761).wrapping_add(start);
        x ^= x >> 16;
        x = x.wrapping_mul(0x85eb_ca6b);
        x ^= x >> 13;
        x = x.wrapping_mul(0xc2b2_ae35);
        x ^ (x >> 16)
    }
}

/// Numbers in `[0, 1)`.
pub(super) fn uniform(name: &str) -> impl Fn(usize) -> f64 + use<> {
    let word = words(name);
    move |index| f64::from(word(index)) / 2_f64.powi(32)
}

/// Values of a tensor, each from its index.
pub(super) fn tensor<const D: usize>(
    shape: [usize; D],
    device: &Device,
    value: impl Fn(usize) -> f64,
) -> Tensor<D> {
    let values: Vec<f32> = (0..shape.iter().product()).map(|i| value(i) as f32).collect();
    Tensor::from_data(TensorData::new(values, shape), device)
}

/// Puts the formula's weights into a module.
pub(super) fn fill_in<M: Module>(module: M, seed: u64) -> M {
    params::map(module, |name, shape, old| {
        let count = shape.iter().product();
        tensor([count], &old.device(), parameter(seed, name, shape))
    })
}

/// The values of one weight tensor or running statistic.
pub(super) fn parameter(seed: u64, name: &str, shape: &[usize]) -> impl Fn(usize) -> f64 + use<> {
    let u = uniform(&format!("{seed}/{name}"));
    let in_head = name.starts_with("localizer") || name.starts_with("classifier");
    let (scale, start) = match *shape {
        [output, input, height, width] => {
            let bound = if in_head {
                4.0 / (input as f64).sqrt()
            } else {
                (6.0 / (height * width * output) as f64).sqrt()
            };
            (2.0 * bound, -bound)
        }
        [_, input] => {
            let bound = 4.0 / (input as f64).sqrt();
            (2.0 * bound, -bound)
        }
        _ if in_head || name.ends_with("running_mean") => (0.2, -0.1),
        _ => (1.0, 0.5),
    };
    move |index| scale * u(index) + start
}

/// Images of coarse squares with noise on top, `[batch, 3, height, width]`.
pub(super) fn pictures(
    seed: u64,
    batch: usize,
    [height, width]: [usize; 2],
    device: &Device,
) -> Tensor<4> {
    let (squares, noise) = (uniform(&format!("{seed}/squares")), uniform(&format!("{seed}/noise")));
    let [rows, columns] = [height, width].map(|side| side.div_ceil(SQUARE));
    tensor([batch, 3, height, width], device, |index| {
        let (x, y, plane) = (index % width, index / width % height, index / (width * height));
        let square = (plane * rows + y / SQUARE) * columns + x / SQUARE;
        0.7 * (2.0 * squares(square) - 1.0) + 0.3 * (2.0 * noise(index) - 1.0)
    })
}

/// What dropout leaves of each sorted cell.
pub(super) fn keep(name: &str, count: usize) -> Vec<f32> {
    let u = uniform(name);
    let survivor = (1.0 / (1.0 - DROPOUT)) as f32;
    (0..count).map(|index| if u(index) < DROPOUT { 0.0 } else { survivor }).collect()
}
