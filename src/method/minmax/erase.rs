//! Recursive erasing: look again where the localizer has not looked yet.
//!
//! A localizer trained from image labels settles on the single most telling
//! region. Each round hides what was found so far and localizes again; a round
//! adds to the mask only as far as it can be trusted.
//!
//! ```text
//!            ┌──────────── × (1 − mask) ◀───────────┐
//!            ▼                                      │
//! image ─▶ erased ─▶ localize ─▶ × trust ─▶ max ─▶ mask ─▶ foreground
//! ```
//!
//! Only the *policy* lives here, in plain floats: how far to trust a round, and
//! which samples go on. The tensors are moved by [`step`](crate::method::minmax::step).
//!
//! Two invariants, both tested below: trust is in `[0, 1]`, and a sample that has
//! stopped never comes back.

use crate::config::Semantics;

/// What the localizer said about one sample in one round.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SamplePrediction {
    /// Whether the most probable class is the label.
    pub correct: bool,
    /// Probability of the most probable class.
    pub confidence: f32,
    /// Cross-entropy of the prediction against the label.
    pub loss: f32,
}

/// Weighs the masks of successive rounds over one batch.
#[derive(Debug)]
pub struct Trust {
    sigma: f64,
    semantics: Semantics,
    /// Whether sample_predictions are ignored.
    blind: bool,
    round: usize,
    samples: Vec<Sample>,
}

#[derive(Debug, Clone, Copy)]
struct Sample {
    alive: bool,
    first_loss: f32,
}

impl Trust {
    /// Starts before the first round, with every sample of the batch alive.
    pub fn new(batch: usize, sigma: f64, semantics: Semantics) -> Self {
        assert!(sigma > 0.0, "Config::check lets no other sigma through");
        let sample = Sample { alive: true, first_loss: f32::INFINITY };
        Self { sigma, semantics, blind: false, round: 0, samples: vec![sample; batch] }
    }

    /// Trusts every sample in every round, whatever is said about it: the dearest case, to measure.
    pub fn blind(batch: usize, sigma: f64) -> Self {
        Self { blind: true, ..Self::new(batch, sigma, Semantics::Pinpoint) }
    }

    /// How many looks `rounds` erasings allow: the intact image is looked at, too.
    ///
    /// The published code stops one look earlier and never uses what it erased last.
    pub fn passes(rounds: usize, semantics: Semantics) -> usize {
        match semantics {
            Semantics::Pinpoint => rounds + 1,
            Semantics::Reference => rounds.max(1),
        }
    }

    /// The samples that take part in the next round, none when it is over.
    ///
    /// Those that have stopped leave the batch, and nothing is computed for them;
    /// the published code keeps them in it until the last one stops.
    pub fn active(&self) -> Vec<usize> {
        let all = || 0..self.samples.len();
        match self.semantics {
            Semantics::Pinpoint => all().filter(|&i| self.samples[i].alive).collect(),
            Semantics::Reference if all().any(|i| self.samples[i].alive) => all().collect(),
            Semantics::Reference => Vec::new(),
        }
    }

    /// The weight of each active sample's mask in this round, in the order of [`Self::active`].
    ///
    /// Equation 4 of `docs/method.md`, for sample *i* in round *t*:
    ///
    /// ```text
    /// Ψᵢ(t) = exp(−t/σ) · p̂ᵢ(t) · [ŷᵢ(s) = yᵢ and Hᵢ(s) ≤ Hᵢ(0) for all s ≤ t]
    ///         ╰─decay─╯   ╰conf.╯ ╰──────────────── alive ─────────────────╯
    /// ```
    ///
    /// Later rounds count for less, doubtful ones for less still; a round that
    /// mistakes the class, or makes it *harder* to predict than the intact image
    /// did (`H` is [`SamplePrediction::loss`]), ends the looking. In the published code only
    /// a mistake is final.
    pub fn weigh(&mut self, active: &[usize], sample_predictions: &[SamplePrediction]) -> Vec<f32> {
        assert_eq!(active.len(), sample_predictions.len(), "one prediction per active sample");
        let decay = (-(self.round as f64) / self.sigma).exp() as f32;
        let first = self.round == 0;
        self.round += 1;
        if self.blind {
            return vec![decay; active.len()];
        }
        let weigh = |(&index, prediction): (&usize, &SamplePrediction)| {
            let sample = &mut self.samples[index];
            if first {
                sample.first_loss = prediction.loss;
            }
            sample.weigh(prediction, self.semantics) * decay
        };
        active.iter().zip(sample_predictions).map(weigh).collect()
    }
}

impl Sample {
    fn weigh(&mut self, prediction: &SamplePrediction, semantics: Semantics) -> f32 {
        let certain = prediction.loss <= self.first_loss;
        self.alive &= prediction.correct && (certain || semantics == Semantics::Reference);
        if self.alive && certain { prediction.confidence } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const RIGHT: SamplePrediction = SamplePrediction { correct: true, confidence: 0.8, loss: 0.2 };
    const WRONG: SamplePrediction = SamplePrediction { correct: false, ..RIGHT };
    const UNSURE: SamplePrediction = SamplePrediction { loss: 0.3, ..RIGHT };

    #[test]
    fn the_first_round_is_trusted_by_its_confidence() {
        assert_eq!(weights(Semantics::Pinpoint, &[RIGHT]), [0.8]);
    }

    #[test]
    fn later_rounds_count_for_less() {
        let certain = SamplePrediction { confidence: 1.0, ..RIGHT };
        let weights = weights(Semantics::Pinpoint, &[certain; 5]);
        let decay = [1.0, 0.904_837, 0.818_731, 0.740_818, 0.670_320];
        for (weight, expected) in weights.iter().zip(decay) {
            assert!((weight - expected).abs() < 1e-6, "{weights:?}");
        }
    }

    #[test]
    fn a_mistake_is_final() {
        for semantics in [Semantics::Pinpoint, Semantics::Reference] {
            assert_eq!(weights(semantics, &[RIGHT, WRONG, RIGHT])[1..], [0.0, 0.0]);
        }
    }

    #[test]
    fn doubt_is_final_too_but_not_in_the_published_code() {
        let rounds = [RIGHT, UNSURE, RIGHT];
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
            trust.weigh(&[0, 1, 2], &[RIGHT, WRONG, RIGHT]);
            assert_eq!(trust.active(), expected);
            trust.weigh(&trust.active(), &vec![WRONG; expected.len()]);
            assert!(trust.active().is_empty());
        }
    }

    #[test]
    fn every_erasing_is_followed_by_a_look_but_not_in_the_published_code() {
        assert_eq!([0, 1, 4].map(|rounds| Trust::passes(rounds, Semantics::Pinpoint)), [1, 2, 5]);
        assert_eq!([0, 1, 4].map(|rounds| Trust::passes(rounds, Semantics::Reference)), [1, 1, 4]);
    }

    proptest! {
        #[test]
        fn trust_is_in_the_unit_interval_and_the_dead_stay_dead(
            rounds in prop::collection::vec((any::<bool>(), 0.0_f32..=1.0, 0.0_f32..5.0), 1..8),
        ) {
            let mut trust = Trust::new(1, 10.0, Semantics::Pinpoint);
            let mut dead = false;
            for (correct, confidence, loss) in rounds {
                let active = trust.active();
                prop_assert!(!dead || active.is_empty());
                let sample_predictions = vec![SamplePrediction { correct, confidence, loss }; active.len()];
                for weight in trust.weigh(&active, &sample_predictions) {
                    prop_assert!((0.0..=1.0).contains(&weight));
                }
                dead = trust.active().is_empty();
            }
        }
    }

    /// The weights of one sample over successive rounds, with σ = 10.
    fn weights(semantics: Semantics, rounds: &[SamplePrediction]) -> Vec<f32> {
        let mut trust = Trust::new(1, 10.0, semantics);
        let weigh = |prediction: &SamplePrediction| {
            let active = trust.active();
            let weights = trust.weigh(&active, &vec![*prediction; active.len()]);
            weights.first().copied().unwrap_or(0.0)
        };
        rounds.iter().map(weigh).collect()
    }
}
