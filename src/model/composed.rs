//! The layers of a residual network from Burn's own operations.
//!
//! They serve every device but the processor, whose [`fused`](super::fused)
//! operations are tested against them. Activations are `[B, H, W, C]` here as there.

use burn::tensor::{
    Tensor,
    activation::relu,
    module::{batch_norm, batch_norm_train, conv2d, max_pool2d},
    ops::{ConvOptions, MaxPoolOptions},
};

/// Shapes: `[B, H, W, in]` → `[B, h, w, out]`, weights `[out, in, k, k]`.
pub(super) fn conv(x: Tensor<4>, weight: Tensor<4>, stride: usize, dilation: usize) -> Tensor<4> {
    let [_, _, kernel, _] = weight.dims();
    let padding = dilation * (kernel / 2);
    let options = ConvOptions::new([stride; 2], [padding; 2], [dilation; 2], 1);
    channels_last(conv2d(channels_first(x), weight, None, options))
}

/// Normalizes by the batch; gives its mean and biased variance as well.
pub(super) fn norm_by_batch(
    x: Tensor<4>,
    gamma: Tensor<1>,
    beta: Tensor<1>,
    epsilon: f64,
) -> (Tensor<4>, [Tensor<1>; 2]) {
    let normalized = batch_norm_train(channels_first(x), gamma, beta, epsilon);
    (channels_last(normalized.output), [normalized.mean, normalized.variance])
}

/// Normalizes by given statistics.
pub(super) fn norm_by(
    x: Tensor<4>,
    gamma: Tensor<1>,
    beta: Tensor<1>,
    [mean, variance]: [Tensor<1>; 2],
    epsilon: f64,
) -> Tensor<4> {
    channels_last(batch_norm(channels_first(x), gamma, beta, mean, variance, epsilon))
}

/// Adds what runs past the layers, then rectifies.
pub(super) fn finish(x: Tensor<4>, shortcut: Option<Tensor<4>>, rectify: bool) -> Tensor<4> {
    let sum = match shortcut {
        Some(shortcut) => x + shortcut,
        None => x,
    };
    if rectify { relu(sum) } else { sum }
}

/// Largest value of each 3×3 window, every second row and column.
pub(super) fn max_pool(x: Tensor<4>) -> Tensor<4> {
    let window = MaxPoolOptions::new([3; 2]).with_stride([2; 2]).with_padding([1; 2]);
    channels_last(max_pool2d(channels_first(x), window))
}

/// `[B, C, H, W]` → `[B, H, W, C]`
pub(super) fn channels_last(x: Tensor<4>) -> Tensor<4> {
    x.permute([0, 2, 3, 1])
}

/// `[B, H, W, C]` → `[B, C, H, W]`
pub(super) fn channels_first(x: Tensor<4>) -> Tensor<4> {
    x.permute([0, 3, 1, 2])
}
