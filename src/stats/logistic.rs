//! Multinomial logistic regression, solved to convergence and deterministically.
//!
//! Minimizes over weights `W` (a row per class) and intercepts `b`
//!
//! ```text
//! Σ_i −log softmax(W·x_i + b)_{y_i}  +  ‖W‖² / (2C)
//! ```
//!
//! The problem is convex, and its Hessian where all classes are equally probable is known, so that
//! L-BFGS preconditioned by it needs few steps and no tuning. The solution lies in the span of the
//! images: with fewer images than features it is computed in coordinates of that span, which is the
//! same solution in less time.

use std::collections::VecDeque;

use nalgebra::{DMatrix, DMatrixView, DVector, Dyn};
use rayon::prelude::*;

use super::factor::Factor;

/// Limit on the iterations; about thirty are needed.
const ROUNDS: usize = 100;
/// Pairs of steps and changes of the gradient that L-BFGS keeps.
const MEMORY: usize = 10;
/// The expected gain of a step, as a share of the loss, below which the solution has converged.
const TOLERANCE: f64 = 1e-12;
/// Images whose losses are summed apart, so that cores can share a large set without a change of
/// any sum.
const CHUNK: usize = 1024;
/// A feature whose spread is below this share of its mean is constant but for rounding.
const ROUNDING: f64 = 1e-6;
/// The intercept of a class without images.
const NEVER: f64 = -1e4;

/// A linear classifier: `softmax(W·x + b)`.
#[derive(Debug, Clone, PartialEq)]
pub struct LinearClassifier {
    /// W, classes × features.
    pub weights: DMatrix<f32>,
    /// b, one per class.
    pub intercepts: DVector<f32>,
}

/// Images with standardized features, ready to be fitted to their labels with any penalty.
#[derive(Debug)]
pub(super) struct Prepared {
    problem: Problem,
    /// Orthonormal basis of the span of the images, as columns, if the problem is stated in it.
    basis: Option<DMatrix<f64>>,
    /// Mean and spread of each feature.
    scale: Vec<(f64, f64)>,
    /// The classes that occur, among all `classes`.
    present: Vec<usize>,
    classes: usize,
}

impl Prepared {
    /// Prepares images that have a label each, of so many classes.
    pub(super) fn new(features: &[&[f32]], labels: &[usize], classes: usize) -> Self {
        let width = features.first().map_or(0, |image| image.len());
        let (seen, present) = renumber(labels);
        let (standardized, scale) = standardize(features, width);
        // Coordinates in the span of the images, if that is smaller.
        let basis = (width > features.len()).then(|| standardized.clone().qr().q());
        let inputs = match &basis {
            Some(basis) => basis.tr_mul(&standardized),
            None => standardized,
        };
        let problem = Problem::new(inputs, seen, present.len());
        Self { problem, basis, scale, present, classes }
    }

    /// Fits images to their labels; C is the inverse strength of the penalty.
    ///
    /// A class without images is never predicted. With two classes the difference of their weights
    /// is penalized, as is usual in binary logistic regression.
    pub(super) fn fit(&self, c: f64) -> LinearClassifier {
        let Self { problem, basis, scale, present, classes } = self;
        let penalty = if present.len() == 2 { 2.0 / c } else { 1.0 / c };
        let solution = problem.solve(penalty);
        let (last, rows) = (solution.ncols() - 1, solution.nrows());
        let found = solution.columns(0, last);
        let found = match basis {
            Some(basis) => found * basis.transpose(),
            None => found.into_owned(),
        };

        let mut weights = DMatrix::zeros(*classes, scale.len());
        let mut intercepts = DVector::from_element(*classes, NEVER);
        for row in 0..rows {
            let class = present[row];
            let mut intercept = solution[(row, last)];
            for (feature, &(mean, spread)) in scale.iter().enumerate() {
                // A constant feature has no spread, and no weight.
                let weight = if spread > 0.0 { found[(row, feature)] / spread } else { 0.0 };
                weights[(class, feature)] = weight;
                intercept -= weight * mean;
            }
            intercepts[class] = intercept;
        }
        LinearClassifier { weights: weights.cast(), intercepts: intercepts.cast() }
    }
}

impl LinearClassifier {
    /// Standardizes features and fits images to their labels; C is the inverse strength of the
    /// penalty.
    ///
    /// A class without images is never predicted. With two classes the difference of their weights
    /// is penalized, as is usual in binary logistic regression.
    pub fn fit(features: &[&[f32]], labels: &[usize], classes: usize, c: f64) -> Self {
        Prepared::new(features, labels, classes).fit(c)
    }

    /// The logarithm of each class's probability.
    pub fn log_probabilities(&self, features: &[f32]) -> Vec<f64> {
        let row = |class: usize| {
            let products = self.weights.row(class);
            let products =
                products.iter().zip(features).map(|(w, x)| f64::from(*w) * f64::from(*x));
            products.sum::<f64>() + f64::from(self.intercepts[class])
        };
        let mut scores: Vec<f64> = (0..self.weights.nrows()).map(row).collect();
        let log_sum = log_sum_exp(&scores);
        scores.iter_mut().for_each(|score| *score -= log_sum);
        scores
    }
}

/// Labels renumbered over the classes that occur, and these classes.
pub(super) fn renumber(labels: &[usize]) -> (Vec<usize>, Vec<usize>) {
    let mut classes = labels.to_vec();
    classes.sort_unstable();
    classes.dedup();
    let place = |label| classes.partition_point(|&class| class < label);
    (labels.iter().map(|&label| place(label)).collect(), classes)
}

/// Brings features to mean 0 and spread 1, features × images, and gives the mean and spread of
/// each; constant ones become 0 and have spread 0.
fn standardize(features: &[&[f32]], width: usize) -> (DMatrix<f64>, Vec<(f64, f64)>) {
    let count = features.len() as f64;
    // Image by image, as they lie in memory.
    let mean_of = |value: &dyn Fn(usize, f64) -> f64| {
        let mut sums = vec![0.0; width];
        for image in features {
            let values = sums.iter_mut().zip(image.iter()).enumerate();
            values.for_each(|(at, (sum, &x))| *sum += value(at, f64::from(x)));
        }
        sums.iter_mut().for_each(|sum| *sum /= count);
        sums
    };
    let means = mean_of(&|_, value| value);
    let variances = mean_of(&|at, value| (value - means[at]).powi(2));
    let scale: Vec<(f64, f64)> = means
        .iter()
        .zip(&variances)
        .map(|(&mean, variance)| {
            let spread = variance.sqrt();
            (mean, if spread > ROUNDING * mean.abs() { spread } else { 0.0 })
        })
        .collect();
    let standardized = DMatrix::from_fn(width, features.len(), |at, image| {
        let (mean, spread) = scale[at];
        if spread > 0.0 { (f64::from(features[image][at]) - mean) / spread } else { 0.0 }
    });
    (standardized, scale)
}

#[derive(Debug)]
struct Problem {
    /// features + 1 × images; the last row is 1, so that its weights are the intercepts.
    inputs: DMatrix<f64>,
    labels: Vec<usize>,
    classes: usize,
    /// `XXᵀ / classes`: the Hessian for each class at weights of zero, without the penalty.
    curvature: DMatrix<f64>,
}

/// A loss and its gradient.
type LossAndGradient = (f64, DMatrix<f64>);

/// A step and what the gradient changed by.
struct Pair {
    step: DMatrix<f64>,
    change: DMatrix<f64>,
    product: f64,
}

impl Problem {
    fn new(inputs: DMatrix<f64>, labels: Vec<usize>, classes: usize) -> Self {
        let last = inputs.nrows();
        let inputs = inputs.insert_row(last, 1.0);
        let mut curvature =
            chunk_sum(&inputs, |_, columns, transposed| columns * transposed, |a, b| a + b);
        curvature /= classes as f64;
        Self { inputs, labels, classes, curvature }
    }

    /// classes × features + 1
    fn solve(&self, penalty: f64) -> DMatrix<f64> {
        let curvature = self.curvature_at_zero(penalty);
        let mut weights = DMatrix::zeros(self.classes, self.inputs.nrows());
        let (mut loss, mut gradient) = self.loss_and_gradient(&weights, penalty);
        let mut memory: VecDeque<Pair> = VecDeque::new();
        for _ in 0..ROUNDS {
            let direction = direction(&gradient, &memory, &curvature);
            let slope = gradient.dot(&direction);
            if -slope <= TOLERANCE * loss {
                break;
            }
            let Some((step, found)) = self.descend(&weights, loss, direction, slope, penalty)
            else {
                break;
            };
            let change = &found.1 - &gradient;
            let product = step.dot(&change);
            weights += &step;
            if product > 0.0 {
                memory.push_back(Pair { step, change, product });
                if memory.len() > MEMORY {
                    memory.pop_front();
                }
            }
            (loss, gradient) = found;
        }
        weights
    }

    /// Backtracking line search: halves the step until the loss falls enough; `None` if rounding
    /// prevents that.
    fn descend(
        &self,
        weights: &DMatrix<f64>,
        loss: f64,
        mut step: DMatrix<f64>,
        slope: f64,
        penalty: f64,
    ) -> Option<(DMatrix<f64>, LossAndGradient)> {
        let mut length = 1.0;
        for _ in 0..40 {
            let found = self.loss_and_gradient(&(weights + &step), penalty);
            if found.0 <= loss + 1e-4 * length * slope {
                return Some((step, found));
            }
            length /= 2.0;
            step /= 2.0;
        }
        None
    }

    fn loss_and_gradient(&self, weights: &DMatrix<f64>, penalty: f64) -> LossAndGradient {
        let of_chunk = |from: usize, columns: DMatrixView<'_, f64>, transposed: Transposed<'_>| {
            let mut scores = weights * columns;
            let mut loss = 0.0;
            for (mut image, &label) in scores.column_iter_mut().zip(&self.labels[from..]) {
                let log_sum = log_sum_exp(image.as_slice());
                loss += log_sum - image[label];
                // From here on the gradient by the scores.
                image.iter_mut().for_each(|score| *score = (*score - log_sum).exp());
                image[label] -= 1.0;
            }
            (loss, scores * transposed)
        };
        let add = |(loss, gradient): LossAndGradient, other: LossAndGradient| {
            (loss + other.0, gradient + other.1)
        };
        let (mut loss, mut gradient) = chunk_sum(&self.inputs, of_chunk, add);
        let penalized = self.inputs.nrows() - 1;
        loss += 0.5 * penalty * weights.columns(0, penalized).norm_squared();
        let mut part = gradient.columns_mut(0, penalized);
        part += weights.columns(0, penalized) * penalty;
        (loss, gradient)
    }

    /// The factor of the Hessian at zero with the penalty, which makes it positive definite.
    fn curvature_at_zero(&self, penalty: f64) -> Factor {
        let mut matrix = self.curvature.clone();
        for at in 0..matrix.nrows() - 1 {
            matrix[(at, at)] += penalty;
        }
        Factor::of(matrix).expect("a penalty makes the curvature positive")
    }
}

/// Computes `of` for each chunk of columns, from the index of its first column, the columns and
/// their transpose, and adds the results in order.
fn chunk_sum<T: Send>(
    inputs: &DMatrix<f64>,
    of: impl Fn(usize, DMatrixView<'_, f64>, Transposed<'_>) -> T + Sync,
    add: impl Fn(T, T) -> T,
) -> T {
    let rows = inputs.nrows();
    let chunks: Vec<&[f64]> = inputs.as_slice().chunks(CHUNK * rows).collect();
    let part = |(index, columns): (usize, &&[f64])| {
        let count = columns.len() / rows;
        let transposed = DMatrixView::from_slice_with_strides(columns, count, rows, rows, 1);
        of(index * CHUNK, DMatrixView::from_slice(columns, rows, count), transposed)
    };
    let parts: Vec<T> = chunks.par_iter().enumerate().map(part).collect();
    parts.into_iter().reduce(add).expect("there are images")
}

/// The transpose of a column-major matrix.
type Transposed<'a> = DMatrixView<'a, f64, Dyn, Dyn>;

/// The search direction, by the two loops of L-BFGS.
fn direction(gradient: &DMatrix<f64>, memory: &VecDeque<Pair>, curvature: &Factor) -> DMatrix<f64> {
    let mut direction = -gradient;
    let mut shares = Vec::with_capacity(memory.len());
    for pair in memory.iter().rev() {
        let share = pair.step.dot(&direction) / pair.product;
        direction -= &pair.change * share;
        shares.push(share);
    }
    direction = curvature.solve(direction.transpose()).transpose();
    for (pair, share) in memory.iter().zip(shares.into_iter().rev()) {
        let back = pair.change.dot(&direction) / pair.product;
        direction += &pair.step * (share - back);
    }
    direction
}

fn log_sum_exp(scores: &[f64]) -> f64 {
    let highest = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    highest + scores.iter().map(|score| (score - highest).exp()).sum::<f64>().ln()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Purpose, Stream};

    fn drawn(images: usize, width: usize, classes: usize) -> (Vec<Vec<f32>>, Vec<usize>) {
        let mut stream = Stream::new(3, Purpose::Synthetic, 0, 0);
        let labels: Vec<usize> = (0..images).map(|image| image % classes).collect();
        let features = labels.iter().map(|&label| {
            let value = |at: usize, noise: f64| noise + f64::from(u8::from(at % classes == label));
            (0..width).map(|at| value(at, stream.normal()) as f32).collect()
        });
        (features.collect(), labels)
    }

    fn slices(features: &[Vec<f32>]) -> Vec<&[f32]> {
        features.iter().map(Vec::as_slice).collect()
    }

    #[test]
    fn two_classes_balance_loss_and_penalty_by_hand() {
        // One image of each class at ±1: with the difference w of the weights, the loss
        // 2 log(1 + e^−w) + w²/(2C) is least where w = 2C / (1 + e^w); C below puts that at 1.
        let c = (1.0 + 1_f64.exp()) / 2.0;
        let fit = LinearClassifier::fit(&[&[-1.0], &[1.0]], &[0, 1], 2, c);
        let found = fit.log_probabilities(&[1.0])[1];
        assert!((found + (-1_f64).exp().ln_1p()).abs() < 1e-6, "{found}");
    }

    #[test]
    fn constant_features_leave_the_shares_of_the_classes() {
        let fit = LinearClassifier::fit(&[&[7.0_f32][..]; 6], &[0, 1, 1, 2, 2, 2], 4, 0.03);
        let found = fit.log_probabilities(&[7.0]);
        for (found, share) in found.iter().zip([1.0 / 6.0, 1.0 / 3.0, 0.5, 0.0_f64]) {
            assert!((found.exp() - share).abs() < 1e-6, "{found} {share}");
        }
    }

    #[test]
    fn gradients_are_those_of_finite_differences() {
        let (features, labels) = drawn(12, 3, 3);
        let (inputs, _) = standardize(&slices(&features), 3);
        let problem = Problem::new(inputs, labels, 3);
        let weights = DMatrix::from_fn(3, 4, |i, j| ((4 * i + j) % 5) as f64 / 5.0 - 0.4);
        let (_, gradient) = problem.loss_and_gradient(&weights, 0.7);
        for at in 0..12 {
            let moved = |by: f64| {
                let mut weights = weights.clone();
                weights[at] += by;
                problem.loss_and_gradient(&weights, 0.7).0
            };
            let slope = (moved(1e-5) - moved(-1e-5)) / 2e-5;
            assert!((gradient[at] - slope).abs() < 1e-7, "{at}: {} {slope}", gradient[at]);
        }
    }

    #[test]
    fn a_large_set_is_summed_chunk_by_chunk() {
        let (features, labels) = drawn(2 * CHUNK + 7, 3, 3);
        let (inputs, _) = standardize(&slices(&features), 3);
        let problem = Problem::new(inputs.clone(), labels.clone(), 3);
        let weights = DMatrix::from_fn(3, 4, |i, j| ((4 * i + j) % 5) as f64 / 5.0 - 0.4);
        let (loss, gradient) = problem.loss_and_gradient(&weights, 0.0);
        // Image by image.
        let (mut expected, mut slopes) = (0.0, DMatrix::zeros(3, 4));
        for (image, label) in labels.into_iter().enumerate() {
            let one = DMatrix::from_columns(&[inputs.column(image)]);
            let one = Problem::new(one, vec![label], 3).loss_and_gradient(&weights, 0.0);
            expected += one.0;
            slopes += one.1;
        }
        assert!((loss - expected).abs() < 1e-9 * expected, "{loss} {expected}");
        assert!((gradient - slopes).amax() < 1e-9 * expected);
    }

    #[test]
    fn the_solution_is_flat_whatever_the_penalty() {
        let (features, labels) = drawn(60, 8, 4);
        for c in [0.03, 1.0, 1000.0] {
            let (inputs, _) = standardize(&slices(&features), 8);
            let problem = Problem::new(inputs, labels.clone(), 4);
            let (loss, gradient) = problem.loss_and_gradient(&problem.solve(1.0 / c), 1.0 / c);
            assert!(gradient.amax() < 1e-3 * loss, "{c}: {} of {loss}", gradient.amax());
        }
    }

    #[test]
    fn more_features_than_images_are_solved_in_their_span_to_the_same_end() {
        let (wide, labels) = drawn(12, 30, 3);
        let found = LinearClassifier::fit(&slices(&wide), &labels, 3, 0.5);
        // The same problem in all 30 coordinates.
        let (inputs, scale) = standardize(&slices(&wide), 30);
        let direct = Problem::new(inputs, labels, 3).solve(2.0);
        for (class, at) in (0..3).flat_map(|class| (0..30).map(move |at| (class, at))) {
            let expected = direct[(class, at)] / scale[at].1;
            assert!((f64::from(found.weights[(class, at)]) - expected).abs() < 1e-4);
        }
    }
}
