//! Any number of threads gives the same bytes.

use conv_kernels::{
    Isa,
    batch_norm::{self, Activation, BatchNorm, Moments},
    conv::{self, Algorithm, Conv, Filter, PackedWeights},
};

use crate::reference::noise;

/// Everything a training step computes for one layer.
fn layer(isa: Isa, conv: &Conv) -> Vec<Vec<f32>> {
    let filter = conv.filter();
    let (weights, input) = (noise(1, filter.weights()), noise(2, conv.input_len()));
    let mut output = vec![0.0; conv.output_len()];
    let packed = PackedWeights::forward(isa, filter, Algorithm::fastest(filter), &weights);
    let Moments { mean, variance, .. } =
        conv::forward_with_moments(conv, &packed, &input, &mut output);
    let (gamma, beta) = (noise(3, filter.out_channels), noise(4, filter.out_channels));
    let norm =
        BatchNorm { mean: &mean, variance: &variance, gamma: &gamma, beta: &beta, epsilon: 1e-5 };
    let mut activated = vec![0.0; conv.output_len()];
    batch_norm::normalize(isa, &norm, &output, None, true, &mut activated);
    let mut grad = output.clone();
    let (grad_gamma, grad_beta) = batch_norm::backward(
        isa,
        &norm,
        &mut grad,
        Activation::ReluOf(&activated),
        &mut noise(5, conv.output_len()),
        false,
        |part| Some(part.clone()),
    );
    let mut grad_input = vec![0.0; conv.input_len()];
    let packed = PackedWeights::backward_data(isa, filter, Algorithm::fastest(filter), &weights);
    conv::backward_data(conv, &packed, &grad, None, &mut grad_input);
    let mut grad_weights = vec![0.0; filter.weights()];
    conv::backward_weights(isa, conv, Algorithm::fastest(filter), &input, &grad, &mut grad_weights);
    let alone = Moments::measure(isa, &output, filter.out_channels);
    vec![
        output,
        alone.mean,
        alone.variance,
        activated,
        grad_gamma,
        grad_beta,
        grad_input,
        grad_weights,
    ]
}

#[test]
fn one_two_and_five_threads_agree_to_the_byte() {
    for isa in Isa::available() {
        for filter in [
            Filter::new(20, 40, 3, 2),
            Filter::new(16, 32, 3, 1),
            Filter::new(48, 32, 3, 1).dilated(4),
            Filter::new(3, 16, 7, 2),
            Filter::new(64, 96, 1, 1),
        ] {
            let conv = Conv::new(filter, 3, 37, 29).unwrap();
            let run = |threads: usize| {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                pool.install(|| layer(isa, &conv))
            };
            let one = run(1);
            assert!(one == run(2), "{isa:?} {filter:?}");
            assert!(one == run(5), "{isa:?} {filter:?}");
        }
    }
}
