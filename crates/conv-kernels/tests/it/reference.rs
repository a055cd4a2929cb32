//! The definitions, written as plainly as possible, in double precision.

use conv_kernels::conv::{Conv, Filter};

/// Visits every `(output index, input index, weight index)` that a convolution multiplies.
fn visit(conv: &Conv, mut each: impl FnMut(usize, usize, usize)) {
    let &Filter { in_channels, out_channels, kernel, stride, padding, dilation } = conv.filter();
    for n in 0..conv.batch() {
        for oy in 0..conv.out_height() {
            for ox in 0..conv.out_width() {
                for ky in 0..kernel {
                    for kx in 0..kernel {
                        let y = (oy * stride + ky * dilation).wrapping_sub(padding);
                        let x = (ox * stride + kx * dilation).wrapping_sub(padding);
                        if y >= conv.height() || x >= conv.width() {
                            continue;
                        }
                        let pixel = (n * conv.height() + y) * conv.width() + x;
                        let result = (n * conv.out_height() + oy) * conv.out_width() + ox;
                        for o in 0..out_channels {
                            for i in 0..in_channels {
                                each(
                                    result * out_channels + o,
                                    pixel * in_channels + i,
                                    ((o * in_channels + i) * kernel + ky) * kernel + kx,
                                );
                            }
                        }
                    }
                }
            }
        }
    }
}

pub(crate) fn forward(conv: &Conv, weights: &[f32], input: &[f32]) -> Vec<f64> {
    let mut output = vec![0.0; conv.output_len()];
    visit(conv, |o, i, w| output[o] += f64::from(input[i]) * f64::from(weights[w]));
    output
}

pub(crate) fn backward_data(conv: &Conv, weights: &[f32], grad: &[f32]) -> Vec<f64> {
    let mut result = vec![0.0; conv.input_len()];
    visit(conv, |o, i, w| result[i] += f64::from(grad[o]) * f64::from(weights[w]));
    result
}

pub(crate) fn backward_weights(conv: &Conv, input: &[f32], grad: &[f32]) -> Vec<f64> {
    let mut result = vec![0.0; conv.filter().weights()];
    visit(conv, |o, i, w| result[w] += f64::from(grad[o]) * f64::from(input[i]));
    result
}

/// Numbers in `[-1, 1)` that differ by `seed` and never repeat a short pattern.
pub(crate) fn noise(seed: u64, len: usize) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0xD1B5_4A32_D192_ED03;
    let mut next = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 40) as f32) / (1 << 23) as f32 - 1.0
    };
    (0..len).map(|_| next()).collect()
}

/// Fails where values differ by more than `tolerance` times the root mean square of `expected`.
pub(crate) fn assert_close(what: &str, actual: &[f32], expected: &[f64], tolerance: f64) {
    let square: f64 = expected.iter().map(|x| x * x).sum();
    let scale = (square / expected.len().max(1) as f64).sqrt().max(1e-3);
    assert_within(what, actual, expected, tolerance * scale);
}

/// Fails where values differ by more than `tolerance`.
pub(crate) fn assert_within(what: &str, actual: &[f32], expected: &[f64], tolerance: f64) {
    assert_eq!(actual.len(), expected.len());
    for (at, (&a, &e)) in actual.iter().zip(expected).enumerate() {
        let error = (f64::from(a) - e).abs();
        assert!(error <= tolerance, "{what}: value {at} is {a}, should be {e}");
    }
}
