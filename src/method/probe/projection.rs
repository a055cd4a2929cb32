//! Features brought to a common scale: standardized, rotated to their principal axes, whitened.
//!
//! ```text
//! f(x) = Λ^(−½) Vᵀ ((x − μ)/(σ + ε) − mean)
//! ```
//!
//! with μ and σ the mean and spread of each channel, and V, Λ the leading eigenvectors and
//! eigenvalues of the covariance. All of it is one affine map, `f(x) = A x + b`, so that it
//! can be applied to each stage at its own resolution and interpolated afterwards.

use nalgebra::{DMatrix, DVector, SymmetricEigen};
use rayon::prelude::*;

/// Keeps the division by a channel's spread finite.
const EPSILON: f64 = 1e-3;
/// Limit on the iterations of the eigenvalue solver, far more than a finite matrix needs.
const ROUNDS: usize = 100_000;
/// Cells that are multiplied at a time.
const BLOCK: usize = 2048;
/// Columns of the covariance that are computed at a time.
const COLUMNS: usize = 64;
/// Axes whose variance is below this share of the largest hold only rounding errors.
const NEGLIGIBLE: f64 = 1e-7;

/// The affine map `f(x) = A x + b` of raw features.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Projection {
    /// A, dimensions × channels.
    pub(crate) matrix: DMatrix<f32>,
    /// b, one number per dimension.
    pub(crate) offset: DVector<f32>,
}

impl Projection {
    /// Fits the map to cells, channels × cells, all of them finite.
    ///
    /// It has at most `dimensions` outputs; fewer if there are fewer channels, or if the cells vary
    /// along fewer axes.
    pub(crate) fn fit(cells: &DMatrix<f32>, dimensions: usize) -> Self {
        let channels = cells.nrows();
        let (mean, spread) = mean_and_spread(cells);
        // In blocks, so that no second copy of the cells is needed.
        let mut covariance = DMatrix::<f64>::zeros(channels, channels);
        for start in (0..cells.ncols()).step_by(BLOCK) {
            let block = cells.columns(start, BLOCK.min(cells.ncols() - start));
            let standardized = DMatrix::from_fn(channels, block.ncols(), |channel, cell| {
                ((f64::from(block[(channel, cell)]) - mean[channel]) / spread[channel]) as f32
            });
            add_products(&standardized, &mut covariance);
        }
        covariance /= cells.ncols().saturating_sub(1).max(1) as f64;
        let SymmetricEigen { eigenvectors, eigenvalues } =
            SymmetricEigen::try_new(covariance, f64::EPSILON, ROUNDS)
                .expect("a finite symmetric matrix has eigenvalues");

        let mut order: Vec<usize> = (0..channels).collect();
        order.sort_by(|&a, &b| eigenvalues[b].total_cmp(&eigenvalues[a]));
        let first = order.first().map_or(0.0, |&axis| eigenvalues[axis]);
        let kept: Vec<usize> = order
            .into_iter()
            .take(dimensions)
            .filter(|&axis| eigenvalues[axis] > NEGLIGIBLE * first && eigenvalues[axis] > 0.0)
            .collect();
        let matrix = DMatrix::from_fn(kept.len(), channels, |dimension, channel| {
            let axis = kept[dimension];
            let vector = eigenvectors.column(axis);
            // The sign of an eigenvector is arbitrary: its largest component is made positive.
            let sign = vector[vector.icamax()].signum();
            sign * vector[channel] / eigenvalues[axis].sqrt() / spread[channel]
        });
        let offset = -(&matrix * mean);
        Self { matrix: matrix.cast(), offset: offset.cast() }
    }

    pub(crate) fn dimensions(&self) -> usize {
        self.matrix.nrows()
    }

    /// Projects cells, channels × cells → dimensions × cells.
    pub(crate) fn apply(&self, cells: &DMatrix<f32>) -> DMatrix<f32> {
        let mut projected = &self.matrix * cells;
        projected.column_iter_mut().for_each(|mut cell| cell += &self.offset);
        projected
    }
}

/// Adds the products of all pairs of channels, some columns on each thread.
fn add_products(cells: &DMatrix<f32>, covariance: &mut DMatrix<f64>) {
    let channels = cells.nrows();
    let columns = covariance.as_mut_slice().par_chunks_mut(COLUMNS * channels.max(1));
    columns.enumerate().for_each(|(part, sums)| {
        let some = cells.rows(part * COLUMNS, sums.len() / channels);
        let products: DMatrix<f32> = cells * some.transpose();
        sums.iter_mut().zip(&products).for_each(|(sum, &product)| *sum += f64::from(product));
    });
}

/// Mean of each channel, and its spread with [`EPSILON`] added.
fn mean_and_spread(cells: &DMatrix<f32>) -> (DVector<f64>, DVector<f64>) {
    let count = cells.ncols().max(1) as f64;
    let (mut sum, mut squares) =
        (DVector::<f64>::zeros(cells.nrows()), DVector::<f64>::zeros(cells.nrows()));
    for cell in cells.column_iter() {
        for (channel, &value) in cell.iter().enumerate() {
            sum[channel] += f64::from(value);
            squares[channel] += f64::from(value) * f64::from(value);
        }
    }
    let mean = sum / count;
    let spread = DVector::from_fn(cells.nrows(), |channel, _| {
        (squares[channel] / count - mean[channel] * mean[channel]).max(0.0).sqrt() + EPSILON
    });
    (mean, spread)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Purpose, Stream};

    fn drawn(channels: usize, cells: usize) -> DMatrix<f32> {
        let mut stream = Stream::new(5, Purpose::Synthetic, 0, 0);
        let mixing = DMatrix::from_fn(channels, channels, |_, _| stream.normal() as f32);
        let independent = DMatrix::from_fn(channels, cells, |_, _| stream.normal() as f32);
        (mixing * independent).add_scalar(3.0)
    }

    #[test]
    fn projected_cells_have_mean_zero_and_are_uncorrelated_with_variance_one() {
        let cells = drawn(6, 400);
        let projected = Projection::fit(&cells, 4).apply(&cells);
        assert_eq!(projected.nrows(), 4);
        let covariance = &projected * projected.transpose() / 399.0;
        for (a, b) in (0..4).flat_map(|a| (0..4).map(move |b| (a, b))) {
            let expected = if a == b { 1.0 } else { 0.0 };
            assert!((covariance[(a, b)] - expected).abs() < 1e-3, "{covariance}");
        }
        assert!(projected.column_mean().iter().all(|mean| mean.abs() < 1e-4));
    }

    #[test]
    fn a_constant_channel_changes_nothing() {
        let cells = drawn(5, 200);
        let with_constant =
            DMatrix::from_fn(
                6,
                200,
                |channel, cell| {
                    if channel == 5 { 7.0 } else { cells[(channel, cell)] }
                },
            );
        let plain = Projection::fit(&cells, 3).apply(&cells);
        let same = Projection::fit(&with_constant, 3).apply(&with_constant);
        assert!((plain - same).abs().max() < 1e-3);
    }

    #[test]
    fn there_are_no_more_dimensions_than_axes_along_which_cells_vary() {
        let line = DMatrix::from_fn(5, 30, |channel, cell| (channel * cell) as f32);
        assert_eq!(Projection::fit(&line, 4).dimensions(), 1);
        assert_eq!(Projection::fit(&drawn(5, 30), 64).dimensions(), 5);
        assert_eq!(Projection::fit(&DMatrix::from_element(5, 30, 2.0), 4).dimensions(), 0);
    }

    #[test]
    fn two_channels_are_whitened_by_hand() {
        // Standardized, both channels are ±1; they agree in three cells of four.
        let cells = DMatrix::from_column_slice(2, 4, &[1., 2., 1., 2., -1., -2., -1., 2.]);
        let projection = Projection::fit(&cells, 2);
        let projected = projection.apply(&cells);
        // The leading axis is the sum of both, so cells that agree lie apart along it.
        assert!(projected[(0, 0)] > 0.5 && projected[(0, 2)] < -0.5, "{projected}");
    }
}
