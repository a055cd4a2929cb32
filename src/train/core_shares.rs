//! Shares of the cores, for images that pass through a frozen backbone beside each other.
//!
//! One image on all cores leaves some of them idle wherever a layer has little to divide.

use std::sync::{Mutex, PoisonError};

use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::model::footprint::images_at_a_time;

/// The cores of this process in equal shares.
pub(super) struct CoreShares {
    free: Mutex<Vec<ThreadPool>>,
    /// Number of shares.
    pub(super) count: usize,
}

impl CoreShares {
    pub(super) fn new() -> Self {
        let (cores, count) = (rayon::current_num_threads(), images_at_a_time());
        let share = || ThreadPoolBuilder::new().num_threads(cores.div_ceil(count)).build();
        // Where the system allows no more threads, the ones there are do the work.
        let free = (0..count).map_while(|_| share().ok()).collect();
        Self { free: Mutex::new(free), count }
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
        let pool = ThreadPoolBuilder::new().num_threads(2).build().unwrap();
        let shares = pool.install(CoreShares::new);
        assert_eq!(shares.count, 2);
        for _ in 0..3 {
            let threads = shares
                .run(|| (rayon::current_num_threads(), shares.run(rayon::current_num_threads)));
            assert_eq!(threads, (1, 1));
        }
        assert_eq!(shares.free.lock().unwrap().len(), 2);
    }

    #[test]
    fn many_cores_are_all_used() {
        let pool = ThreadPoolBuilder::new().num_threads(6).build().unwrap();
        let shares = pool.install(CoreShares::new);
        assert_eq!((shares.count, shares.run(rayon::current_num_threads)), (4, 2));
    }
}
