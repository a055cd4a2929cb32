//! Shares of the cores, for images that pass through a frozen backbone beside each other.
//!
//! One image on all cores leaves some of them idle wherever a layer has little to divide.

use std::sync::{Mutex, PoisonError};

use rayon::{ThreadPool, ThreadPoolBuilder};

/// The cores of this process in equal shares.
pub(super) struct CoreShares {
    free: Mutex<Vec<ThreadPool>>,
}

impl CoreShares {
    pub(super) fn new(count: usize) -> Self {
        let cores = rayon::current_num_threads();
        let share = || ThreadPoolBuilder::new().num_threads(cores.div_ceil(count)).build();
        // Where the system allows no more threads, the ones there are do the work.
        let free = (0..count).map_while(|_| share().ok()).collect();
        Self { free: Mutex::new(free) }
    }

    /// Does work on a share that nobody uses.
    pub(super) fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        let free = || self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let share = free().pop();
        let done = match &share {
            Some(share) => share.install(work),
            None => work(),
        };
        free().extend(share);
        done
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_work_has_a_share_of_its_own_and_hands_it_back() {
        let pool = ThreadPoolBuilder::new().num_threads(6).build().unwrap();
        for (count, threads) in [(1, 6), (2, 3), (4, 2)] {
            let shares = pool.install(|| CoreShares::new(count));
            for _ in 0..3 {
                let inner = || shares.run(rayon::current_num_threads);
                let found = shares.run(|| (rayon::current_num_threads(), (count > 1).then(inner)));
                assert_eq!(found, (threads, (count > 1).then_some(threads)));
            }
            assert_eq!(shares.free.lock().unwrap().len(), count);
        }
    }
}
