//! The learning rate as a function of the epoch.

use crate::config::{OptimizerConfig, Semantics};

/// The learning rate of an epoch, counted from 0.
///
/// Equation A of `docs/method.md`:
///
/// ```text
/// η(e) = max(η₀ · γ^⌊e / n⌋, η_min)
/// ```
///
/// The published code is one epoch late: its epoch e ≥ 1 uses η(e − 1).
pub fn learning_rate(config: &OptimizerConfig, semantics: Semantics, epoch: usize) -> f64 {
    let epoch = match semantics {
        Semantics::Pinpoint => epoch,
        Semantics::Reference => epoch.saturating_sub(1),
    };
    let drops = (epoch / config.decay_every).min(i32::MAX as usize) as i32;
    (config.learning_rate * config.decay.powi(drops)).max(config.min_learning_rate)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rates(semantics: Semantics, epochs: [usize; 5]) -> [f64; 5] {
        epochs.map(|epoch| learning_rate(&OptimizerConfig::default(), semantics, epoch))
    }

    fn close(found: [f64; 5], expected: [f64; 5]) -> bool {
        found.iter().zip(expected).all(|(a, b)| (a / b - 1.0).abs() < 1e-12)
    }

    #[test]
    fn the_rate_falls_tenfold_every_forty_epochs_down_to_its_floor() {
        let found = rates(Semantics::Pinpoint, [0, 39, 40, 120, 399]);
        assert!(close(found, [1e-3, 1e-3, 1e-4, 1e-6, 1e-7]), "{found:?}");
    }

    #[test]
    fn the_published_code_is_one_epoch_late() {
        let found = rates(Semantics::Reference, [0, 40, 41, 80, 81]);
        assert!(close(found, [1e-3, 1e-3, 1e-4, 1e-4, 1e-5]), "{found:?}");
    }
}
