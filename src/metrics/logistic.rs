//! Multinomial logistic regression, solved to the end and always in the same way.
//!
//! Minimizes over weights `W` (a column per class) and intercepts `b`
//!
//! ```text
//! Σ_i −log softmax(W·x_i + b)_{y_i}  +  ‖W‖² / (2C)
//! ```
//!
//! The problem is convex and its curvature where all classes are equally probable is
//! known, so L-BFGS that starts from that curvature needs few steps and no tuning.

use std::collections::VecDeque;

/// Rounds after which the weights are taken as they are; about thirty are needed.
const ROUNDS: usize = 100;
/// Pairs of steps and changes of the gradient that are remembered.
const MEMORY: usize = 10;
/// The expected gain of a step, as a share of the loss, that is not worth it.
const TOLERANCE: f64 = 1e-12;

/// Vectors of one length, one after the other.
#[derive(Debug, Clone)]
pub(super) struct Rows {
    pub(super) width: usize,
    pub(super) values: Vec<f64>,
}

impl Rows {
    pub(super) fn iter(&self) -> impl Iterator<Item = &[f64]> {
        self.values.chunks_exact(self.width)
    }
}

/// A fitted classifier.
#[derive(Debug)]
pub(super) struct Logistic {
    classes: usize,
    /// A row per input, a column per class; the last row is the intercepts.
    weights: Vec<f64>,
}

impl Logistic {
    /// Fits rows whose last value is 1, so that its weights are the intercepts.
    ///
    /// Every class must occur. Two classes are penalized as one weight vector, their
    /// difference, as is the custom for a single logistic curve.
    pub(super) fn fit(rows: &Rows, labels: &[usize], classes: usize, c: f64) -> Self {
        let penalty = if classes == 2 { 2.0 / c } else { 1.0 / c };
        let problem = Problem { rows, labels, classes, penalty };
        Self { classes, weights: problem.solve() }
    }

    /// The logarithm of each class's probability.
    pub(super) fn log_probabilities(&self, row: &[f64]) -> Vec<f64> {
        let mut scores = vec![0.0; self.classes];
        scores_of(&self.weights, row, &mut scores);
        let log_sum = log_sum_exp(&scores);
        scores.iter_mut().for_each(|score| *score -= log_sum);
        scores
    }
}

/// A loss with its gradient.
type Slope = (f64, Vec<f64>);

struct Problem<'a> {
    rows: &'a Rows,
    labels: &'a [usize],
    classes: usize,
    penalty: f64,
}

impl Problem<'_> {
    fn solve(&self) -> Vec<f64> {
        let curvature = self.curvature_at_zero();
        let mut weights = vec![0.0; self.rows.width * self.classes];
        let (mut loss, mut gradient) = self.loss_and_gradient(&weights);
        let mut memory: VecDeque<Pair> = VecDeque::new();
        for _ in 0..ROUNDS {
            let direction = self.direction(&gradient, &memory, &curvature);
            let slope = dot(&gradient, &direction);
            if -slope <= TOLERANCE * loss {
                break;
            }
            let Some((step, found)) = self.descend(&weights, loss, &direction, slope) else {
                break;
            };
            let change: Vec<f64> = found.1.iter().zip(&gradient).map(|(n, o)| n - o).collect();
            let product = dot(&step, &change);
            if product > 0.0 {
                memory.push_back(Pair { step: step.clone(), change, product });
                if memory.len() > MEMORY {
                    memory.pop_front();
                }
            }
            weights.iter_mut().zip(&step).for_each(|(weight, step)| *weight += step);
            (loss, gradient) = found;
        }
        weights
    }

    /// Halves the step until the loss falls as a convex one must; none if rounding forbids it.
    fn descend(
        &self,
        weights: &[f64],
        loss: f64,
        direction: &[f64],
        slope: f64,
    ) -> Option<(Vec<f64>, Slope)> {
        let mut length = 1.0;
        for _ in 0..40 {
            let step: Vec<f64> = direction.iter().map(|value| length * value).collect();
            let there: Vec<f64> = weights.iter().zip(&step).map(|(w, s)| w + s).collect();
            let found = self.loss_and_gradient(&there);
            if found.0 <= loss + 1e-4 * length * slope {
                return Some((step, found));
            }
            length /= 2.0;
        }
        None
    }

    fn loss_and_gradient(&self, weights: &[f64]) -> Slope {
        let classes = self.classes;
        let penalized = (self.rows.width - 1) * classes;
        let mut gradient: Vec<f64> = weights.iter().map(|weight| self.penalty * weight).collect();
        gradient[penalized..].fill(0.0);
        let mut loss = 0.5 * dot(&weights[..penalized], &gradient[..penalized]);
        // Images four at a time: the sums are long, and written down once for all four.
        let mut excess = vec![0.0; 4 * classes];
        let images = self.rows.values.chunks(4 * self.rows.width);
        for (rows, labels) in images.zip(self.labels.chunks(4)) {
            excess.fill(0.0);
            let each = rows.chunks_exact(self.rows.width).zip(labels);
            for ((row, &label), scores) in each.zip(excess.chunks_exact_mut(classes)) {
                scores_of(weights, row, scores);
                let log_sum = log_sum_exp(scores);
                loss += log_sum - scores[label];
                // From here on what the scores are too high by.
                scores.iter_mut().for_each(|score| *score = (*score - log_sum).exp());
                scores[label] -= 1.0;
            }
            let value = |image: usize, at| rows.get(image * self.rows.width + at).unwrap_or(&0.0);
            let (first, second) = excess.split_at(2 * classes);
            let ((w, x), (y, z)) = (first.split_at(classes), second.split_at(classes));
            for (at, sums) in gradient.chunks_exact_mut(classes).enumerate() {
                let [a, b, c, d] = [0, 1, 2, 3].map(|image| value(image, at));
                for ((((sum, w), x), y), z) in sums.iter_mut().zip(w).zip(x).zip(y).zip(z) {
                    *sum += (a * w + b * x) + (c * y + d * z);
                }
            }
        }
        (loss, gradient)
    }

    /// The two loops of L-BFGS.
    fn direction(
        &self,
        gradient: &[f64],
        memory: &VecDeque<Pair>,
        curvature: &Cholesky,
    ) -> Vec<f64> {
        let mut direction: Vec<f64> = gradient.iter().map(|value| -value).collect();
        let mut shares = Vec::with_capacity(memory.len());
        for pair in memory.iter().rev() {
            let share = dot(&pair.step, &direction) / pair.product;
            add(&mut direction, -share, &pair.change);
            shares.push(share);
        }
        curvature.solve(&mut direction, self.classes);
        for (pair, share) in memory.iter().zip(shares.into_iter().rev()) {
            let back = dot(&pair.change, &direction) / pair.product;
            add(&mut direction, share - back, &pair.step);
        }
        direction
    }

    /// `XᵀX / classes + penalty`: the second derivative for each class at weights of zero.
    fn curvature_at_zero(&self) -> Cholesky {
        let width = self.rows.width;
        let mut matrix = vec![0.0; width * width];
        for row in self.rows.iter() {
            for (at, &value) in row.iter().enumerate() {
                add(&mut matrix[at * width..=at * width + at], value, &row[..=at]);
            }
        }
        matrix.iter_mut().for_each(|value| *value /= self.classes as f64);
        for at in 0..width - 1 {
            matrix[at * width + at] += self.penalty;
        }
        Cholesky::of(matrix, width)
    }
}

/// A step and what the gradient changed by.
struct Pair {
    step: Vec<f64>,
    change: Vec<f64>,
    product: f64,
}

/// The lower triangle `L` of a positive matrix `L·Lᵀ`.
struct Cholesky {
    size: usize,
    lower: Vec<f64>,
}

impl Cholesky {
    /// Of the lower triangle of `matrix`; its upper triangle is not read.
    fn of(mut matrix: Vec<f64>, size: usize) -> Self {
        for row in 0..size {
            let (above, rest) = matrix.split_at_mut(row * size);
            let own = &mut rest[..=row];
            for column in 0..row {
                let other = &above[column * size..=column * size + column];
                own[column] = (own[column] - dot(&own[..column], &other[..column])) / other[column];
            }
            own[row] = (own[row] - dot(&own[..row], &own[..row])).sqrt();
        }
        Self { size, lower: matrix }
    }

    /// Replaces the columns `b` of a matrix by the solutions of `L·Lᵀ·x = b`.
    fn solve(&self, columns: &mut [f64], count: usize) {
        let entry = |row: usize, column: usize| self.lower[row * self.size + column];
        for row in 0..self.size {
            let (solved, rest) = columns.split_at_mut(row * count);
            let own = &mut rest[..count];
            for (column, known) in solved.chunks_exact(count).enumerate() {
                add(own, -entry(row, column), known);
            }
            own.iter_mut().for_each(|value| *value /= entry(row, row));
        }
        for row in (0..self.size).rev() {
            let (rest, solved) = columns.split_at_mut((row + 1) * count);
            let own = &mut rest[row * count..];
            for (below, known) in solved.chunks_exact(count).enumerate() {
                add(own, -entry(row + 1 + below, row), known);
            }
            own.iter_mut().for_each(|value| *value /= entry(row, row));
        }
    }
}

/// `Wᵀ·row`, four inputs at a time, since writing sums down is what takes the time.
fn scores_of(weights: &[f64], row: &[f64], scores: &mut [f64]) {
    let classes = scores.len();
    scores.fill(0.0);
    let (fours, rest) = row.as_chunks::<4>();
    let (weights, last) = weights.split_at(4 * fours.len() * classes);
    for ([a, b, c, d], weights) in fours.iter().zip(weights.chunks_exact(4 * classes)) {
        let (first, second) = weights.split_at(2 * classes);
        let ((w, x), (y, z)) = (first.split_at(classes), second.split_at(classes));
        for ((((score, w), x), y), z) in scores.iter_mut().zip(w).zip(x).zip(y).zip(z) {
            *score += (a * w + b * x) + (c * y + d * z);
        }
    }
    for (&value, weights) in rest.iter().zip(last.chunks_exact(classes)) {
        add(scores, value, weights);
    }
}

fn log_sum_exp(scores: &[f64]) -> f64 {
    let highest = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    highest + scores.iter().map(|score| (score - highest).exp()).sum::<f64>().ln()
}

/// Eight sums side by side, which the processor can form at once.
fn dot(a: &[f64], b: &[f64]) -> f64 {
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<8>(), b.as_chunks::<8>());
    let mut sums = [0.0; 8];
    for (a, b) in a.iter().zip(b) {
        for lane in 0..8 {
            sums[lane] += a[lane] * b[lane];
        }
    }
    let rest: f64 = a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum();
    sums.iter().sum::<f64>() + rest
}

fn add(sum: &mut [f64], factor: f64, values: &[f64]) {
    sum.iter_mut().zip(values).for_each(|(sum, value)| *sum += factor * value);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Purpose, Stream};

    fn rows(values: &[&[f64]]) -> Rows {
        Rows { width: values[0].len(), values: values.concat() }
    }

    fn drawn(images: usize, width: usize, classes: usize) -> (Rows, Vec<usize>) {
        let mut stream = Stream::new(3, Purpose::Synthetic, 0, 0);
        let labels: Vec<usize> = (0..images).map(|image| image % classes).collect();
        let mut values = Vec::new();
        for &label in &labels {
            values.extend(
                (1..width)
                    .map(|at| stream.normal() + if at % classes == label { 1.0 } else { 0.0 }),
            );
            values.push(1.0);
        }
        (Rows { width, values }, labels)
    }

    #[test]
    fn a_triangle_solves_by_hand() {
        // [[4, 2], [2, 5]] = L·Lᵀ with L = [[2, 0], [1, 2]]; the upper triangle is not read.
        let cholesky = Cholesky::of(vec![4.0, f64::NAN, 2.0, 5.0], 2);
        assert_eq!([cholesky.lower[0], cholesky.lower[2], cholesky.lower[3]], [2.0, 1.0, 2.0]);
        // The columns (8, 12) and (4, 2), which are the matrix times (1, 2) and (1, 0).
        let mut columns = [8.0, 4.0, 12.0, 2.0];
        cholesky.solve(&mut columns, 2);
        assert_eq!(columns, [1.0, 1.0, 2.0, 0.0]);
    }

    #[test]
    fn two_classes_balance_loss_and_penalty_by_hand() {
        // One image of each class at ±1: with the difference w of the weights, the loss
        // 2 log(1 + e^−w) + w²/(2C) is least where w = 2C / (1 + e^w); C below puts that at 1.
        let c = (1.0 + 1_f64.exp()) / 2.0;
        let fit = Logistic::fit(&rows(&[&[-1.0, 1.0], &[1.0, 1.0]]), &[0, 1], 2, c);
        let found = fit.log_probabilities(&[1.0, 1.0])[1];
        assert!((found + (-1_f64).exp().ln_1p()).abs() < 1e-6, "{found}");
    }

    #[test]
    fn without_inputs_the_intercepts_are_the_shares_of_the_classes() {
        let ones = Rows { width: 1, values: vec![1.0; 6] };
        let fit = Logistic::fit(&ones, &[0, 1, 1, 2, 2, 2], 3, 0.03);
        let found = fit.log_probabilities(&[1.0]);
        for (found, share) in found.iter().zip([1.0 / 6.0, 1.0 / 3.0, 0.5_f64]) {
            assert!((found.exp() - share).abs() < 1e-6, "{found} {share}");
        }
    }

    #[test]
    fn gradients_are_those_of_finite_differences() {
        let (rows, labels) = drawn(12, 4, 3);
        let problem = Problem { rows: &rows, labels: &labels, classes: 3, penalty: 0.7 };
        let weights: Vec<f64> = (0..12).map(|at| f64::from(at % 5) / 5.0 - 0.4).collect();
        let (_, gradient) = problem.loss_and_gradient(&weights);
        for at in 0..12 {
            let moved = |by: f64| {
                let mut weights = weights.clone();
                weights[at] += by;
                problem.loss_and_gradient(&weights).0
            };
            let slope = (moved(1e-5) - moved(-1e-5)) / 2e-5;
            assert!((gradient[at] - slope).abs() < 1e-7, "{at}: {} {slope}", gradient[at]);
        }
    }

    #[test]
    fn the_solution_is_flat_whatever_the_penalty() {
        let (rows, labels) = drawn(60, 9, 4);
        for c in [0.03, 1.0, 1000.0] {
            let problem = Problem { rows: &rows, labels: &labels, classes: 4, penalty: 1.0 / c };
            let (loss, gradient) = problem.loss_and_gradient(&problem.solve());
            let steepest = gradient.iter().fold(0.0, |most: f64, value| most.max(value.abs()));
            assert!(steepest < 1e-3 * loss, "{c}: {steepest} of {loss}");
        }
    }
}
