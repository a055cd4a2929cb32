//! The held-out min-max head: min-max entropy without a trained classifier.
//!
//! At each step the images are split at random into halves. A ridge regression of the label on
//! the pooled foreground is solved on one half and tested on the other, both ways round, and
//! likewise on the pooled background:
//!
//! ```text
//! loss = err⁺ − min(err⁻, 1) − 2s [π ln S + (1 − π) ln(1 − S)]
//! ```
//!
//! where 1 is the error at chance. Nothing can be memorized, since the regression is never tested
//! on images that it was fitted to.
//!
//! The regression, whose ridge is λ, is solved in closed form:
//!
//! ```text
//! A = X_train − μ,  μ = mean X_train        W = (AᵀA + λI)⁻¹ Aᵀ Y_train
//! error = mean (Y_test − (X_test − μ) W)²
//! ```
//!
//! With G = ∂error/∂W and P = (AᵀA + λI)⁻¹ G, the solution contributes
//! `∂error/∂A = (Y − A W) Pᵀ − A P Wᵀ`.

use nalgebra::DMatrix;

use super::{
    cells::LabelledCells,
    pooled::{LinearMask, MaskTraining, Pooled, PooledGradient, size_term},
};
use crate::rng::{Purpose, Stream};

/// Trains one held-out min-max head, by regressions with this `ridge`.
pub(super) fn train(
    data: &LabelledCells,
    training: &MaskTraining,
    ridge: f32,
    seed: u64,
    index: u64,
) -> LinearMask {
    let mut stream = Stream::new(seed, Purpose::Init, 1, index);
    let mask = LinearMask::random(data.dimensions, 0.05, &mut stream);
    mask.trained(data, training, stream, |pooled, labels| {
        loss(pooled, &targets(labels, data.classes), training, ridge).1
    })
}

/// The loss of a batch, which is split in the middle, and its gradient by the pooled features.
pub(super) fn loss(
    pooled: &[Pooled<'_>],
    targets: &DMatrix<f32>,
    training: &MaskTraining,
    ridge: f32,
) -> (f32, Vec<PooledGradient>) {
    let side = |of: for<'a> fn(&'a Pooled<'_>) -> &'a [f32]| {
        let rows: Vec<f32> = pooled.iter().flat_map(|pooled| of(pooled).iter().copied()).collect();
        DMatrix::from_row_slice(pooled.len(), rows.len() / pooled.len(), &rows)
    };
    let foreground = both_ways(&side(|pooled| &pooled.foreground), targets, ridge);
    let background = both_ways(&side(|pooled| &pooled.background), targets, ridge);
    // A background error above chance is not rewarded further.
    let weight = if background.0 < 1.0 { -1.0 } else { 0.0 };
    let mut sum = foreground.0 - background.0.min(1.0);
    let gradients = pooled.iter().enumerate().map(|(image, pooled)| {
        let (size, slope) = size_term(pooled.area(), training.expected_area, training.size_weight);
        let share = 1.0 / targets.nrows() as f32;
        sum += share * size;
        PooledGradient {
            foreground: foreground.1.row(image).iter().copied().collect(),
            background: background.1.row(image).iter().map(|slope| weight * slope).collect(),
            area: share * slope,
        }
    });
    let gradients = gradients.collect();
    (sum, gradients)
}

/// The mean of the errors with each half held out, and its gradient by the features.
fn both_ways(features: &DMatrix<f32>, targets: &DMatrix<f32>, ridge: f32) -> (f32, DMatrix<f32>) {
    let half = features.nrows() / 2;
    let rest = features.nrows() - half;
    let halves =
        |of: &DMatrix<f32>| [of.rows(0, half).into_owned(), of.rows(half, rest).into_owned()];
    let ([a, b], [a_targets, b_targets]) = (halves(features), halves(targets));
    let forth = held_out_error([&a, &b], [&a_targets, &b_targets], ridge);
    let back = held_out_error([&b, &a], [&b_targets, &a_targets], ridge);
    let mut gradient = DMatrix::zeros(features.nrows(), features.ncols());
    let HeldOutError { by_train, by_test, .. } = &forth;
    gradient.rows_mut(0, half).copy_from(&((by_train + &back.by_test) * 0.5));
    gradient.rows_mut(half, rest).copy_from(&((by_test + &back.by_train) * 0.5));
    ((forth.error + back.error) / 2.0, gradient)
}

/// The held-out error of a ridge regression.
#[derive(Debug, Clone)]
struct HeldOutError {
    /// Mean of the squared residuals of the test images.
    error: f32,
    /// By the features of the training images, images × dimensions.
    by_train: DMatrix<f32>,
    /// By the features of the test images.
    by_test: DMatrix<f32>,
}

/// Fits on one half and tests on the other; features are images × dimensions, targets
/// images × classes.
fn held_out_error(
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
    // The mean of the training half is subtracted from both halves.
    let by_mean = (by_train.row_sum() + by_test.row_sum()) / train.nrows() as f32;
    by_train.row_iter_mut().for_each(|mut row| row -= &by_mean);
    HeldOutError { error, by_train, by_test }
}

/// Centred one-hot labels, scaled so that the error at chance is 1.
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
    use crate::method::probe::cells::tests::half_and_half;

    const RIDGE: f32 = 1.0;

    fn training() -> MaskTraining {
        MaskTraining {
            steps: 150,
            images: 256,
            cells: 30,
            learning_rate: 1e-2,
            weight_decay: 1e-3,
            size_weight: 0.2,
            expected_area: 0.5,
        }
    }

    #[test]
    fn the_mask_covers_where_the_class_is_and_leaves_out_where_it_is_not() {
        let data = half_and_half(3, 8, 6);
        let head = train(&data, &training(), RIDGE, 1, 0);
        let scores = head.scores(&data.read(1));
        let mean = |half: &[f32]| half.iter().sum::<f32>() / half.len() as f32;
        assert!(mean(&scores[..20]) > 0.0 && mean(&scores[20..]) < 0.0, "{scores:?}");
        assert_eq!(
            train(&data, &training(), RIDGE, 1, 0),
            head,
            "the same seed gives the same head"
        );
    }

    #[test]
    fn the_whole_gradient_is_that_of_finite_differences() {
        let data = half_and_half(3, 4, 4);
        let cells: Vec<Vec<f32>> = (0..12).map(|image| data.read(image)).collect();
        let targets = targets(&data.labels, 3);
        let training = MaskTraining { expected_area: 0.3, ..training() };
        let value = |mask: &LinearMask| {
            let pooled: Vec<_> = cells.iter().map(|cells| mask.pool(cells)).collect();
            loss(&pooled, &targets, &training, RIDGE)
        };
        let mask = LinearMask { weights: vec![0.3, -0.2, 0.4, 0.7, -0.1] };
        let mut found = [0.0; 5];
        for (cells, gradient) in cells.iter().zip(value(&mask).1) {
            mask.pool(cells).backward(&gradient, &mut found);
        }
        let step = 1e-2;
        for (index, found) in found.iter().enumerate() {
            let moved = |by: f32| {
                let mut mask = mask.clone();
                mask.weights[index] += by;
                value(&mask).0
            };
            let expected = (moved(step) - moved(-step)) / (2.0 * step);
            assert!((found - expected).abs() < 3e-3, "{index}: {found} {expected}");
        }
    }

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
