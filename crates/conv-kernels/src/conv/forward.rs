//! The forward pass.

use rayon::prelude::*;

use super::{
    epilogue::Epilogue,
    gather::{Gather, Source, Target},
    moments::{self, MomentSink},
    pack::{Direction, PackedWeights},
    shape::Conv,
    winograd,
};
use crate::{
    batch_norm::Moments,
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
    check(conv, weights, input, output);
    epilogue.check(conv.filter().out_channels, output.len());
    if weights.uses_winograd(conv) {
        winograd::Pass::new(conv, weights, input, epilogue).run(output, None);
    } else {
        with_gather(conv, weights, input, epilogue, |gather| gather.run(output, None));
    }
}

/// Convolves, and measures each channel of `output` for the batch norm that follows.
pub fn forward_with_moments(
    conv: &Conv,
    weights: &PackedWeights,
    input: &[f32],
    output: &mut [f32],
) -> Moments {
    check(conv, weights, input, output);
    let channels = conv.filter().out_channels;
    let padded = channels.next_multiple_of(weights.isa().tile().columns);
    let none = Epilogue::default();
    if weights.uses_winograd(conv) {
        let pass = winograd::Pass::new(conv, weights, input, none);
        let run = |sink: &MomentSink<'_>| pass.run(output, Some(sink));
        moments::collect(channels, padded, &pass.block_pixels(), run)
    } else {
        with_gather(conv, weights, input, none, |gather| {
            let run = |sink: &MomentSink<'_>| gather.run(output, Some(sink));
            moments::collect(channels, padded, &gather.block_pixels(), run)
        })
    }
}

fn check(conv: &Conv, weights: &PackedWeights, input: &[f32], output: &[f32]) {
    assert_eq!(weights.direction(), Direction::Forward, "weights are packed for another pass");
    assert_eq!(weights.filter(), conv.filter(), "weights belong to another filter");
    assert_eq!(input.len(), conv.input_len(), "input does not match the convolution");
    assert_eq!(output.len(), conv.output_len(), "output does not match the convolution");
}

/// Gathers from the input itself, or from its padded copy where taps read whole kernel rows.
fn with_gather<T>(
    conv: &Conv,
    weights: &PackedWeights,
    input: &[f32],
    epilogue: Epilogue<'_>,
    work: impl FnOnce(&Gather<'_>) -> T,
) -> T {
    let filter = conv.filter();
    let (height, width, channels) = (conv.height(), conv.width(), filter.in_channels);
    let mut source =
        Source { values: input, height, width, channels, step: filter.stride, run: channels };
    let target = Target {
        batch: conv.batch(),
        height: conv.out_height(),
        width: conv.out_width(),
        channels: filter.out_channels,
        step: 1,
    };
    let padded;
    if filter.reads_rows() {
        let (height, width) = (height + 2 * filter.padding, width + 2 * filter.padding);
        padded = pad(conv, input, height, width);
        source = Source { values: &padded, height, width, run: filter.kernel * channels, ..source };
    }
    work(&Gather { weights, source, target, epilogue })
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
