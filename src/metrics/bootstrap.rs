//! Confidence intervals of means over images.

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::rng::{Purpose, Stream};

/// Confidence intervals by resampling images with replacement (percentile bootstrap).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Bootstrap {
    /// Number of resamples; 0 for no intervals.
    pub resamples: u32,
    /// Share of the resampled means that an interval holds.
    pub confidence: f64,
    /// Root of the random streams.
    pub seed: u64,
}

/// A confidence interval of a mean over images.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Default for Bootstrap {
    fn default() -> Self {
        Self { resamples: 1000, confidence: 0.95, seed: 0 }
    }
}

impl Bootstrap {
    /// The interval of the mean of `values`, one per image.
    ///
    /// The same images are drawn for every score, and for every method on one split, so that their
    /// intervals are comparable. `None` without images or resamples.
    pub fn interval(&self, values: &[f64]) -> Option<Interval> {
        assert!((0.0..=1.0).contains(&self.confidence), "confidence is a share");
        if values.is_empty() || self.resamples == 0 {
            return None;
        }
        // A stream for each resample: any thread may draw it.
        let mut means: Vec<f64> =
            (0..self.resamples).into_par_iter().map(|index| self.resample(values, index)).collect();
        means.sort_unstable_by(f64::total_cmp);
        let tail = (1.0 - self.confidence) / 2.0;
        Some(Interval { low: quantile(&means, tail), high: quantile(&means, 1.0 - tail) })
    }

    fn resample(&self, values: &[f64], index: u32) -> f64 {
        let mut stream = Stream::new(self.seed, Purpose::Bootstrap, 0, index.into());
        let sum: f64 = (0..values.len()).map(|_| values[stream.below(values.len())]).sum();
        sum / values.len() as f64
    }
}

/// Linear between the two nearest of the sorted values.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let position = share * (sorted.len() - 1) as f64;
    let (below, part) = (position.floor() as usize, position.fract());
    let above = (below + 1).min(sorted.len() - 1);
    sorted[below] + (sorted[above] - sorted[below]) * part
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_of_many_images_is_that_of_the_normal_distribution() {
        // Half zeros, half ones: the standard error of the mean of 400 is 0.5 / 20.
        let values: Vec<f64> = (0..400).map(|i| f64::from(i % 2)).collect();
        let Interval { low, high } = Bootstrap::default().interval(&values).unwrap();
        assert!((low - (0.5 - 1.96 * 0.025)).abs() < 0.008, "{low}");
        assert!((high - (0.5 + 1.96 * 0.025)).abs() < 0.008, "{high}");
    }

    #[test]
    fn the_same_seed_gives_the_same_interval_on_any_number_of_threads() {
        let values: Vec<f64> = (0..97).map(|i| f64::from(i).sin()).collect();
        let on = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| Bootstrap::default().interval(&values))
        };
        assert_eq!(on(1), on(3));
        assert_ne!(on(1), Bootstrap { seed: 1, ..Bootstrap::default() }.interval(&values));
    }

    #[test]
    fn equal_values_leave_no_doubt_and_no_values_no_interval() {
        let sure = Bootstrap::default().interval(&[0.25; 5]);
        assert_eq!(sure, Some(Interval { low: 0.25, high: 0.25 }));
        assert_eq!(Bootstrap::default().interval(&[]), None);
        assert_eq!(Bootstrap { resamples: 0, ..Bootstrap::default() }.interval(&[1.0]), None);
    }

    #[test]
    fn quantiles_are_linear_between_values() {
        assert_eq!(
            [0.0, 0.25, 1.0].map(|share| quantile(&[1.0, 3.0, 4.0], share)),
            [1.0, 2.0, 4.0]
        );
    }
}
