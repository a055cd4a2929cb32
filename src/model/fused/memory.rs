//! Memory of activations and gradients, handed from layer to layer instead of back to the system.
//!
//! Fresh memory costs more than the layers that make one pass over it, since the system clears
//! every page first. So a vector that is not used any more is kept for the next layer that needs
//! one of about the same size.
//!
//! No more vectors are kept than were lent: one of other origin is kept only in place of one that
//! was lent and not given back.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use burn::backend::flex::FlexTensor;

static POOL: Mutex<Pool> = Mutex::new(Pool { free: BTreeMap::new(), lent: BTreeMap::new() });

struct Pool {
    /// Vectors nobody uses, by length.
    free: BTreeMap<usize, Vec<Vec<f32>>>,
    /// How many vectors of a length have not come back.
    lent: BTreeMap<usize, usize>,
}

/// The longest vector that may stand in for one of `len` values.
fn limit(len: usize) -> usize {
    len.saturating_add(len / 4)
}

/// A vector of `len` arbitrary values.
pub(super) fn take(len: usize) -> Vec<f32> {
    let mut pool = pool();
    if let Some(mut found) = pool.remove(len, limit(len)) {
        pool.lend(found.len());
        found.truncate(len);
        return found;
    }
    // Vectors that are too small would pile up if sizes keep growing.
    let outgrown = pool.remove_largest_below(len);
    pool.lend(len);
    drop(pool);
    drop(outgrown);
    vec![0.0; len]
}

/// Keeps a vector for whoever needs one next.
pub(in crate::model) fn give(mut vector: Vec<f32>) {
    if pool().settle(vector.capacity()) {
        // At full length, so that its values count as initialized when it is taken again.
        vector.resize(vector.capacity(), 0.0);
        pool().free.entry(vector.len()).or_default().push(vector);
    }
}

/// Keeps a tensor's memory, unless it is shared.
pub(super) fn give_back(tensor: FlexTensor) {
    let whole = tensor.is_contiguous() && tensor.layout().start_offset() == 0;
    if whole && tensor.is_unique() {
        give(tensor.into_data().try_into_vec().unwrap_or_default());
    }
}

fn pool() -> MutexGuard<'static, Pool> {
    POOL.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Pool {
    fn lend(&mut self, len: usize) {
        *self.lent.entry(len).or_default() += 1;
    }

    /// Whether a vector of that length was lent and not given back; it counts as given back now.
    fn settle(&mut self, len: usize) -> bool {
        match self.lent.get_mut(&len) {
            Some(1) => self.lent.remove(&len).is_some(),
            Some(count) => {
                *count -= 1;
                true
            }
            None => false,
        }
    }

    /// The shortest vector of at least `low` and at most `high` values.
    fn remove(&mut self, low: usize, high: usize) -> Option<Vec<f32>> {
        let len = *self.free.range(low..=high).next()?.0;
        self.pop(len)
    }

    fn remove_largest_below(&mut self, len: usize) -> Option<Vec<f32>> {
        let largest = *self.free.range(..len).next_back()?.0;
        self.pop(largest)
    }

    fn pop(&mut self, len: usize) -> Option<Vec<f32>> {
        let same = self.free.get_mut(&len)?;
        let found = same.pop();
        if same.is_empty() {
            self.free.remove(&len);
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool_of(lengths: &[usize]) -> Pool {
        let mut free: BTreeMap<usize, Vec<Vec<f32>>> = BTreeMap::new();
        lengths.iter().for_each(|&len| free.entry(len).or_default().push(vec![0.0; len]));
        Pool { free, lent: BTreeMap::new() }
    }

    #[test]
    fn the_shortest_vector_that_is_long_enough_is_taken() {
        let mut pool = pool_of(&[10, 20, 20, 80]);
        assert_eq!(pool.remove(15, 60).map(|v| v.len()), Some(20));
        assert_eq!(pool.remove(15, 60).map(|v| v.len()), Some(20));
        assert_eq!(pool.remove(15, 60), None, "80 is too long to waste");
        assert_eq!(pool.remove_largest_below(80).map(|v| v.len()), Some(10));
    }

    #[test]
    fn what_is_given_back_is_taken_again() {
        // A length no other test uses.
        let vector = take(123_457);
        let address = vector.as_ptr();
        give(vector);
        let again = take(123_450);
        assert_eq!((again.len(), again.as_ptr()), (123_450, address));
    }

    #[test]
    fn no_more_is_kept_than_was_lent() {
        let mut pool = pool_of(&[]);
        assert!(!pool.settle(10), "nobody has asked for this");
        pool.lend(10);
        pool.lend(10);
        assert_eq!([(); 3].map(|()| pool.settle(10)), [true, true, false]);
    }
}
