//! The held-out min-max head: min-max entropy without a trained classifier.
//!
//! At each step the images are split at random into halves. A ridge regression of the label on
//! the pooled foreground is solved on one half and tested on the other, both ways round, and
//! likewise on the pooled background:
//!
//! ```text
//! loss = err⁺ − λ min(err⁻, 1) − 2s [π ln S + (1 − π) ln(1 − S)]
//! ```
//!
//! where 1 is the error of knowing nothing. Nothing can be memorized, since what is tested was
//! not fitted on, and no class can live by the absence of another.

use nalgebra::DMatrix;

use super::{
    cells::LabelledCells,
    pooled::{LinearMask, MaskRule, Pooled, PooledGradient, size_term},
    ridge::{HeldOutError, held_out_error, targets},
};
use crate::rng::{Purpose, Stream};

/// λ: weight of the background's error.
const BACKGROUND: f32 = 1.0;

/// Trains one held-out min-max head, by regressions with this `ridge`.
pub(super) fn train(
    data: &LabelledCells,
    rule: &MaskRule,
    ridge: f32,
    seed: u64,
    index: u64,
) -> LinearMask {
    let mut stream = Stream::new(seed, Purpose::Init, 1, index);
    let mask = LinearMask::drawn(data.dimensions, 0.05, &mut stream);
    mask.trained(data, rule, stream, |pooled, labels| {
        loss(pooled, &targets(labels, data.classes), rule, ridge).1
    })
}

/// The loss of a batch, split in the middle, and its gradient by what was pooled of each image.
pub(super) fn loss(
    pooled: &[Pooled<'_>],
    targets: &DMatrix<f32>,
    rule: &MaskRule,
    ridge: f32,
) -> (f32, Vec<PooledGradient>) {
    let side = |of: for<'a> fn(&'a Pooled<'_>) -> &'a [f32]| {
        let rows: Vec<f32> = pooled.iter().flat_map(|pooled| of(pooled).iter().copied()).collect();
        DMatrix::from_row_slice(pooled.len(), rows.len() / pooled.len(), &rows)
    };
    let foreground = both_ways(&side(|pooled| &pooled.foreground), targets, ridge);
    let background = both_ways(&side(|pooled| &pooled.background), targets, ridge);
    // Beyond chance there is nothing to gain from knowing less.
    let weight = if background.0 < 1.0 { -BACKGROUND } else { 0.0 };
    let mut sum = foreground.0 - BACKGROUND * background.0.min(1.0);
    let gradients = pooled.iter().enumerate().map(|(image, pooled)| {
        let (size, slope) = size_term(pooled.area(), rule.area, rule.size);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::method::probe::cells::tests::half_and_half;

    const RIDGE: f32 = 1.0;

    fn rule() -> MaskRule {
        MaskRule {
            steps: 150,
            images: 256,
            cells: 30,
            rate: 1e-2,
            decay: 1e-3,
            size: 0.2,
            area: 0.5,
        }
    }

    #[test]
    fn the_mask_covers_where_the_class_is_and_leaves_out_where_it_is_not() {
        let data = half_and_half(3, 8, 6);
        let head = train(&data, &rule(), RIDGE, 1, 0);
        let scores = head.scores(&data.read(1));
        let mean = |half: &[f32]| half.iter().sum::<f32>() / half.len() as f32;
        assert!(mean(&scores[..20]) > 0.0 && mean(&scores[20..]) < 0.0, "{scores:?}");
        assert_eq!(train(&data, &rule(), RIDGE, 1, 0), head, "the same seed gives the same head");
    }

    #[test]
    fn the_whole_gradient_is_that_of_finite_differences() {
        let data = half_and_half(3, 4, 4);
        let cells: Vec<Vec<f32>> = (0..12).map(|image| data.read(image)).collect();
        let targets = targets(&data.labels, 3);
        let rule = MaskRule { area: 0.3, ..rule() };
        let value = |mask: &LinearMask| {
            let pooled: Vec<_> = cells.iter().map(|cells| mask.pool(cells)).collect();
            loss(&pooled, &targets, &rule, RIDGE)
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
}
