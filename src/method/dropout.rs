//! Dropout masks of one step.
//!
//! All localizer passes of a step share one mask, and so do foreground and
//! background: losses that are compared with each other must differ by what was
//! erased, not by what was dropped.

use crate::{
    config::Config,
    rng::{Purpose, Stream},
};

/// The factor of dropout for each sorted cell, for both heads.
#[derive(Debug, Clone, Default)]
pub struct Dropout {
    /// `[B, C, cells]` of the localizer's maps.
    pub localizer: Option<Vec<f32>>,
    /// `[B, C, cells]` of the classifier's maps.
    pub classifier: Option<Vec<f32>>,
}

impl Dropout {
    /// Draws the masks of the given samples: cells are kept with probability `1 − p`, and scaled by
    /// `1/(1 − p)`.
    ///
    /// `cells` are those of one map of the localizer and of the classifier.
    pub fn draw(
        config: &Config,
        classes: usize,
        cells: [usize; 2],
        epoch: usize,
        samples: &[usize],
    ) -> Self {
        let p = config.pool.dropout;
        if p == 0.0 {
            return Self::default();
        }
        let survivor = (1.0 / (1.0 - p)) as f32;
        let [localizer, classifier] = [0, 1].map(|head| {
            let mut keep = Vec::with_capacity(samples.len() * classes * cells[head]);
            for &sample in samples {
                let (epoch, index) = (epoch as u64, (2 * sample + head) as u64);
                let mut stream = Stream::new(config.seed, Purpose::Dropout, epoch, index);
                let cells = 0..classes * cells[head];
                keep.extend(cells.map(|_| if stream.chance(p) { 0.0 } else { survivor }));
            }
            Some(keep)
        });
        Self { localizer, classifier }
    }

    /// The localizer's rows of the given samples of the batch.
    pub fn of_localizer(&self, active: &[usize], batch: usize) -> Option<Vec<f32>> {
        let keep = self.localizer.as_ref()?;
        let row = keep.len() / batch;
        Some(active.iter().flat_map(|&i| &keep[i * row..(i + 1) * row]).copied().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(p: f64) -> Config {
        let mut config = Config { seed: 3, ..Config::default() };
        config.pool.dropout = p;
        config
    }

    #[test]
    fn survivors_make_up_for_the_dropped() {
        let dropout = Dropout::draw(&config(0.75), 4, [1000, 500], 0, &[0, 7]);
        let keep = dropout.localizer.unwrap();
        assert_eq!((keep.len(), dropout.classifier.unwrap().len()), (8000, 4000));
        assert!(keep.iter().all(|&k| k == 0.0 || k == 4.0));
        let mean = keep.iter().sum::<f32>() / keep.len() as f32;
        // Five standard deviations of the mean of 8000 draws are 0.097.
        assert!((mean - 1.0).abs() < 0.1, "{mean}");
    }

    #[test]
    fn a_sample_keeps_its_mask_whatever_else_is_in_the_batch() {
        let draw = |samples: &[usize]| Dropout::draw(&config(0.5), 2, [5, 3], 1, samples);
        let both = draw(&[4, 9]).of_localizer(&[1], 2);
        assert_eq!(both, draw(&[9]).localizer);
        assert_ne!(both, draw(&[4]).localizer);
    }
}
