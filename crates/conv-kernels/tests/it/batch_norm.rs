//! Batch norm and what is fused with it.

use conv_kernels::{
    Isa,
    batch_norm::{self, Activation, BatchNorm, Moments, Sums},
};
use proptest::prelude::*;

use crate::reference::{assert_close, assert_within, noise};

const EPSILON: f32 = 1e-5;

/// Mean and biased variance of each channel.
pub(crate) fn moments(values: &[f32], channels: usize) -> (Vec<f64>, Vec<f64>) {
    let rows = (values.len() / channels) as f64;
    let column = |c: usize| values.iter().skip(c).step_by(channels).map(|&x| f64::from(x));
    let mean: Vec<f64> = (0..channels).map(|c| column(c).sum::<f64>() / rows).collect();
    let square = |c: usize| column(c).map(|x| (x - mean[c]).powi(2)).sum::<f64>() / rows;
    let variance = (0..channels).map(square).collect();
    (mean, variance)
}

struct Case {
    channels: usize,
    input: Vec<f32>,
    residual: Option<Vec<f32>>,
    relu: bool,
    gamma: Vec<f32>,
    beta: Vec<f32>,
}

impl Case {
    fn new(rows: usize, channels: usize, residual: bool, relu: bool) -> Self {
        Self {
            channels,
            input: noise(1, rows * channels),
            residual: residual.then(|| noise(2, rows * channels)),
            relu,
            gamma: noise(3, channels),
            beta: noise(4, channels),
        }
    }

    /// The definition, as a function of input, residual, gamma and beta.
    fn output(&self) -> Vec<f64> {
        let (mean, variance) = moments(&self.input, self.channels);
        let mut output = Vec::new();
        for (at, &x) in self.input.iter().enumerate() {
            let c = at % self.channels;
            let normal = (f64::from(x) - mean[c]) / (variance[c] + f64::from(EPSILON)).sqrt();
            let mut y = normal * f64::from(self.gamma[c]) + f64::from(self.beta[c]);
            y += self.residual.as_ref().map_or(0.0, |residual| f64::from(residual[at]));
            output.push(if self.relu { y.max(0.0) } else { y });
        }
        output
    }

    /// Slope of `Σ output · grad` along a change of one input, by central differences.
    fn slope(&mut self, grad: &[f32], at: usize, part: fn(&mut Self) -> &mut [f32]) -> f64 {
        let step = 1.0 / 256.0;
        let mut loss = |step: f32| -> f64 {
            part(self)[at] += step;
            let sum = self.output().iter().zip(grad).map(|(y, &g)| y * f64::from(g)).sum();
            part(self)[at] -= step;
            sum
        };
        (loss(step) - loss(-step)) / (2.0 * f64::from(step))
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn normalize_add_and_rectify_match_the_definition(
        (rows, channels) in (2..400_usize, 1..70_usize),
        (residual, relu) in (any::<bool>(), any::<bool>()),
    ) {
        check_normalize(&Case::new(rows, channels, residual, relu));
    }
}

/// Two values of a channel may be nearly the same: dividing by their spread enlarges what rounding
/// left of their mean.
#[test]
fn a_small_spread_enlarges_no_more_than_rounding() {
    check_normalize(&Case::new(2, 67, false, true));
}

fn check_normalize(case: &Case) {
    let channels = case.channels;
    let (mean, variance) = moments(&case.input, channels);
    let scales = variance.iter().zip(&case.gamma);
    let scales = scales.map(|(v, &g)| f64::from(g).abs() / (v + f64::from(EPSILON)).sqrt());
    let rounding = f64::from(f32::EPSILON) * scales.fold(0.0, f64::max);
    for isa in Isa::available() {
        let found = Moments::measure(isa, &case.input, channels);
        assert_within("mean", &found.mean, &mean, 1e-6);
        assert_close("variance", &found.variance, &variance, 1e-5);
        let norm = BatchNorm {
            mean: &found.mean,
            variance: &found.variance,
            gamma: &case.gamma,
            beta: &case.beta,
            epsilon: EPSILON,
        };
        let mut output = vec![f32::NAN; case.input.len()];
        let residual = case.residual.as_deref();
        batch_norm::normalize(isa, &norm, &case.input, residual, case.relu, &mut output);
        let expected = case.output();
        let square: f64 = expected.iter().map(|x| x * x).sum();
        let scale = (square / expected.len() as f64).sqrt().max(1e-3);
        assert_within("output", &output, &expected, 1e-5 * scale + rounding);
    }
}

fn check_gradients(mut case: Case) {
    let channels = case.channels;
    let grad = noise(5, case.input.len());
    let output: Vec<f32> = case.output().iter().map(|&y| y as f32).collect();
    let mut activations =
        vec![if case.relu { Activation::ReluOf(&output) } else { Activation::None }];
    if case.relu && case.residual.is_none() {
        activations.push(Activation::Relu);
    }
    let (gamma, beta, input) = (case.gamma.clone(), case.beta.clone(), case.input.clone());
    for (isa, activation) in
        Isa::available().into_iter().flat_map(|isa| activations.iter().map(move |&a| (isa, a)))
    {
        let moments = Moments::measure(isa, &input, channels);
        let norm = BatchNorm {
            mean: &moments.mean,
            variance: &moments.variance,
            gamma: &gamma,
            beta: &beta,
            epsilon: EPSILON,
        };
        let (mut grad_input, mut grad_residual) = (input.clone(), grad.clone());
        let (grad_gamma, grad_beta) = batch_norm::backward(
            isa,
            &norm,
            &mut grad_input,
            activation,
            &mut grad_residual,
            case.residual.is_some(),
            |part| Some(part.clone()),
        );
        let places = 0..input.len();
        let expected: Vec<f64> =
            places.clone().map(|at| case.slope(&grad, at, |case| &mut case.input)).collect();
        assert_close("input", &grad_input, &expected, 5e-3);
        let expected: Vec<f64> =
            (0..channels).map(|c| case.slope(&grad, c, |case| &mut case.gamma)).collect();
        assert_close("gamma", &grad_gamma, &expected, 1e-3);
        let expected: Vec<f64> =
            (0..channels).map(|c| case.slope(&grad, c, |case| &mut case.beta)).collect();
        assert_close("beta", &grad_beta, &expected, 1e-3);
        if case.residual.is_some() {
            let expected: Vec<f64> = places
                .map(|at| case.slope(&grad, at, |case| case.residual.as_mut().unwrap()))
                .collect();
            assert_close("residual", &grad_residual, &expected, 1e-3);
        } else {
            assert_eq!(grad_residual, grad, "without a residual the gradient stays");
        }
    }
}

/// Moves outputs away from the kink of the ReLU, where differences have no meaning.
fn away_from_zero(mut case: Case) -> Case {
    let output = case.output();
    let residual = case.residual.get_or_insert_with(|| vec![0.0; output.len()]);
    for (residual, y) in residual.iter_mut().zip(&output) {
        *residual += if *y > 0.0 { 0.5 } else { -0.5 };
    }
    case
}

#[test]
fn gradients_match_finite_differences() {
    check_gradients(Case::new(40, 5, false, false));
    check_gradients(Case::new(30, 9, true, false));
    check_gradients(away_from_zero(Case::new(30, 9, true, true)));
}

#[test]
fn running_statistics_are_constants_to_the_gradient() {
    let norm =
        BatchNorm { mean: &[1.0], variance: &[3.0], gamma: &[4.0], beta: &[0.0], epsilon: 1.0 };
    for activation in [Activation::Relu, Activation::ReluOf(&[4.0, 0.0])] {
        let mut values = [3.0, -1.0];
        let mut grad = [5.0, 7.0];
        let (gamma, beta) = batch_norm::backward(
            Isa::detect(),
            &norm,
            &mut values,
            activation,
            &mut grad,
            false,
            |_| None,
        );
        assert_eq!((values, gamma, beta), ([10.0, 0.0], vec![5.0], vec![5.0]));
    }
}

#[test]
fn parts_of_a_batch_that_know_each_other_s_sums_have_the_gradient_of_the_whole() {
    let (channels, isa) = (3, Isa::detect());
    let (input, grad) = (noise(1, 30), noise(2, 30));
    let (gamma, beta) = (noise(3, channels), noise(4, channels));
    let Moments { mean, variance, .. } = Moments::measure(isa, &input, channels);
    let norm = BatchNorm {
        mean: &mean,
        variance: &variance,
        gamma: &gamma,
        beta: &beta,
        epsilon: EPSILON,
    };
    let (mut expected, mut past) = (input.clone(), grad.clone());
    let relu = Activation::Relu;
    let alone = |part: &Sums| Some(part.clone());
    let (of_gamma, of_beta) =
        batch_norm::backward(isa, &norm, &mut expected, relu, &mut past, false, alone);

    let whole = Sums { gamma: of_gamma.clone(), beta: of_beta.clone(), pixels: 10 };
    let (mut found, mut parts) = (Vec::new(), Vec::new());
    for pixels in [0..4, 4..10] {
        let here = pixels.start * channels..pixels.end * channels;
        let (mut values, mut grad) = (input[here.clone()].to_vec(), grad[here].to_vec());
        let whole = |part: &Sums| {
            assert_eq!(part.pixels, pixels.len());
            parts.push(part.clone());
            Some(whole.clone())
        };
        batch_norm::backward(isa, &norm, &mut values, relu, &mut grad, false, whole);
        found.extend(values);
    }
    assert_eq!(found, expected);
    for c in 0..channels {
        assert!((parts[0].gamma[c] + parts[1].gamma[c] - of_gamma[c]).abs() < 1e-5);
        assert!((parts[0].beta[c] + parts[1].beta[c] - of_beta[c]).abs() < 1e-5);
    }
}
