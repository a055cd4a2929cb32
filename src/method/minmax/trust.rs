//! Trust coefficients Ψ of recursive erasing.
//!
//! A localizer trained from image labels settles on the single most discriminative
//! region. Each round erases what was found so far and localizes again; its mask is weighted by
//! its trust coefficient and accumulated.
//!
//! ```text
//!            ┌──────────── × (1 − mask) ◀───────────┐
//!            ▼                                      │
//! image ─▶ erased ─▶ localize ─▶ × trust ─▶ max ─▶ mask ─▶ foreground
//! ```
//!
//! Everything here is plain floats; `step.rs` has the tensors.
//!
//! Two invariants, both tested below: trust is in `[0, 1]`, and a sample that has
//! stopped never takes part again.

use crate::{config::Semantics, method::losses::SamplePrediction};

/// Computes the trust coefficients of successive rounds for the samples of a batch.
#[derive(Debug)]
pub struct Trust {
    sigma: f64,
    semantics: Semantics,
    /// Whether predictions are ignored.
    unconditional: bool,
    round: usize,
    samples: Vec<Sample>,
}

#[derive(Debug, Clone, Copy)]
struct Sample {
    stopped: bool,
    /// H₀
    first_loss: f32,
}

impl Trust {
    /// Starts before the first round, when no sample of the batch has stopped.
    pub fn new(batch: usize, sigma: f64, semantics: Semantics) -> Self {
        assert!(sigma > 0.0, "Config::check lets no other sigma through");
        let sample = Sample { stopped: false, first_loss: f32::INFINITY };
        Self { sigma, semantics, unconditional: false, round: 0, samples: vec![sample; batch] }
    }

    /// Trusts every sample in every round, whatever is predicted: the most costly case, for
    /// benchmarks.
    pub fn unconditional(batch: usize, sigma: f64) -> Self {
        Self { unconditional: true, ..Self::new(batch, sigma, Semantics::Pinpoint) }
    }

    /// Number of localizer passes for `rounds` erasings: t = 0 to u, of which t = 0 is given the
    /// intact image.
    ///
    /// The published code stops one pass earlier and never uses what it erased last.
    pub fn passes(rounds: usize, semantics: Semantics) -> usize {
        match semantics {
            Semantics::Pinpoint => rounds + 1,
            Semantics::Reference => rounds.max(1),
        }
    }

    /// The samples that take part in the next round; none if all have stopped.
    ///
    /// Those that have stopped leave the batch, and nothing is computed for them;
    /// the published code keeps them in it until the last one stops.
    pub fn active(&self) -> Vec<usize> {
        let all = || 0..self.samples.len();
        match self.semantics {
            Semantics::Pinpoint => all().filter(|&i| !self.samples[i].stopped).collect(),
            Semantics::Reference if all().any(|i| !self.samples[i].stopped) => all().collect(),
            Semantics::Reference => Vec::new(),
        }
    }

    /// Ψ of each active sample in this round, in the order of [`Self::active`].
    ///
    /// Equations 11 and 12 of the paper, for sample i in round t:
    ///
    /// ```text
    /// Ψ(t, i) = exp(−t/σ) Γ(t, i)
    /// Γ(t, i) = p̂ˢ(yᵢ) if ŷᵢ = yᵢ and H_t ≤ H_0, else 0
    /// ```
    ///
    /// Once zero it stays zero: the sample stops. H is [`SamplePrediction::loss`]. In the
    /// published code a wrong class stops the sample, and H_t > H_0 only zeroes its Ψ.
    pub fn coefficients(&mut self, active: &[usize], predictions: &[SamplePrediction]) -> Vec<f32> {
        assert_eq!(active.len(), predictions.len(), "one prediction per active sample");
        let decay = (-(self.round as f64) / self.sigma).exp() as f32;
        let first = self.round == 0;
        self.round += 1;
        if self.unconditional {
            return vec![decay; active.len()];
        }
        let psi = |(&index, prediction): (&usize, &SamplePrediction)| {
            let sample = &mut self.samples[index];
            if first {
                sample.first_loss = prediction.loss;
            }
            let no_worse = prediction.loss <= sample.first_loss;
            let stays = no_worse || self.semantics == Semantics::Reference;
            sample.stopped |= !prediction.correct || !stays;
            if no_worse && !sample.stopped { prediction.confidence * decay } else { 0.0 }
        };
        active.iter().zip(predictions).map(psi).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const CORRECT: SamplePrediction =
        SamplePrediction { correct: true, confidence: 0.8, loss: 0.2 };
    const WRONG: SamplePrediction = SamplePrediction { correct: false, ..CORRECT };
    const LESS_CERTAIN: SamplePrediction = SamplePrediction { loss: 0.3, ..CORRECT };

    #[test]
    fn the_first_round_is_trusted_by_its_confidence() {
        assert_eq!(weights(Semantics::Pinpoint, &[CORRECT]), [0.8]);
    }

    #[test]
    fn later_rounds_count_for_less() {
        let certain = SamplePrediction { confidence: 1.0, ..CORRECT };
        let weights = weights(Semantics::Pinpoint, &[certain; 5]);
        let decay = [1.0, 0.904_837, 0.818_731, 0.740_818, 0.670_320];
        for (weight, expected) in weights.iter().zip(decay) {
            assert!((weight - expected).abs() < 1e-6, "{weights:?}");
        }
    }

    #[test]
    fn a_mistake_is_final() {
        for semantics in [Semantics::Pinpoint, Semantics::Reference] {
            assert_eq!(weights(semantics, &[CORRECT, WRONG, CORRECT])[1..], [0.0, 0.0]);
        }
    }

    #[test]
    fn a_higher_loss_is_final_too_but_not_in_the_published_code() {
        let rounds = [CORRECT, LESS_CERTAIN, CORRECT];
        assert_eq!(weights(Semantics::Pinpoint, &rounds)[1..], [0.0, 0.0]);
        let [_, unsure, after] = weights(Semantics::Reference, &rounds)[..] else { unreachable!() };
        assert_eq!(unsure, 0.0);
        assert!(after > 0.0);
    }

    #[test]
    fn stopped_samples_leave_the_batch_but_not_in_the_published_code() {
        for (semantics, expected) in
            [(Semantics::Pinpoint, vec![0, 2]), (Semantics::Reference, vec![0, 1, 2])]
        {
            let mut trust = Trust::new(3, 10.0, semantics);
            trust.coefficients(&[0, 1, 2], &[CORRECT, WRONG, CORRECT]);
            assert_eq!(trust.active(), expected);
            trust.coefficients(&trust.active(), &vec![WRONG; expected.len()]);
            assert!(trust.active().is_empty());
        }
    }

    #[test]
    fn every_erasing_is_followed_by_a_localizer_pass_but_not_in_the_published_code() {
        assert_eq!([0, 1, 4].map(|rounds| Trust::passes(rounds, Semantics::Pinpoint)), [1, 2, 5]);
        assert_eq!([0, 1, 4].map(|rounds| Trust::passes(rounds, Semantics::Reference)), [1, 1, 4]);
    }

    proptest! {
        #[test]
        fn trust_is_in_the_unit_interval_and_the_stopped_stay_stopped(
            rounds in prop::collection::vec((any::<bool>(), 0.0_f32..=1.0, 0.0_f32..5.0), 1..8),
        ) {
            let mut trust = Trust::new(1, 10.0, Semantics::Pinpoint);
            let mut stopped = false;
            for (correct, confidence, loss) in rounds {
                let active = trust.active();
                prop_assert!(!stopped || active.is_empty());
                let predictions = vec![SamplePrediction { correct, confidence, loss }; active.len()];
                for weight in trust.coefficients(&active, &predictions) {
                    prop_assert!((0.0..=1.0).contains(&weight));
                }
                stopped = trust.active().is_empty();
            }
        }
    }

    /// The weights of one sample over successive rounds, with σ = 10.
    fn weights(semantics: Semantics, rounds: &[SamplePrediction]) -> Vec<f32> {
        let mut trust = Trust::new(1, 10.0, semantics);
        let weigh = |prediction: &SamplePrediction| {
            let active = trust.active();
            let weights = trust.coefficients(&active, &vec![*prediction; active.len()]);
            weights.first().copied().unwrap_or(0.0)
        };
        rounds.iter().map(weigh).collect()
    }
}
