//! The gradient with respect to the image: a gather from the result's gradient.

use super::{
    epilogue::Epilogue,
    gather::{Gather, Source, Target},
    pack::{Direction, PackedWeights},
    shape::Conv,
    winograd,
};

/// Turns the gradient of the output into the gradient of the input, adding `add` where given
/// (the gradient that reaches the same input on another path).
pub fn backward_data(
    conv: &Conv,
    weights: &PackedWeights,
    grad_output: &[f32],
    add: Option<&[f32]>,
    grad_input: &mut [f32],
) {
    let filter = conv.filter();
    assert_eq!(weights.direction(), Direction::BackwardData, "weights are packed for another pass");
    assert_eq!(weights.filter(), filter, "weights belong to another filter");
    assert_eq!(grad_output.len(), conv.output_len(), "gradient does not match the convolution");
    assert_eq!(grad_input.len(), conv.input_len(), "result does not match the convolution");
    let epilogue = Epilogue { residual: add, ..Epilogue::default() };
    epilogue.check(filter.in_channels, grad_input.len());
    if weights.uses_winograd(conv) {
        return winograd::Pass::new(conv, weights, grad_output, epilogue).run(grad_input, None);
    }
    let source = Source {
        values: grad_output,
        height: conv.out_height(),
        width: conv.out_width(),
        channels: filter.out_channels,
        step: 1,
        run: filter.out_channels,
    };
    let target = Target {
        batch: conv.batch(),
        height: conv.height(),
        width: conv.width(),
        channels: filter.in_channels,
        step: filter.stride,
    };
    Gather { weights, source, target, epilogue }.run(grad_input, None);
}
