//! The passes that read packed weights: forward, and backward to the image, which gathers from the
//! gradient as the forward pass does from the image.

use rayon::prelude::*;

use super::{
    epilogue::Epilogue,
    gather::{Gather, Images},
    moments::MomentSink,
    pack::{Direction, PackedWeights},
    shape::Conv,
    winograd,
};
use crate::{
    batch_norm::{Moments, SUMS},
    scratch::{self, Floats},
};

/// Convolves `input` `[batch, height, width, in_channels]` into `output`
/// `[batch, out_height, out_width, out_channels]`, and applies `epilogue` on the way.
pub fn forward(
    conv: &Conv,
    weights: &PackedWeights,
    input: &[f32],
    epilogue: Epilogue<'_>,
    output: &mut [f32],
) {
    check(conv, weights, Direction::Forward, input, output);
    epilogue.check(conv.filter().out_channels, output.len());
    Pass::new(conv, weights, input, epilogue).run(output, None);
}

/// Convolves, and measures each channel of `output` for the batch norm that follows.
pub fn forward_with_moments(
    conv: &Conv,
    weights: &PackedWeights,
    input: &[f32],
    output: &mut [f32],
) -> Moments {
    check(conv, weights, Direction::Forward, input, output);
    let channels = conv.filter().out_channels;
    let padded = channels.next_multiple_of(weights.isa.tile().columns);
    let pass = Pass::new(conv, weights, input, Epilogue::default());
    let pixels = pass.block_pixels();
    let mut sums = scratch::floats(pixels.len() * SUMS * padded);
    pass.run(output, Some(&MomentSink::new(&mut sums, padded)));
    Moments::merge(&sums, padded, channels, &pixels)
}

/// Turns the gradient of the output into the gradient of the input, adding `add` where given
/// (the gradient that reaches the same input on another path).
pub fn backward_data(
    conv: &Conv,
    weights: &PackedWeights,
    grad_output: &[f32],
    add: Option<&[f32]>,
    grad_input: &mut [f32],
) {
    check(conv, weights, Direction::BackwardData, grad_input, grad_output);
    let epilogue = Epilogue { residual: add, ..Epilogue::default() };
    epilogue.check(conv.filter().in_channels, grad_input.len());
    Pass::new(conv, weights, grad_output, epilogue).run(grad_input, None);
}

fn check(
    conv: &Conv,
    weights: &PackedWeights,
    direction: Direction,
    input: &[f32],
    output: &[f32],
) {
    assert_eq!(weights.direction, direction, "weights are packed for another pass");
    assert_eq!(&weights.filter, conv.filter(), "weights belong to another filter");
    assert_eq!(input.len(), conv.input_len(), "input does not match the convolution");
    assert_eq!(output.len(), conv.output_len(), "output does not match the convolution");
}

/// A pass by either algorithm.
enum Pass<'a> {
    Winograd(winograd::Pass<'a>),
    Direct(Gather<'a>),
}

impl<'a> Pass<'a> {
    /// Prepares the pass that reads `values`.
    fn new(
        conv: &Conv,
        weights: &'a PackedWeights,
        values: &'a [f32],
        epilogue: Epilogue<'a>,
    ) -> Self {
        if weights.uses_winograd(conv) {
            return Self::Winograd(winograd::Pass::new(conv, weights, values, epilogue));
        }
        let (filter, batch) = (conv.filter(), conv.batch());
        let (height, width, channels) = (conv.height(), conv.width(), filter.in_channels);
        let input = Images { height, width, channels, step: filter.stride };
        let (height, width, channels) = (conv.out_height(), conv.out_width(), filter.out_channels);
        let output = Images { height, width, channels, step: 1 };
        let (mut source, target) = match weights.direction {
            Direction::Forward => (input, output),
            Direction::BackwardData => (output, input),
        };
        let (mut run, mut padded) = (source.channels, None);
        if weights.direction == Direction::Forward && filter.reads_rows() {
            run *= filter.kernel;
            source.height += 2 * filter.padding;
            source.width += 2 * filter.padding;
            padded = Some(pad(conv, values, source.height, source.width));
        }
        Self::Direct(Gather { weights, batch, values, padded, source, run, target, epilogue })
    }

    /// Writes every pixel of `result`; `moments` collects sums of what is written.
    fn run(&self, result: &mut [f32], moments: Option<&MomentSink<'_>>) {
        match self {
            Self::Winograd(pass) => pass.run(result, moments),
            Self::Direct(gather) => gather.run(result, moments),
        }
    }

    /// Pixels written by each block.
    fn block_pixels(&self) -> Vec<usize> {
        match self {
            Self::Winograd(pass) => pass.block_pixels(),
            Self::Direct(gather) => gather.block_pixels(),
        }
    }
}

/// Copies images into the middle of `height` × `width` pixels, else zero.
fn pad(conv: &Conv, input: &[f32], height: usize, width: usize) -> Floats {
    let (channels, margin) = (conv.filter().in_channels, conv.filter().padding);
    let row_len = conv.width() * channels;
    let mut padded = scratch::floats(conv.batch() * height * width * channels);
    let rows = padded.par_chunks_exact_mut(width * channels).with_min_len(16);
    rows.enumerate().for_each(|(row, to)| {
        to.fill(0.0);
        let (image, y) = (row / height, (row % height).wrapping_sub(margin));
        if y < conv.height() {
            let from = &input[(image * conv.height() + y) * row_len..][..row_len];
            to[margin * channels..][..row_len].copy_from_slice(from);
        }
    });
    padded
}
