//! Convolution in all three directions.

use conv_kernels::{
    Isa,
    conv::{self, Algorithm, Conv, Epilogue, Filter, PackedWeights},
};
use proptest::prelude::*;

use crate::reference::{self, assert_close, assert_within, noise};

/// Rounding of single-precision sums, relative to the typical size of a result.
const TOLERANCE: f64 = 2e-5;

/// Those that apply.
fn algorithms(filter: &Filter) -> Vec<Algorithm> {
    match Algorithm::fastest(filter) {
        Algorithm::Direct => vec![Algorithm::Direct],
        _ => vec![Algorithm::Direct, Algorithm::Winograd, Algorithm::WinogradOnTheFly],
    }
}

fn check(conv: &Conv, isa: Isa) {
    let filter = conv.filter();
    let (weights, input) = (noise(1, filter.weights()), noise(2, conv.input_len()));
    let grad = noise(3, conv.output_len());
    for algorithm in algorithms(filter) {
        let what = format!("{isa:?} {algorithm:?} {conv:?}");
        let mut output = vec![f32::NAN; conv.output_len()];
        let packed = PackedWeights::forward(isa, filter, algorithm, &weights);
        conv::forward(conv, &packed, &input, Epilogue::default(), &mut output);
        let expected = reference::forward(conv, &weights, &input);
        assert_close(&format!("forward {what}"), &output, &expected, TOLERANCE);

        let mut grad_input = vec![f32::NAN; conv.input_len()];
        let packed = PackedWeights::backward_data(isa, filter, algorithm, &weights);
        conv::backward_data(conv, &packed, &grad, None, &mut grad_input);
        let expected = reference::backward_data(conv, &weights, &grad);
        assert_close(&format!("backward data {what}"), &grad_input, &expected, TOLERANCE);

        let mut grad_weights = vec![f32::NAN; filter.weights()];
        conv::backward_weights(isa, conv, algorithm, &input, &grad, &mut grad_weights);
        let expected = reference::backward_weights(conv, &input, &grad);
        assert_close(&format!("backward weights {what}"), &grad_weights, &expected, TOLERANCE);
    }
}

fn check_everywhere(filter: Filter, batch: usize, height: usize, width: usize) {
    let conv = Conv::new(filter, batch, height, width).unwrap();
    Isa::available().into_iter().for_each(|isa| check(&conv, isa));
}

#[test]
fn layers_of_a_residual_network_match_the_definition() {
    check_everywhere(Filter::new(3, 64, 7, 2), 2, 30, 30);
    check_everywhere(Filter::new(3, 32, 3, 2), 1, 17, 19);
    check_everywhere(Filter::new(64, 64, 3, 1), 2, 15, 15);
    check_everywhere(Filter::new(16, 48, 3, 1), 2, 45, 43);
    check_everywhere(Filter::new(32, 16, 3, 1).dilated(2), 2, 15, 13);
    check_everywhere(Filter::new(32, 16, 3, 1).dilated(4), 1, 15, 13);
    check_everywhere(Filter::new(288, 16, 3, 1), 1, 8, 7);
    check_everywhere(Filter::new(64, 128, 3, 2), 1, 15, 15);
    check_everywhere(Filter::new(64, 128, 1, 2), 2, 15, 15);
    check_everywhere(Filter::new(256, 64, 1, 1), 1, 8, 8);
    check_everywhere(Filter::new(300, 16, 3, 1).dilated(2), 1, 8, 8);
    check_everywhere(Filter::new(16, 300, 3, 1).dilated(4), 1, 8, 8);
    check_everywhere(Filter::new(600, 2, 1, 1), 1, 8, 8);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_convolution_matches_the_definition(
        (in_channels, out_channels) in (1..40_usize, 1..40_usize),
        wide in any::<bool>(),
        kernel in prop::sample::select(vec![1, 2, 3, 5, 7]),
        stride in 1..4_usize,
        dilation in prop::sample::select(vec![1, 2, 4]),
        padding in prop::option::of(0..4_usize),
        batch in 0..4_usize,
        (height, width) in (1..20_usize, 1..20_usize),
    ) {
        let round = |channels: usize| if wide { channels.next_multiple_of(16) } else { channels };
        let mut filter =
            Filter::new(round(in_channels), round(out_channels), kernel, stride).dilated(dilation);
        filter.padding = padding.unwrap_or(filter.padding);
        if let Ok(conv) = Conv::new(filter, batch, height, width) {
            Isa::available().into_iter().for_each(|isa| check(&conv, isa));
        }
    }
}

#[test]
fn the_epilogue_adds_bias_and_residual_then_rectifies() {
    for out_channels in [5, 32] {
        let conv = Conv::new(Filter::new(4, out_channels, 1, 1), 2, 7, 5).unwrap();
        let (weights, input) = (noise(1, conv.filter().weights()), noise(2, conv.input_len()));
        let (bias, residual) = (noise(3, out_channels), noise(4, conv.output_len()));
        let mut expected = reference::forward(&conv, &weights, &input);
        for (at, value) in expected.iter_mut().enumerate() {
            *value += f64::from(bias[at % out_channels]) + f64::from(residual[at]);
            *value = value.max(0.0);
        }
        for isa in Isa::available() {
            let packed = PackedWeights::forward(isa, conv.filter(), Algorithm::Direct, &weights);
            let epilogue = Epilogue { bias: Some(&bias), residual: Some(&residual), relu: true };
            let mut output = vec![f32::NAN; conv.output_len()];
            conv::forward(&conv, &packed, &input, epilogue, &mut output);
            assert_close(&format!("{isa:?}"), &output, &expected, TOLERANCE);
        }
    }
}

#[test]
fn backward_data_adds_the_gradient_of_the_other_path() {
    let conv = Conv::new(Filter::new(6, 8, 3, 2), 1, 9, 9).unwrap();
    let (weights, grad) = (noise(1, conv.filter().weights()), noise(2, conv.output_len()));
    let other = noise(3, conv.input_len());
    let mut expected = reference::backward_data(&conv, &weights, &grad);
    expected.iter_mut().zip(&other).for_each(|(sum, &other)| *sum += f64::from(other));
    for isa in Isa::available() {
        let packed = PackedWeights::backward_data(isa, conv.filter(), Algorithm::Direct, &weights);
        let mut result = vec![f32::NAN; conv.input_len()];
        conv::backward_data(&conv, &packed, &grad, Some(&other), &mut result);
        assert_close(&format!("{isa:?}"), &result, &expected, TOLERANCE);
    }
}

#[test]
fn moments_of_the_output_come_with_it() {
    for (in_channels, out_channels, size) in [(7, 5, 3), (7, 64, 23), (16, 32, 23), (16, 64, 90)] {
        let conv = Conv::new(Filter::new(in_channels, out_channels, 3, 1), 2, size, size).unwrap();
        let (weights, input) = (noise(1, conv.filter().weights()), noise(2, conv.input_len()));
        for isa in Isa::available() {
            let packed = PackedWeights::forward(
                isa,
                conv.filter(),
                Algorithm::fastest(conv.filter()),
                &weights,
            );
            let mut output = vec![f32::NAN; conv.output_len()];
            let moments = conv::forward_with_moments(&conv, &packed, &input, &mut output);
            let (mean, variance) = crate::batch_norm::moments(&output, out_channels);
            let deviation = variance.iter().fold(0.0, |a: f64, &b| a.max(b)).sqrt();
            assert_within(&format!("mean {isa:?}"), &moments.mean, &mean, 1e-6 * deviation);
            assert_close(&format!("variance {isa:?}"), &moments.variance, &variance, 1e-5);
        }
    }
}

#[test]
fn moments_skip_what_a_wide_dilation_computes_outside_of_the_image() {
    let (filter, isa) = (Filter::new(16, 16, 3, 1).dilated(4), Isa::detect());
    let conv = Conv::new(filter, 1, 3, 900).unwrap();
    let (weights, input) = (noise(1, filter.weights()), noise(2, conv.input_len()));
    let packed = PackedWeights::forward(isa, &filter, Algorithm::Winograd, &weights);
    let mut output = vec![f32::NAN; conv.output_len()];
    let moments = conv::forward_with_moments(&conv, &packed, &input, &mut output);
    let (_, variance) = crate::batch_norm::moments(&output, 16);
    assert_close("variance", &moments.variance, &variance, 1e-5);
}

#[test]
fn an_image_convolves_to_the_same_bytes_in_any_batch() {
    for filter in [Filter::new(16, 24, 3, 1), Filter::new(16, 32, 3, 1)] {
        let weights = noise(1, filter.weights());
        let packed =
            PackedWeights::forward(Isa::detect(), &filter, Algorithm::fastest(&filter), &weights);
        let (one, three) =
            (Conv::new(filter, 1, 11, 13).unwrap(), Conv::new(filter, 3, 11, 13).unwrap());
        let input = noise(2, three.input_len());
        let mut together = vec![0.0; three.output_len()];
        conv::forward(&three, &packed, &input, Epilogue::default(), &mut together);
        for (image, expected) in
            input.chunks(one.input_len()).zip(together.chunks(one.output_len()))
        {
            let mut alone = vec![0.0; one.output_len()];
            conv::forward(&one, &packed, image, Epilogue::default(), &mut alone);
            assert_eq!(alone, expected);
        }
    }
}

#[test]
fn updated_weights_replace_the_packed_ones() {
    let filter = Filter::new(4, 4, 3, 2);
    let (old, new) = (noise(1, filter.weights()), noise(2, filter.weights()));
    let conv = Conv::new(filter, 1, 8, 8).unwrap();
    let grad = noise(3, conv.output_len());
    let mut packed =
        PackedWeights::backward_data(Isa::detect(), &filter, Algorithm::fastest(&filter), &old);
    packed.update(&new);
    let mut result = vec![0.0; conv.input_len()];
    conv::backward_data(&conv, &packed, &grad, None, &mut result);
    let expected = reference::backward_data(&conv, &new, &grad);
    assert_close("updated", &result, &expected, TOLERANCE);
}

/// Root mean square of the error, relative to that of the result.
fn relative_error(actual: &[f32], expected: &[f64]) -> f64 {
    let error: f64 = actual.iter().zip(expected).map(|(&a, e)| (f64::from(a) - e).powi(2)).sum();
    (error / expected.iter().map(|e| e * e).sum::<f64>()).sqrt()
}

#[test]
fn winograd_rounds_at_most_three_times_as_much_as_the_plain_sum() {
    let conv = Conv::new(Filter::new(256, 16, 3, 1), 2, 16, 16).unwrap();
    let filter = conv.filter();
    // Half-wave rectified inputs, as after a ReLU.
    let input: Vec<f32> = noise(1, conv.input_len()).iter().map(|x| x.max(0.0)).collect();
    let (weights, grad) = (noise(2, filter.weights()), noise(3, conv.output_len()));
    let errors = |algorithm: Algorithm| {
        let isa = Isa::detect();
        let mut output = vec![0.0; conv.output_len()];
        let packed = PackedWeights::forward(isa, filter, algorithm, &weights);
        conv::forward(&conv, &packed, &input, Epilogue::default(), &mut output);
        let mut grad_weights = vec![0.0; filter.weights()];
        conv::backward_weights(isa, &conv, algorithm, &input, &grad, &mut grad_weights);
        (
            relative_error(&output, &reference::forward(&conv, &weights, &input)),
            relative_error(&grad_weights, &reference::backward_weights(&conv, &input, &grad)),
        )
    };
    let (direct, winograd) = (errors(Algorithm::Direct), errors(Algorithm::Winograd));
    println!("forward and weights: direct {direct:?}, Winograd {winograd:?}");
    assert!(winograd.0 < 3.0 * direct.0 && winograd.1 < 3.0 * direct.1);
    assert!(winograd.0 < 2e-6 && winograd.1 < 2e-6);
}

#[test]
fn kernels_transformed_on_the_fly_give_the_same_bytes_as_kept_ones() {
    for (channels, dilation, batch, side) in
        [([160, 48], 1, 1, 15), ([16, 32], 2, 3, 21), ([48, 16], 1, 2, 70), ([272, 16], 4, 1, 19)]
    {
        let [input, output] = channels;
        let filter = Filter::new(input, output, 3, 1).dilated(dilation);
        let conv = Conv::new(filter, batch, side, side).unwrap();
        let weights = noise(1, filter.weights());
        for isa in Isa::available() {
            let both = [Algorithm::Winograd, Algorithm::WinogradOnTheFly].map(|algorithm| {
                let packed = PackedWeights::forward(isa, &filter, algorithm, &weights);
                let mut output = vec![f32::NAN; conv.output_len()];
                let image = noise(2, conv.input_len());
                let moments = conv::forward_with_moments(&conv, &packed, &image, &mut output);
                let packed = PackedWeights::backward_data(isa, &filter, algorithm, &weights);
                let mut back = vec![f32::NAN; conv.input_len()];
                let grad = noise(3, conv.output_len());
                conv::backward_data(&conv, &packed, &grad, None, &mut back);
                (output, moments.mean, moments.variance, back)
            });
            assert!(both[0] == both[1], "{isa:?} {conv:?}");
        }
    }
}

#[test]
fn few_tiles_are_convolved_directly_where_kernels_would_be_transformed_on_the_fly() {
    let filter = Filter::new(32, 32, 3, 1);
    let conv = Conv::new(filter, 1, 8, 8).unwrap();
    let (weights, image) = (noise(1, filter.weights()), noise(2, conv.input_len()));
    let both = [Algorithm::Direct, Algorithm::WinogradOnTheFly].map(|algorithm| {
        let packed = PackedWeights::forward(Isa::detect(), &filter, algorithm, &weights);
        let mut output = vec![f32::NAN; conv.output_len()];
        conv::forward(&conv, &packed, &image, Epilogue::default(), &mut output);
        output
    });
    assert!(both[0] == both[1]);
}
