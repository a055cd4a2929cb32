//! Ridge regression solved in closed form, tested on held-out images, and how its error
//! depends on the features.
//!
//! ```text
//! A = X_train − μ,  μ = mean X_train        W = (AᵀA + λI)⁻¹ Aᵀ Y_train
//! error = mean (Y_test − (X_test − μ) W)²
//! ```
//!
//! With G = ∂error/∂W and P = (AᵀA + λI)⁻¹ G, the solution contributes
//! `∂error/∂A = (Y − A W) Pᵀ − A P Wᵀ`.

use nalgebra::DMatrix;

/// The held-out error of a ridge regression.
#[derive(Debug, Clone)]
pub(super) struct HeldOutError {
    /// Mean of the squared residuals of the test images.
    pub(super) error: f32,
    /// By the features of the training images, images × dimensions.
    pub(super) by_train: DMatrix<f32>,
    /// By the features of the test images.
    pub(super) by_test: DMatrix<f32>,
}

/// Fits on one half and tests on the other; features are images × dimensions, targets
/// images × classes.
pub(super) fn held_out_error(
    [train, test]: [&DMatrix<f32>; 2],
    [train_targets, test_targets]: [&DMatrix<f32>; 2],
    ridge: f32,
) -> HeldOutError {
    let dimensions = train.ncols();
    let mean = train.row_mean();
    let centred = |features: &DMatrix<f32>| {
        let mut features = features.clone();
        features.row_iter_mut().for_each(|mut row| row -= &mean);
        features
    };
    let (a, b) = (centred(train), centred(test));
    let gram = a.tr_mul(&a) + DMatrix::identity(dimensions, dimensions) * ridge;
    // A positive ridge makes it positive definite, whatever the features, which are finite.
    let solver = gram.cholesky().expect("the ridge is positive");
    let weights = solver.solve(&a.tr_mul(train_targets));

    let residuals = test_targets - &b * &weights;
    let count = residuals.len() as f32;
    let error = residuals.norm_squared() / count;
    // ∂error/∂(predictions)
    let by_predictions = residuals * (-2.0 / count);
    let by_weights = b.tr_mul(&by_predictions);
    let by_test = &by_predictions * weights.transpose();
    let adjoint = solver.solve(&by_weights);
    let train_residuals = train_targets - &a * &weights;
    let mut by_train = train_residuals * adjoint.transpose() - &a * adjoint * weights.transpose();
    // The mean is of the training images, and taken from both halves.
    let by_mean = (by_train.row_sum() + by_test.row_sum()) / train.nrows() as f32;
    by_train.row_iter_mut().for_each(|mut row| row -= &by_mean);
    HeldOutError { error, by_train, by_test }
}

/// One-hot labels with their mean taken out, scaled so that knowing nothing costs 1.
pub(super) fn targets(labels: &[usize], classes: usize) -> DMatrix<f32> {
    let share = 1.0 / classes as f32;
    let spread = (share * (1.0 - share)).sqrt();
    DMatrix::from_fn(labels.len(), classes, |image, class| {
        (f32::from(u8::from(labels[image] == class)) - share) / spread
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Purpose, Stream};

    fn drawn(rows: usize, columns: usize, index: u64) -> DMatrix<f32> {
        let mut stream = Stream::new(2, Purpose::Synthetic, 0, index);
        DMatrix::from_fn(rows, columns, |_, _| stream.normal() as f32)
    }

    #[test]
    fn knowing_nothing_costs_one() {
        let labels = [0, 1, 2, 0, 1, 2];
        let targets = targets(&labels, 3);
        assert!((targets.norm_squared() / 18.0 - 1.0).abs() < 1e-6);
        // Features that do not vary leave nothing to predict from.
        let constant = DMatrix::from_element(6, 2, 3.0);
        let found = held_out_error([&constant, &constant], [&targets, &targets], 0.1);
        assert!((found.error - 1.0).abs() < 1e-6, "{}", found.error);
    }

    #[test]
    fn one_dimension_is_solved_by_hand() {
        // Centred features −1 and 1, targets −1 and 1: W = 2/(2 + λ) = ½ with λ = 2.
        let train = DMatrix::from_column_slice(2, 1, &[1.0, 3.0]);
        let train_targets = DMatrix::from_column_slice(2, 1, &[-1.0, 1.0]);
        let test = DMatrix::from_column_slice(1, 1, &[4.0]);
        let test_targets = DMatrix::from_column_slice(1, 1, &[2.0]);
        let found = held_out_error([&train, &test], [&train_targets, &test_targets], 2.0);
        // (2 − 2·½)²
        assert!((found.error - 1.0).abs() < 1e-6);
        // −2 · 1 · ½
        assert!((found.by_test[(0, 0)] + 1.0).abs() < 1e-6);
    }

    #[test]
    fn the_gradient_through_the_solution_is_that_of_finite_differences() {
        let (train, test) = (drawn(7, 3, 0), drawn(5, 3, 1));
        let (train_targets, test_targets) = (drawn(7, 2, 2), drawn(5, 2, 3));
        let error = |train: &DMatrix<f32>, test: &DMatrix<f32>| {
            held_out_error([train, test], [&train_targets, &test_targets], 0.5).error
        };
        let found = held_out_error([&train, &test], [&train_targets, &test_targets], 0.5);
        let step = 1e-2;
        let moved = |features: &DMatrix<f32>, at: (usize, usize), by: f32| {
            let mut features = features.clone();
            features[at] += by;
            features
        };
        for at in (0..7).flat_map(|row| (0..3).map(move |column| (row, column))) {
            let difference =
                error(&moved(&train, at, step), &test) - error(&moved(&train, at, -step), &test);
            let expected = difference / (2.0 * step);
            assert!((found.by_train[at] - expected).abs() < 5e-3, "{at:?}: {expected}");
        }
        for at in (0..5).flat_map(|row| (0..3).map(move |column| (row, column))) {
            let difference =
                error(&train, &moved(&test, at, step)) - error(&train, &moved(&test, at, -step));
            let expected = difference / (2.0 * step);
            assert!((found.by_test[at] - expected).abs() < 5e-3, "{at:?}: {expected}");
        }
    }
}
