//! The size constraint: neither foreground nor background may vanish.
//!
//! The method's successor (Belharbi et al., *Deep interpretable classification and
//! weakly-supervised segmentation of histology images via max-min uncertainty*, 2022)
//! requires the areas of foreground and background to be positive, by an extended log
//! barrier (Kervadec et al., *Constrained deep networks: Lagrangian optimization via
//! log-barrier extensions*, 2019).

use crate::config::SizeConfig;

/// An extended log barrier, which keeps `z` below 0.
///
/// Equation B of `docs/method.md`:
///
/// ```text
/// ψ_t(z) = −1/t ln(−z)                    if z ≤ −1/t²
///        = t z − 1/t ln(1/t²) + 1/t       otherwise
/// ```
///
/// Value and slope are continuous where the two meet, so that a
/// constraint that is already violated has a finite penalty and gradient.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Barrier {
    /// t
    sharpness: f64,
}

impl Barrier {
    /// The barrier of an epoch, counted from 0.
    pub fn at(config: &SizeConfig, epoch: usize) -> Self {
        let epoch = i32::try_from(epoch).unwrap_or(i32::MAX);
        let sharpness = config.sharpness * config.growth.powi(epoch);
        Self { sharpness: sharpness.min(config.max_sharpness) }
    }

    /// ψ_t(z).
    pub fn penalty(&self, z: f64) -> f64 {
        let t = self.sharpness;
        if z <= self.knee() { -(-z).ln() / t } else { t * z - (1.0 / (t * t)).ln() / t + 1.0 / t }
    }

    /// dψ_t/dz.
    pub fn slope(&self, z: f64) -> f64 {
        if z <= self.knee() { -1.0 / (self.sharpness * z) } else { self.sharpness }
    }

    /// The penalty of a mask that covers this share of its image, for both areas.
    pub fn of_share(&self, share: f64) -> f64 {
        self.penalty(-share) + self.penalty(share - 1.0)
    }

    /// The derivative of [`Self::of_share`].
    pub fn slope_of_share(&self, share: f64) -> f64 {
        self.slope(share - 1.0) - self.slope(-share)
    }

    /// Where the logarithm ends and the line begins.
    fn knee(&self) -> f64 {
        -1.0 / (self.sharpness * self.sharpness)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn barrier(sharpness: f64) -> Barrier {
        Barrier { sharpness }
    }

    #[test]
    fn far_from_zero_it_is_the_logarithm_and_beyond_a_line() {
        let two = barrier(2.0);
        // −½ ln ½, and 2·0 − ½ ln ¼ + ½.
        assert!((two.penalty(-0.5) - 0.5 * 2.0_f64.ln()).abs() < 1e-12);
        assert!((two.penalty(0.0) - (2.0_f64.ln() + 0.5)).abs() < 1e-12);
        assert_eq!((two.slope(-0.5), two.slope(3.0)), (1.0, 2.0));
        // Both areas: −½ ln ½ − ½ ln ½.
        assert!((two.of_share(0.5) - 2.0_f64.ln()).abs() < 1e-12);
    }

    #[test]
    fn the_two_pieces_meet_in_value_and_slope() {
        for t in [0.5, 1.0, 5.0, 10.0] {
            let (barrier, knee) = (barrier(t), -1.0 / (t * t));
            let (before, after) = (knee * (1.0 + 1e-9), knee * (1.0 - 1e-9));
            assert!((barrier.penalty(before) - barrier.penalty(after)).abs() < 1e-7);
            assert!((barrier.slope(before) - barrier.slope(after)).abs() < 1e-7);
        }
    }

    #[test]
    fn it_sharpens_from_epoch_to_epoch_up_to_a_limit() {
        let config = SizeConfig::default();
        let at = |epoch| Barrier::at(&config, epoch).sharpness;
        assert_eq!((at(0), at(1)), (5.0, 5.0 * 1.01));
        assert!(at(69) < 10.0);
        assert_eq!((at(70), at(usize::MAX)), (10.0, 10.0));
    }

    proptest! {
        #[test]
        fn foreground_and_background_cost_alike_and_half_costs_least(
            share in 0.0_f64..=1.0,
            t in 1.5_f64..20.0,
        ) {
            let barrier = barrier(t);
            prop_assert!((barrier.of_share(share) - barrier.of_share(1.0 - share)).abs() < 1e-9);
            prop_assert!(barrier.of_share(share) >= barrier.of_share(0.5) - 1e-12);
            prop_assert!(barrier.slope_of_share(share) * (share - 0.5) >= 0.0);
        }

        #[test]
        fn the_slope_is_that_of_differences(share in 0.0_f64..=1.0, t in 0.5_f64..20.0) {
            let (barrier, reach) = (barrier(t), 1e-6);
            let rise = barrier.of_share(share + reach) - barrier.of_share(share - reach);
            prop_assert!((rise / (2.0 * reach) - barrier.slope_of_share(share)).abs() < 2e-3 * t * t);
        }
    }
}
