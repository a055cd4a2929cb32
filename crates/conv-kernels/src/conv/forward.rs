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
use crate::{batch_norm::Moments, scratch};

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
    match weights.points(conv) {
        Some(points) => winograd::Pass::new(conv, points, input, epilogue).run(output, None),
        None => with_source(conv, input, |source| {
            gather(conv, weights, source, epilogue).run(output, None);
        }),
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
    let finish = |sums: &[f32], block_pixels: &[usize]| {
        moments::merge(sums, channels, padded, conv.out_pixels(), block_pixels)
    };
    if let Some(points) = weights.points(conv) {
        let pass = winograd::Pass::new(conv, points, input, none);
        let mut sums = scratch::floats(MomentSink::len(pass.blocks(), padded));
        pass.run(output, Some(&MomentSink::new(&mut sums, padded)));
        return finish(&sums, &pass.block_pixels().collect::<Vec<_>>());
    }
    with_source(conv, input, |source| {
        let gather = gather(conv, weights, source, none);
        let mut sums = scratch::floats(MomentSink::len(gather.blocks(), padded));
        gather.run(output, Some(&MomentSink::new(&mut sums, padded)));
        finish(&sums, &gather.block_pixels().collect::<Vec<_>>())
    })
}

fn check(conv: &Conv, weights: &PackedWeights, input: &[f32], output: &[f32]) {
    assert_eq!(weights.direction(), Direction::Forward, "weights are packed for another pass");
    assert_eq!(weights.filter(), conv.filter(), "weights belong to another filter");
    assert_eq!(input.len(), conv.input_len(), "input does not match the convolution");
    assert_eq!(output.len(), conv.output_len(), "output does not match the convolution");
}

fn gather<'a>(
    conv: &Conv,
    weights: &'a PackedWeights,
    source: Source<'a>,
    epilogue: Epilogue<'a>,
) -> Gather<'a> {
    let target = Target {
        batch: conv.batch(),
        height: conv.out_height(),
        width: conv.out_width(),
        channels: conv.filter().out_channels,
        step: 1,
    };
    Gather { weights, source, target, epilogue }
}

/// The input itself, or its padded copy where taps read whole kernel rows.
fn with_source<T>(conv: &Conv, input: &[f32], work: impl FnOnce(Source<'_>) -> T) -> T {
    let filter = conv.filter();
    let (height, width, channels) = (conv.height(), conv.width(), filter.in_channels);
    let plain =
        Source { values: input, height, width, channels, step: filter.stride, run: channels };
    if !filter.reads_rows() {
        return work(plain);
    }
    let (height, width) = (height + 2 * filter.padding, width + 2 * filter.padding);
    let mut padded = scratch::floats(conv.batch() * height * width * channels);
    pad(conv, input, &mut padded);
    work(Source { values: &padded, height, width, run: filter.kernel * channels, ..plain })
}

/// Copies images into the middle of zeros.
fn pad(conv: &Conv, input: &[f32], padded: &mut [f32]) {
    let (channels, margin) = (conv.filter().in_channels, conv.filter().padding);
    let (row_len, padded_len) = (conv.width() * channels, (conv.width() + 2 * margin) * channels);
    let image_rows = conv.height() + 2 * margin;
    padded.par_chunks_exact_mut(padded_len).with_min_len(16).enumerate().for_each(|(row, to)| {
        let (image, y) = (row / image_rows, (row % image_rows).wrapping_sub(margin));
        if y >= conv.height() {
            return to.fill(0.0);
        }
        let from = &input[(image * conv.height() + y) * row_len..][..row_len];
        to[..margin * channels].fill(0.0);
        to[margin * channels..][..row_len].copy_from_slice(from);
        to[margin * channels + row_len..].fill(0.0);
    });
}
