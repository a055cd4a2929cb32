//! A map sharpened by the linear discriminant of its own image.
//!
//! Heads know what foreground looks like on average; within one image it may differ from the
//! background more sharply. So the map is taken as a guess p of the foreground, and a linear
//! discriminant is fitted to it on the cells of that image (Fisher, 1936):
//!
//! ```text
//! m⁺, m⁻ = means of f weighted by p and 1 − p,   C = covariance within both sides, + 3 I
//! d(x) = (f(x) − (m⁺ + m⁻)/2) · C⁻¹(m⁺ − m⁻)
//! ```
//!
//! d is the log-odds of foreground if both sides are Gaussian with the same covariance and equally
//! large.

use nalgebra::{DMatrix, DMatrixView, DVector};

use super::{
    smooth::smooth,
    vector::{add_scaled, dot, sigmoid},
};
use crate::stats::{CutRule, cut};

/// Steepness of the guess around the cut of a teacher's map, which has spread 1.
const SHARPNESS: f32 = 4.0;
/// Guesses are kept this far away from 0 and 1.
pub(crate) const GUESS_MARGIN: f32 = 1e-3;
/// Added to the diagonal of the covariance: features are whitened over all images, not within each.
pub(crate) const RIDGE: f32 = 3.0;

/// Cells whose sums are formed apart before they are added to the total.
const BLOCK: usize = 4096;

/// Features of one image on a grid, `[rows, columns, dimensions]`, and how maps are smoothed.
#[derive(Debug)]
pub(super) struct CellFeatures {
    pub(super) cells: Vec<f32>,
    pub(super) grid: [usize; 2],
    /// Spread of the smoothing Gaussian, in cells of this grid.
    pub(super) sigma: f64,
}

impl CellFeatures {
    pub(super) fn smooth(&self, map: &[f32]) -> Vec<f32> {
        smooth(map, self.grid, self.sigma)
    }

    /// A teacher's map, sharpened in so many rounds, each starting from its [`cut`].
    ///
    /// A constant map becomes zero, as it has no cut to start from.
    pub(super) fn sharpen(&self, map: &[f32], rule: CutRule, rounds: usize) -> Vec<f32> {
        let mut map = standardized(map);
        for _ in 0..rounds {
            let Some(middle) = cut(&map, rule) else { break };
            let guess: Vec<f32> =
                map.iter().map(|value| sigmoid(SHARPNESS * (value - middle))).collect();
            add_scaled(&mut map, 1.0, &self.smooth(&standardized(&self.log_odds(&guess))));
            map = standardized(&map);
        }
        map
    }

    /// The logits of students, mixed with a `share` of the image's own discriminant.
    pub(super) fn mix_with_discriminant(&self, logits: &[f32], share: f32) -> Vec<f32> {
        let guess: Vec<f32> = logits
            .iter()
            .map(|&logit| sigmoid(logit).clamp(GUESS_MARGIN, 1.0 - GUESS_MARGIN))
            .collect();
        let own = self.smooth(&self.log_odds(&guess));
        let mut mixed = vec![0.0; logits.len()];
        add_scaled(&mut mixed, 1.0 - share, logits);
        add_scaled(&mut mixed, share, &own);
        mixed
    }

    /// The discriminant d of each cell, fitted to a guessed foreground.
    fn log_odds(&self, guess: &[f32]) -> Vec<f32> {
        let dimensions = self.cells.len() / guess.len();
        let inside: f32 = guess.iter().sum();
        let outside = guess.len() as f32 - inside;
        let (mut foreground, mut background) = (vec![0.0; dimensions], vec![0.0; dimensions]);
        let mut within = DMatrix::zeros(dimensions, dimensions);
        // In blocks, so that large images need no second copy and rounding errors stay small.
        for (cells, guess) in self.cells.chunks(BLOCK * dimensions).zip(guess.chunks(BLOCK)) {
            let (mut inner, mut outer) = (vec![0.0; dimensions], vec![0.0; dimensions]);
            for (cell, &share) in cells.chunks_exact(dimensions).zip(guess) {
                add_scaled(&mut inner, share, cell);
                add_scaled(&mut outer, 1.0 - share, cell);
            }
            add_scaled(&mut foreground, 1.0 / inside, &inner);
            add_scaled(&mut background, 1.0 / outside, &outer);
            let block = DMatrixView::from_slice(cells, dimensions, guess.len());
            let transposed =
                DMatrixView::from_slice_with_strides(cells, guess.len(), dimensions, dimensions, 1);
            within += block * transposed;
        }
        // Σ f fᵀ less the share of the two means is the scatter within the sides.
        for (mean, weight) in [(&foreground, inside), (&background, outside)] {
            let mean = DVector::from_column_slice(mean);
            within.ger(-weight, &mean, &mean, 1.0);
        }
        within /= guess.len() as f32;
        for dimension in 0..dimensions {
            within[(dimension, dimension)] += RIDGE;
        }
        let difference = DVector::from_fn(dimensions, |i, _| foreground[i] - background[i]);
        // The ridge outweighs rounding errors: only features that are not finite have no factor.
        let Some(solver) = within.cholesky() else { return vec![0.0; guess.len()] };
        let direction = solver.solve(&difference);
        add_scaled(&mut foreground, 1.0, &background);
        let middle = 0.5 * dot(&foreground, direction.as_slice());
        let cells = self.cells.chunks_exact(dimensions);
        cells.map(|cell| dot(cell, direction.as_slice()) - middle).collect()
    }
}

/// The map with mean 0 and spread 1; zeros if it is constant.
pub(super) fn standardized(map: &[f32]) -> Vec<f32> {
    let count = map.len().max(1) as f64;
    let mean = map.iter().map(|&value| f64::from(value)).sum::<f64>() / count;
    let variance = map.iter().map(|&value| (f64::from(value) - mean).powi(2)).sum::<f64>() / count;
    let spread = variance.sqrt() + 1e-6;
    map.iter().map(|&value| ((f64::from(value) - mean) / spread) as f32).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Purpose, Stream};

    const OTSU: CutRule = CutRule { beta: 0.0, alpha: 0.0 };

    /// A map that is right about two halves but noisy, and features that tell them apart.
    fn noisy() -> (Vec<f32>, Vec<f32>) {
        let mut stream = Stream::new(8, Purpose::Synthetic, 0, 0);
        let side = |cell: usize| if cell % 20 < 10 { 1.0 } else { -1.0 };
        let map = (0..400).map(|cell| (side(cell) + 1.5 * stream.normal()) as f32).collect();
        let mut stream = Stream::new(8, Purpose::Synthetic, 0, 1);
        let cells = (0..400)
            .flat_map(|cell| [(side(cell) + 0.3 * stream.normal()) as f32, stream.normal() as f32]);
        (map, cells.collect())
    }

    fn features(cells: Vec<f32>) -> CellFeatures {
        CellFeatures { cells, grid: [20, 20], sigma: 0.0 }
    }

    fn wrong(map: &[f32]) -> usize {
        map.iter().enumerate().filter(|(cell, value)| (**value > 0.0) != (cell % 20 < 10)).count()
    }

    #[test]
    fn a_noisy_map_is_sharpened_by_features_that_agree_with_it() {
        let (map, cells) = noisy();
        let features = features(cells);
        let sharper = features.sharpen(&map, OTSU, 2);
        assert!(wrong(&map) > 80 && wrong(&sharper) < 40, "{} {}", wrong(&map), wrong(&sharper));
        // The more the image itself decides, the less of the noise is left.
        let mixed = |share| wrong(&features.mix_with_discriminant(&map, share));
        assert_eq!(mixed(0.0), wrong(&map));
        assert!(mixed(0.7) < mixed(0.0) && mixed(1.0) < mixed(0.7), "{}", mixed(0.7));
    }

    #[test]
    fn opposite_logits_give_the_opposite() {
        let (map, cells) = noisy();
        let opposite: Vec<f32> = map.iter().map(|value| -value).collect();
        let features = features(cells);
        let (one, other) = (
            features.mix_with_discriminant(&map, 0.7),
            features.mix_with_discriminant(&opposite, 0.7),
        );
        assert!(one.iter().zip(&other).all(|(a, b)| (a + b).abs() < 1e-3));
    }

    #[test]
    fn a_constant_map_says_nothing() {
        let features = CellFeatures { cells: vec![1.0, 2.0, 3.0, 4.0], grid: [2, 2], sigma: 1.0 };
        assert_eq!(features.sharpen(&[3.0; 4], OTSU, 2), [0.0; 4]);
    }

    #[test]
    fn one_dimension_is_divided_by_hand() {
        let features = CellFeatures { cells: vec![2.0, 2.0, -2.0, -2.0], grid: [1, 4], sigma: 0.0 };
        // Means ±1.6 of guesses 0.9 and 0.1; 4 − 1.6² = 1.44 within: direction 3.2/4.44.
        let found = features.log_odds(&[0.9, 0.9, 0.1, 0.1]);
        let expected = 2.0 * 3.2 / 4.44;
        assert!((found[0] - expected).abs() < 1e-4 && (found[3] + expected).abs() < 1e-4);
    }
}
