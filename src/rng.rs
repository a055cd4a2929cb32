//! Named random streams: the only source of randomness in the crate.
//!
//! Every draw comes from a stream that is a pure function of
//! *(seed, purpose, epoch, index)*. Which thread asks, in which order and how
//! often other streams were used therefore never matters: that is what makes a
//! run the same bytes on any number of workers, and a resumed run equal to an
//! uninterrupted one.

/// What a stream is for; streams of different purposes are independent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Purpose {
    /// The order in which an epoch visits the training samples.
    Shuffle,
    /// Crop, flips and colours of one sample in one epoch.
    Augment,
    /// Which training samples become the validation split.
    Split,
    /// Dropout masks of one step.
    Dropout,
    /// Initial weights.
    Init,
    /// The synthetic dataset.
    Synthetic,
    /// Resampling for confidence intervals.
    Bootstrap,
    /// Which images are held out together.
    CrossValidation,
}

/// A stream of random numbers (xoshiro256++, seeded through splitmix64).
///
/// Written out here, not taken from a crate, because its values are part of
/// what a seed means: they must not change with a dependency's version.
#[derive(Debug, Clone)]
pub struct Stream {
    state: [u64; 4],
}

impl Stream {
    /// The stream of `purpose` for one `index` (a sample, a step) of one `epoch`.
    pub fn new(seed: u64, purpose: Purpose, epoch: u64, index: u64) -> Self {
        let mut key = seed;
        for part in [purpose as u64, epoch, index] {
            // One mixing per part keeps (1, 0) and (0, 1) apart.
            key = splitmix64(&mut key) ^ part.wrapping_mul(0xD6E8_FEB8_6659_FD93);
        }
        let state = std::array::from_fn(|_| splitmix64(&mut key));
        Self { state }
    }

    /// The next 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        let [s0, s1, s2, s3] = &mut self.state;
        let result = s0.wrapping_add(*s3).rotate_left(23).wrapping_add(*s0);
        let shifted = *s1 << 17;
        *s2 ^= *s0;
        *s3 ^= *s1;
        *s1 ^= *s2;
        *s0 ^= *s3;
        *s2 ^= shifted;
        *s3 = s3.rotate_left(45);
        result
    }

    /// Uniform in `[0, 1)`, with 53 random bits.
    pub fn uniform(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Uniform in `[low, high)`.
    pub fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.uniform()
    }

    /// Uniform in `0..bound`, without bias.
    pub fn below(&mut self, bound: usize) -> usize {
        assert!(bound > 0, "no number is below zero");
        // Lemire's multiplication method: reject the few values that would favour small results.
        let bound = bound as u64;
        let threshold = bound.wrapping_neg() % bound;
        loop {
            let wide = u128::from(self.next_u64()) * u128::from(bound);
            if wide as u64 >= threshold {
                return (wide >> 64) as usize;
            }
        }
    }

    /// True with probability `p`.
    pub fn chance(&mut self, p: f64) -> bool {
        self.uniform() < p
    }

    /// A draw from the standard normal distribution (Box–Muller).
    pub fn normal(&mut self) -> f64 {
        // 1 − u is in (0, 1], where the logarithm is finite.
        let radius = (-2.0 * (1.0 - self.uniform()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }

    /// Puts `items` into a uniformly random order.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }
}

fn splitmix64(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generator_is_xoshiro256_plus_plus() {
        // First outputs for the state 1, 2, 3, 4, computed from the published reference code.
        let mut stream = Stream { state: [1, 2, 3, 4] };
        let drawn: Vec<u64> = (0..4).map(|_| stream.next_u64()).collect();
        assert_eq!(drawn, [41943041, 58720359, 3588806011781223, 3591011842654386]);
    }

    #[test]
    fn each_part_of_the_name_changes_the_stream() {
        let first =
            |seed, purpose, epoch, index| Stream::new(seed, purpose, epoch, index).next_u64();
        let mut drawn = vec![
            first(0, Purpose::Shuffle, 0, 0),
            first(1, Purpose::Shuffle, 0, 0),
            first(0, Purpose::Augment, 0, 0),
            first(0, Purpose::Shuffle, 1, 0),
            first(0, Purpose::Shuffle, 0, 1),
            first(0, Purpose::Shuffle, 1, 1),
        ];
        drawn.sort_unstable();
        drawn.dedup();
        assert_eq!(drawn.len(), 6);
    }

    #[test]
    fn draws_below_a_bound_are_even() {
        let mut stream = Stream::new(7, Purpose::Shuffle, 0, 0);
        let mut counts = [0_u32; 6];
        for _ in 0..60_000 {
            counts[stream.below(6)] += 1;
        }
        // Five standard deviations of a binomial(60000, 1/6) are 456.
        assert!(counts.iter().all(|&n| n.abs_diff(10_000) < 456), "{counts:?}");
    }

    #[test]
    fn normal_draws_have_mean_zero_and_variance_one() {
        let mut stream = Stream::new(7, Purpose::Init, 0, 0);
        let draws: Vec<f64> = (0..100_000).map(|_| stream.normal()).collect();
        let mean = draws.iter().sum::<f64>() / draws.len() as f64;
        let variance = draws.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / draws.len() as f64;
        assert!(mean.abs() < 0.016 && (variance - 1.0).abs() < 0.023, "{mean} {variance}");
    }

    #[test]
    fn a_shuffle_keeps_every_item() {
        let mut items: Vec<u32> = (0..100).collect();
        Stream::new(0, Purpose::Shuffle, 3, 0).shuffle(&mut items);
        assert_ne!(items, (0..100).collect::<Vec<_>>());
        items.sort_unstable();
        assert_eq!(items, (0..100).collect::<Vec<_>>());
    }
}
