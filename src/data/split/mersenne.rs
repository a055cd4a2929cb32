//! The random draws of CPython and NumPy, bit for bit.
//!
//! The published folds were drawn with Python's `random` and with NumPy's
//! legacy generator. Both rest on the Mersenne Twister (Matsumoto and
//! Nishimura, 1998) but seed it and turn its words into bounded integers
//! differently. Only what reproduces published lists belongs here; everything
//! else draws from [`rng`](crate::rng).

use rand_mt::Mt;

/// The Mersenne Twister MT19937.
pub(super) struct Mersenne(Mt);

impl Mersenne {
    /// `numpy.random.RandomState(seed)`.
    pub(super) fn from_word(seed: u32) -> Self {
        Self(Mt::new(seed))
    }

    /// `random.seed(seed)`, which takes the seed as words, the lowest first.
    pub(super) fn from_python_seed(seed: u64) -> Self {
        let words = [seed as u32, (seed >> 32) as u32];
        Self(Mt::new_with_key(words.into_iter().take(if words[1] == 0 { 1 } else { 2 })))
    }

    /// `random.randrange(bound)`: the top bits of one word, drawn again until they fit.
    fn below(&mut self, bound: u32) -> u32 {
        assert!(bound > 0, "no number is below zero");
        loop {
            let candidate = self.0.next_u32() >> bound.leading_zeros();
            if candidate < bound {
                return candidate;
            }
        }
    }

    /// `random.shuffle(items)`.
    pub(super) fn shuffle<T>(&mut self, items: &mut [T]) {
        assert!(u32::try_from(items.len()).is_ok(), "a list of samples has below 2^32 items");
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last as u32 + 1) as usize);
        }
    }

    /// A draw from `0..=limit`: the low bits of one word, drawn again until they fit.
    fn at_most(&mut self, limit: u32) -> u32 {
        assert!(limit > 0, "a draw from one number is no draw");
        let mask = u32::MAX >> limit.leading_zeros();
        loop {
            let candidate = self.0.next_u32() & mask;
            if candidate <= limit {
                return candidate;
            }
        }
    }

    /// `RandomState.choice(count, size, replace=False)`: the first of `permutation(count)`.
    pub(super) fn choice(&mut self, count: usize, size: usize) -> Vec<usize> {
        assert!(size <= count, "cannot choose {size} of {count} without repeating one");
        assert!(u32::try_from(count).is_ok(), "a dataset has below 2^32 classes");
        let mut order: Vec<usize> = (0..count).collect();
        for last in (1..count).rev() {
            order.swap(last, self.at_most(last as u32) as usize);
        }
        order.truncate(size);
        order
    }
}

#[cfg(test)]
mod tests {
    //! Expected values were printed by CPython 3.11 and NumPy 2.

    use super::*;

    #[test]
    fn words_are_those_from_python_seed() {
        let words = |seed| {
            let mut random = Mersenne::from_python_seed(seed);
            [random.0.next_u32(), random.0.next_u32(), random.0.next_u32()]
        };
        assert_eq!(words(0), [3626764237, 1654615998, 3255389356]);
        assert_eq!(words((1 << 40) + 7), [2635837658, 3209733218, 3500038837]);
    }

    #[test]
    fn bounded_draws_are_those_from_python_seed() {
        let mut random = Mersenne::from_python_seed(0);
        let drawn = [1, 2, 3, 7, 8, 100, 1000, (1 << 31) + 1].map(|bound| random.below(bound));
        assert_eq!(drawn, [0, 1, 0, 2, 7, 51, 940, 1302718217]);
    }

    #[test]
    fn shuffles_are_those_from_python_seed() {
        let mut items: Vec<u32> = (0..10).collect();
        Mersenne::from_python_seed(0).shuffle(&mut items);
        assert_eq!(items, [7, 8, 1, 5, 3, 4, 2, 0, 9, 6]);
    }

    #[test]
    fn words_are_those_from_word() {
        let mut random = Mersenne::from_word(0);
        let words: Vec<u32> = (0..5).map(|_| random.0.next_u32()).collect();
        assert_eq!(words, [2357136044, 2546248239, 3071714933, 3626093760, 2588848963]);
    }

    #[test]
    fn permutations_and_choices_are_those_from_word() {
        assert_eq!(Mersenne::from_word(0).choice(10, 10), [2, 8, 4, 9, 1, 6, 7, 3, 0, 5]);
        assert_eq!(Mersenne::from_word(7).choice(102, 7), [22, 40, 79, 70, 90, 81, 58]);
    }

    #[test]
    fn seed_zero_chooses_the_five_birds_of_the_paper() {
        assert_eq!(Mersenne::from_word(0).choice(200, 5), [18, 170, 107, 98, 177]);
    }
}
