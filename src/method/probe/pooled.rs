//! Features of an image averaged over the foreground and the background of a linear mask, with
//! their gradient by the mask.
//!
//! ```text
//! R(x) = sigmoid(w·f(x) + b)
//! a⁺ = Σ R f / Σ R        a⁻ = Σ (1 − R) f / Σ (1 − R)        S = mean R
//! ```

use super::{
    adamw::AdamW,
    cells::LabelledCells,
    vector::{add_scaled, dot, sigmoid},
};
use crate::rng::Stream;

/// A mask that is the sigmoid of a linear function of the features.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct LinearMask {
    /// One per dimension, and then the bias.
    pub(super) weights: Vec<f32>,
}

/// How linear masks are trained.
#[derive(Debug, Clone, Copy)]
pub(super) struct MaskTraining {
    pub(super) steps: usize,
    /// Images per step.
    pub(super) images: usize,
    /// Cells of each image per step.
    pub(super) cells: usize,
    pub(super) learning_rate: f32,
    pub(super) weight_decay: f32,
    /// s: weight of the size term.
    pub(super) size_weight: f32,
    /// π: share of an image that the mask is expected to cover.
    pub(super) expected_area: f32,
}

/// The features of one image, pooled by a mask.
#[derive(Debug, Clone)]
pub(super) struct Pooled<'a> {
    /// `[cells, dimensions]`
    cells: &'a [f32],
    /// R of each cell.
    mask: Vec<f32>,
    /// a⁺
    pub(super) foreground: Vec<f32>,
    /// a⁻
    pub(super) background: Vec<f32>,
    /// Σ R and Σ (1 − R).
    weights: [f32; 2],
}

/// The gradient of a loss by the pooled features of one image.
#[derive(Debug, Clone)]
pub(super) struct PooledGradient {
    /// By a⁺; zero if the loss does not see it.
    pub(super) foreground: Vec<f32>,
    /// By a⁻.
    pub(super) background: Vec<f32>,
    /// By S.
    pub(super) area: f32,
}

/// Least weight of a side, so that divisions by that of an empty one stay finite.
const NOTHING: f32 = 1e-6;

impl LinearMask {
    /// Random normal weights of this spread, and a bias of zero.
    pub(super) fn random(dimensions: usize, spread: f64, stream: &mut Stream) -> Self {
        let drawn = (0..dimensions).map(|_| (spread * stream.normal()) as f32);
        Self { weights: drawn.chain([0.0]).collect() }
    }

    /// Trains the mask: in each step `loss_gradients` is given the pooled images and their labels,
    /// and gives the gradient of the loss by each.
    pub(super) fn trained(
        mut self,
        data: &LabelledCells,
        training: &MaskTraining,
        mut stream: Stream,
        mut loss_gradients: impl FnMut(&[Pooled<'_>], &[usize]) -> Vec<PooledGradient>,
    ) -> Self {
        let mut optimizer =
            AdamW::new(self.weights.len(), training.learning_rate, training.weight_decay);
        let mut order: Vec<usize> = (0..data.images.len()).collect();
        let batch = training.images.min(order.len());
        // Reused in every step: the system would have to clear fresh memory first.
        let mut cells = vec![vec![0.0; training.cells * data.dimensions]; batch];
        for _ in 0..training.steps {
            stream.shuffle(&mut order);
            // Pooled while the cells are in the processor's cache.
            let pooled = order.iter().zip(&mut cells).map(|(&image, cells)| {
                data.draw(image, &mut stream, cells);
                self.pool(cells)
            });
            let pooled: Vec<Pooled<'_>> = pooled.collect();
            let labels = order[..batch].iter().map(|&image| data.labels[image]);
            let labels: Vec<usize> = labels.collect();
            let mut by_weights = vec![0.0; self.weights.len()];
            for (pooled, gradient) in pooled.iter().zip(loss_gradients(&pooled, &labels)) {
                pooled.backward(&gradient, &mut by_weights);
            }
            optimizer.update(&mut self.weights, &by_weights);
        }
        self
    }

    /// The scores of `[cells, dimensions]`: positive is foreground.
    pub(super) fn scores(&self, cells: &[f32]) -> Vec<f32> {
        let (bias, weights) = self.weights.split_last().expect("the bias comes last");
        cells.chunks_exact(weights.len()).map(|cell| dot(weights, cell) + bias).collect()
    }

    /// The mask with foreground and background exchanged.
    pub(super) fn inverted(&self) -> Self {
        Self { weights: self.weights.iter().map(|weight| -weight).collect() }
    }

    pub(super) fn pool<'a>(&self, cells: &'a [f32]) -> Pooled<'a> {
        let dimensions = self.weights.len() - 1;
        let mask: Vec<f32> = self.scores(cells).into_iter().map(sigmoid).collect();
        let (mut inside, mut all) = (vec![0.0; dimensions], vec![0.0; dimensions]);
        for (cell, &covered) in cells.chunks_exact(dimensions).zip(&mask) {
            add_scaled(&mut inside, covered, cell);
            add_scaled(&mut all, 1.0, cell);
        }
        let covered: f32 = mask.iter().sum();
        let weights = [covered, mask.len() as f32 - covered].map(|weight| weight.max(NOTHING));
        let background = all.iter().zip(&inside).map(|(all, inside)| (all - inside) / weights[1]);
        let background = background.collect();
        inside.iter_mut().for_each(|value| *value /= weights[0]);
        Pooled { cells, mask, foreground: inside, background, weights }
    }
}

impl Pooled<'_> {
    /// S: the share of the image that the mask covers.
    pub(super) fn area(&self) -> f32 {
        self.weights[0] / self.mask.len() as f32
    }

    /// Adds the gradient by the weights and the bias of the mask to `sum`.
    pub(super) fn backward(&self, gradient: &PooledGradient, sum: &mut [f32]) {
        let PooledGradient { foreground, background, area } = gradient;
        let dimensions = foreground.len();
        let (weight_sum, bias_sum) = sum.split_at_mut(dimensions);
        // ∂a⁺/∂R(x) = (f − a⁺)/ΣR and ∂a⁻/∂R(x) = −(f − a⁻)/Σ(1 − R), so one product serves both.
        let mut direction = vec![0.0; dimensions];
        add_scaled(&mut direction, 1.0 / self.weights[0], foreground);
        add_scaled(&mut direction, -1.0 / self.weights[1], background);
        let constant = dot(background, &self.background) / self.weights[1]
            - dot(foreground, &self.foreground) / self.weights[0]
            + area / self.mask.len() as f32;
        for (cell, &covered) in self.cells.chunks_exact(dimensions).zip(&self.mask) {
            let by_score = (dot(&direction, cell) + constant) * covered * (1.0 - covered);
            add_scaled(weight_sum, by_score, cell);
            bias_sum[0] += by_score;
        }
    }
}

/// The pull of the area towards π: `−2s [π ln S + (1 − π) ln(1 − S)]`, and its slope.
pub(super) fn size_term(area: f32, expected: f32, strength: f32) -> (f32, f32) {
    let area = area.clamp(1e-6, 1.0 - 1e-6);
    let loss = -2.0 * strength * (expected * area.ln() + (1.0 - expected) * (1.0 - area).ln());
    let slope = -2.0 * strength * (expected / area - (1.0 - expected) / (1.0 - area));
    (loss, slope)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CELLS: [f32; 6] = [1.0, 0.0, 0.0, 2.0, -1.0, 1.0];

    #[test]
    fn a_mask_of_one_half_pools_the_mean_on_both_sides() {
        let mask = LinearMask { weights: vec![0.0; 3] };
        let pooled = mask.pool(&CELLS);
        assert_eq!((pooled.foreground.clone(), pooled.area()), (vec![0.0, 1.0], 0.5));
        assert_eq!(pooled.background, pooled.foreground);
    }

    #[test]
    fn three_cells_are_pooled_by_hand() {
        // Scores ln 3, −ln 3, −ln 3: the mask is ¾, ¼, ¼.
        let mask = LinearMask { weights: vec![2.0 * 3_f32.ln(), 0.0, -3_f32.ln()] };
        let cells = [1.0, 4.0, 0.0, 8.0, 0.0, 0.0];
        let pooled = mask.pool(&cells);
        let close = |found: f32, expected: f32| (found - expected).abs() < 1e-6;
        assert!(close(pooled.area(), 1.25 / 3.0));
        assert!(
            close(pooled.foreground[0], 0.75 / 1.25) && close(pooled.foreground[1], 5.0 / 1.25)
        );
        assert!(
            close(pooled.background[0], 0.25 / 1.75) && close(pooled.background[1], 7.0 / 1.75)
        );
    }

    #[test]
    fn the_opposite_mask_swaps_the_sides() {
        let mask = LinearMask { weights: vec![0.7, -0.3, 0.2] };
        let opposite = mask.inverted();
        let (one, other) = (mask.pool(&CELLS), opposite.pool(&CELLS));
        let far = |a: &[f32], b: &[f32]| a.iter().zip(b).any(|(a, b)| (a - b).abs() > 1e-6);
        assert!(
            !far(&one.foreground, &other.background) && !far(&one.background, &other.foreground)
        );
    }

    #[test]
    fn the_gradient_is_that_of_finite_differences() {
        let gradient =
            PooledGradient { foreground: vec![0.3, -1.1], background: vec![0.8, 0.4], area: 0.6 };
        let loss = |weights: [f32; 3]| {
            let mask = LinearMask { weights: weights.to_vec() };
            let pooled = mask.pool(&CELLS);
            dot(&gradient.foreground, &pooled.foreground)
                + dot(&gradient.background, &pooled.background)
                + gradient.area * pooled.area()
        };
        let weights = [0.5, -0.4, 0.1];
        let mut found = [0.0; 3];
        LinearMask { weights: weights.to_vec() }.pool(&CELLS).backward(&gradient, &mut found);
        let step = 1e-2;
        for (axis, found) in found.iter().enumerate() {
            let moved = |by: f32| {
                let mut weights = weights;
                weights[axis] += by;
                loss(weights)
            };
            let expected = (moved(step) - moved(-step)) / (2.0 * step);
            assert!((found - expected).abs() < 1e-3, "{axis}: {found} {expected}");
        }
    }

    #[test]
    fn the_size_term_is_least_at_the_expected_area() {
        let slope = |area| size_term(area, 0.3, 0.2).1;
        assert!(slope(0.29) < 0.0 && slope(0.31) > 0.0 && slope(0.3).abs() < 1e-6);
        // −0.4 (½ ln ½ + ½ ln ½)
        assert!((size_term(0.5, 0.5, 0.2).0 - 0.4 * 2_f32.ln()).abs() < 1e-6);
    }
}
