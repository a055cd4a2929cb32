//! Tests of the parts of the probe against scikit-learn, PyTorch and SciPy, whose results are in
//! `tests/it/fixtures/probe.json`.

use nalgebra::{DMatrix, DVector};
use serde::Deserialize;

use super::{
    adamw::AdamW,
    heads::HELD_OUT,
    held_out,
    mlp::Mlp,
    pooled::{LinearMask, Pooled},
    projection::Projection,
    smooth::smooth,
    student,
};
use crate::stats::{LinearClassifier, skewness};

#[derive(Deserialize)]
struct Fixture {
    pca: Pca,
    held_out: HeldOut,
    student: Student,
    adamw: Vec<f32>,
    classifier: Classifier,
    smooth: Smooth,
    skewness: Skewness,
}

#[derive(Deserialize)]
struct Pca {
    cells: Vec<f32>,
    projected: Vec<f32>,
}

#[derive(Deserialize)]
struct HeldOut {
    features: Vec<f32>,
    labels: Vec<usize>,
    weight: Vec<f32>,
    bias: f32,
    loss: f32,
    gradient: Vec<f32>,
}

#[derive(Deserialize)]
struct Student {
    cells: Vec<f32>,
    targets: Vec<bool>,
    parameters: [Vec<f32>; 4],
    loss: f32,
    gradients: [Vec<f32>; 4],
}

#[derive(Deserialize)]
struct Classifier {
    features: Vec<f32>,
    labels: Vec<usize>,
    log_probabilities: Vec<f64>,
}

#[derive(Deserialize)]
struct Smooth {
    map: Vec<f32>,
    smoothed: Vec<f32>,
}

#[derive(Deserialize)]
struct Skewness {
    values: Vec<f32>,
    skewness: f64,
}

fn fixture() -> Fixture {
    serde_json::from_str(include_str!("../../../tests/it/fixtures/probe.json")).unwrap()
}

fn assert_close(found: &[f32], expected: &[f32], tolerance: f32) {
    assert_eq!(found.len(), expected.len());
    let farthest = found.iter().zip(expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    assert!(farthest < tolerance, "{farthest}");
}

#[test]
fn the_projection_is_scikit_learn_s_whitened_pca_up_to_signs() {
    let Pca { cells, projected } = fixture().pca;
    let cells = DMatrix::from_column_slice(6, 60, &cells);
    let found = Projection::fit(&cells, 4).apply(&cells);
    let expected = DMatrix::from_column_slice(4, 60, &projected);
    for dimension in 0..4 {
        let (found, expected) = (found.row(dimension), expected.row(dimension));
        let sign = found.dot(&expected).signum();
        assert!((found * sign - expected).amax() < 2e-3, "dimension {dimension}");
    }
}

#[test]
fn the_held_out_loss_and_its_gradient_are_pytorch_s() {
    let HeldOut { features, labels, weight, bias, loss, gradient } = fixture().held_out;
    let head = LinearMask { weights: [weight, vec![bias]].concat() };
    let pooled: Vec<Pooled<'_>> = features.chunks_exact(40).map(|cells| head.pool(cells)).collect();
    let (found, by_pooled) =
        held_out::loss(&pooled, &held_out::targets(&labels, 3), &HELD_OUT, 2.0);
    assert!((found - loss).abs() < 1e-5, "{found} {loss}");
    let mut by_mask = [0.0; 5];
    for (pooled, by_pooled) in pooled.iter().zip(&by_pooled) {
        pooled.backward(by_pooled, &mut by_mask);
    }
    assert_close(&by_mask, &gradient, 1e-4);
}

fn network([hidden, hidden_bias, output, output_bias]: &[Vec<f32>; 4]) -> Mlp {
    Mlp {
        hidden: DMatrix::from_row_slice(4, 3, hidden),
        hidden_bias: DVector::from_column_slice(hidden_bias),
        output: DMatrix::from_row_slice(1, 4, output),
        output_bias: DVector::from_column_slice(output_bias),
    }
}

#[test]
fn the_student_s_loss_and_its_gradient_are_pytorch_s() {
    let Student { cells, targets, parameters, loss, gradients } = fixture().student;
    let (found, gradient) = student::loss(&network(&parameters), &cells, &[1.0; 24], &targets);
    assert!((found - loss).abs() < 1e-5, "{found} {loss}");
    assert_close(&gradient, &network(&gradients).weights(), 1e-5);
}

#[test]
fn five_updates_are_those_of_pytorch_s_adamw() {
    let mut weights = [1.0, -2.0, 0.5];
    let mut optimizer = AdamW::new(3, 5e-3, 1e-2);
    for step in 0..5_u8 {
        let step = f32::from(step);
        optimizer.update(&mut weights, &[0.3, -0.1 * step, 2.0 - step]);
    }
    assert_close(&weights, &fixture().adamw, 1e-6);
}

#[test]
fn the_classifier_is_scikit_learn_s_logistic_regression() {
    let Classifier { features, labels, log_probabilities } = fixture().classifier;
    let images: Vec<&[f32]> = features.chunks_exact(5).collect();
    let fitted = LinearClassifier::fit(&images, &labels, 3, 0.1);
    for (image, expected) in images.iter().zip(log_probabilities.chunks_exact(3)) {
        for (found, expected) in fitted.log_probabilities(image).iter().zip(expected) {
            assert!((found - expected).abs() < 1e-4, "{found} {expected}");
        }
    }
}

#[test]
fn smoothing_and_skewness_are_those_of_scipy() {
    let Smooth { map, smoothed } = fixture().smooth;
    assert_close(&smooth(&map, [5, 7], 1.5), &smoothed, 1e-5);
    let Skewness { values, skewness: expected } = fixture().skewness;
    assert!((skewness(&values) - expected).abs() < 1e-6);
}
