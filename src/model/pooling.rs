//! Pooling of class maps into scores by their mean, maximum or log-sum-exp.
//!
//! Each takes `[B, C, h, w]` to `[B, C]`.

use burn::tensor::Tensor;

/// The mean of each map: Zhou et al., *Learning deep features for discriminative localization*, 2016.
pub fn mean(maps: Tensor<4>) -> Tensor<2> {
    maps.flatten::<3>(2, 3).mean_dim(2).squeeze_dim(2)
}

/// The highest cell of each map: Oquab et al., *Is object localization for free?*, 2015.
pub fn max(maps: Tensor<4>) -> Tensor<2> {
    maps.flatten::<3>(2, 3).max_dim(2).squeeze_dim(2)
}

/// A soft maximum: Pinheiro and Collobert, *From image-level to pixel-level labeling*, 2015.
///
/// ```text
/// s = 1/r · ln(1/n Σ exp(r A))
/// ```
///
/// It rises from the mean to the maximum as the `sharpness` r rises from 0 to ∞.
pub fn log_sum_exp(maps: Tensor<4>, sharpness: f64) -> Tensor<2> {
    let cells = maps.flatten::<3>(2, 3);
    // Only keeps `exp` finite: the result does not depend on it, nor does the gradient.
    let highest = cells.clone().inner().max_dim(2);
    let highest = if cells.is_autodiff() { highest.autodiff() } else { highest };
    let raised = ((cells - highest.clone()) * sharpness).exp().mean_dim(2);
    (raised.log() / sharpness + highest).squeeze_dim(2)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{
        config::{Cells, PoolConfig},
        device,
        model::{
            layers::{tensor, values},
            wildcat::{Pooling, pool},
        },
    };

    fn maps(cells: &[f32]) -> Tensor<4> {
        tensor(cells.to_vec(), [1, 2, 2, cells.len() / 4], &device::cpu())
    }

    fn wildcat(top: Cells, maps: Tensor<4>) -> Vec<f32> {
        let config = PoolConfig { top, bottom_weight: 0.0, ..PoolConfig::default() };
        values(pool(maps, &Pooling { config: &config, counts_evidence_against: true }, None))
    }

    fn near(found: &[f32], expected: &[f32], tolerance: f32) -> bool {
        found.iter().zip(expected).all(|(a, b)| (a - b).abs() <= tolerance)
    }

    #[test]
    fn log_sum_exp_by_hand() {
        // ½ ln((e⁰ + e² + e⁴ + e⁰)/4)
        let scores = values(log_sum_exp(maps(&[0.0, 1.0, 2.0, 0.0, 7.0, 7.0, 7.0, 7.0]), 2.0));
        let expected = 0.5 * ((2.0 + 1_f32.exp().powi(2) + 1_f32.exp().powi(4)) / 4.0).ln();
        assert!(near(&scores, &[expected, 7.0], 1e-6), "{scores:?}");
    }

    proptest! {
        #[test]
        fn log_sum_exp_runs_from_the_mean_to_the_maximum(
            cells in prop::collection::vec(-5.0_f32..5.0, 24),
        ) {
            let at = |sharpness| values(log_sum_exp(maps(&cells), sharpness));
            let (lowest, highest) = (values(mean(maps(&cells))), values(max(maps(&cells))));
            // The distance to the maximum is at most ln(12)/r.
            prop_assert!(near(&at(1e4), &highest, 3e-4));
            // Second order: r/2 times a variance of at most 25, and rounding divided by r.
            prop_assert!(near(&at(1e-3), &lowest, 1.4e-2));
            for (score, (low, high)) in at(10.0).iter().zip(lowest.iter().zip(&highest)) {
                prop_assert!(*score >= low - 1e-4 && *score <= high + 1e-4);
            }
        }

        #[test]
        fn wildcat_of_all_cells_is_the_mean_and_of_one_the_maximum(
            cells in prop::collection::vec(-5.0_f32..5.0, 24),
        ) {
            let all = wildcat(Cells::Fraction(1.0), maps(&cells));
            prop_assert!(near(&all, &values(mean(maps(&cells))), 1e-5));
            let one = wildcat(Cells::Count(1), maps(&cells));
            prop_assert_eq!(one, values(max(maps(&cells))));
        }
    }
}
