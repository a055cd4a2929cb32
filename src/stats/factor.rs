//! Cholesky factors of large matrices, solved for many right-hand sides at once.
//!
//! Solving one right-hand side at a time reads the whole factor for each. Solving all of them in
//! blocks of rows makes most of the work a matrix product, which reads the factor once.

use nalgebra::{DMatrix, Dyn};

/// Rows that are solved by substitution before they are subtracted from the others.
const BLOCK: usize = 64;

/// The lower Cholesky factor L of a matrix `L Lᵀ`.
#[derive(Debug)]
pub(super) struct Factor(DMatrix<f64>);

impl Factor {
    /// Factors a matrix; none if it is not positive definite.
    pub(super) fn of(matrix: DMatrix<f64>) -> Option<Self> {
        nalgebra::Cholesky::<f64, Dyn>::new(matrix).map(|factor| Self(factor.unpack()))
    }

    /// `(L Lᵀ)⁻¹ B`
    pub(super) fn solve(&self, mut right: DMatrix<f64>) -> DMatrix<f64> {
        let (size, count) = right.shape();
        let starts: Vec<usize> = (0..size).step_by(BLOCK).collect();
        // L y = b, from the top.
        for &from in &starts {
            let height = BLOCK.min(size - from);
            let below = size - from - height;
            let corner = self.0.view((from, from), (height, height));
            corner.solve_lower_triangular_mut(&mut right.rows_mut(from, height));
            let solved = right.rows(from, height).into_owned();
            let mut rest = right.view_mut((from + height, 0), (below, count));
            rest.gemm(-1.0, &self.0.view((from + height, from), (below, height)), &solved, 1.0);
        }
        // Lᵀ x = y, from the bottom.
        for &from in starts.iter().rev() {
            let height = BLOCK.min(size - from);
            let corner = self.0.view((from, from), (height, height));
            corner.tr_solve_lower_triangular_mut(&mut right.rows_mut(from, height));
            let solved = right.rows(from, height).into_owned();
            // The block left of the corner in L is the one above it in Lᵀ.
            let left = self.0.view((from, 0), (height, from)).transpose();
            right.view_mut((0, 0), (from, count)).gemm(-1.0, &left, &solved, 1.0);
        }
        right
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Purpose, Stream};

    #[test]
    fn two_by_two_is_solved_by_hand() {
        // [4 2; 2 5] x = [8; 8] → x = [1.5; 1].
        let factor = Factor::of(DMatrix::from_row_slice(2, 2, &[4.0, 2.0, 2.0, 5.0])).unwrap();
        let found = factor.solve(DMatrix::from_column_slice(2, 1, &[8.0, 8.0]));
        assert!((found[0] - 1.5).abs() < 1e-12 && (found[1] - 1.0).abs() < 1e-12, "{found}");
        assert!(Factor::of(DMatrix::from_row_slice(1, 1, &[-1.0])).is_none());
    }

    #[test]
    fn blocks_of_any_number_solve_the_whole() {
        for size in [1, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK + 5] {
            let mut stream = Stream::new(5, Purpose::Synthetic, 0, size as u64);
            let root = DMatrix::from_fn(size, size, |_, _| stream.normal());
            let matrix = &root * root.transpose() + DMatrix::identity(size, size) * size as f64;
            let right = DMatrix::from_fn(size, 4, |_, _| stream.normal());
            let found = Factor::of(matrix.clone()).unwrap().solve(right.clone());
            assert!((matrix * found - right).amax() < 1e-9, "{size}");
        }
    }
}
