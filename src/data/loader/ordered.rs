//! Work done by several threads, handed over in order.

use std::{
    collections::BTreeMap,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

/// An iterator over `work(0)`, `work(1)`, …, computed ahead by worker threads.
///
/// At most `window` results are begun and not yet taken, which bounds the
/// memory. Results come in order, whichever thread finishes first. A panic in
/// `work` is handed over in place of its result. Dropping the iterator stops
/// the workers as soon as they finish the piece at hand, and does not wait for them.
#[derive(Debug)]
pub(super) struct Ordered<T> {
    shared: Arc<Shared<T>>,
}

/// Ends an [`Ordered`] early, from any thread.
#[derive(Debug)]
pub(super) struct Stopper<T>(Arc<Shared<T>>);

#[derive(Debug)]
struct Shared<T> {
    state: Mutex<State<T>>,
    /// Told when a result arrives, or when everything ends.
    arrived: Condvar,
    /// Told when a result is taken, or when everything ends.
    taken: Condvar,
    jobs: usize,
    window: usize,
}

#[derive(Debug)]
struct State<T> {
    next_to_begin: usize,
    next_to_take: usize,
    finished: BTreeMap<usize, thread::Result<T>>,
    stopped: bool,
}

impl<T: Send + 'static> Ordered<T> {
    /// Begins to compute `work` for each number below `jobs`.
    pub(super) fn new(
        jobs: usize,
        workers: usize,
        window: usize,
        work: impl Fn(usize) -> T + Send + Sync + 'static,
    ) -> Self {
        assert!(window > 0, "no work could ever begin");
        let state =
            State { next_to_begin: 0, next_to_take: 0, finished: BTreeMap::new(), stopped: false };
        let shared = Arc::new(Shared {
            state: Mutex::new(state),
            arrived: Condvar::new(),
            taken: Condvar::new(),
            jobs,
            window,
        });
        let work = Arc::new(work);
        let spawn = |_| {
            let (shared, work) = (Arc::clone(&shared), Arc::clone(&work));
            thread::spawn(move || shared.run(&*work));
        };
        (0..workers.clamp(1, jobs.max(1))).for_each(spawn);
        Self { shared }
    }

    /// Waits for the next result, but no longer than this; whether it would come at once now.
    pub(super) fn wait(&self, patience: Duration) -> bool {
        let Shared { arrived, jobs, .. } = &*self.shared;
        let state = self.shared.lock();
        let job = state.next_to_take;
        let missing = |state: &mut State<T>| {
            !state.stopped && job < *jobs && !state.finished.contains_key(&job)
        };
        let outcome = arrived.wait_timeout_while(state, patience, missing);
        !outcome.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }

    /// A handle that can end this iterator while another thread waits for it.
    pub(super) fn stopper(&self) -> Stopper<T> {
        Stopper(Arc::clone(&self.shared))
    }
}

impl<T> Stopper<T> {
    /// Lets no further work begin; whoever waits for a result gets none.
    pub(super) fn stop(&self) {
        self.0.stop();
    }
}

impl<T> Shared<T> {
    /// What a worker does until nothing is left.
    fn run(&self, work: &impl Fn(usize) -> T) {
        while let Some(job) = self.begin() {
            let result = catch_unwind(AssertUnwindSafe(|| work(job)));
            self.lock().finished.insert(job, result);
            self.arrived.notify_all();
        }
    }

    /// Waits until the next job fits into the window.
    fn begin(&self) -> Option<usize> {
        let full = |state: &mut State<T>| {
            !state.stopped
                && state.next_to_begin < self.jobs
                && state.next_to_begin >= state.next_to_take + self.window
        };
        let mut state =
            self.taken.wait_while(self.lock(), full).unwrap_or_else(PoisonError::into_inner);
        let job = state.next_to_begin;
        if state.stopped || job == self.jobs {
            return None;
        }
        state.next_to_begin += 1;
        Some(job)
    }

    /// Waits for the next result in order.
    fn take(&self) -> Option<thread::Result<T>> {
        let mut state = self.lock();
        let job = state.next_to_take;
        if job == self.jobs {
            return None;
        }
        let missing = |state: &mut State<T>| !state.stopped && !state.finished.contains_key(&job);
        state = self.arrived.wait_while(state, missing).unwrap_or_else(PoisonError::into_inner);
        if state.stopped {
            return None;
        }
        state.next_to_take += 1;
        self.taken.notify_all();
        state.finished.remove(&job)
    }

    fn stop(&self) {
        self.lock().stopped = true;
        self.arrived.notify_all();
        self.taken.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        // No code that can panic runs under the lock, so its contents are whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Iterator for Ordered<T> {
    type Item = thread::Result<T>;

    fn next(&mut self) -> Option<Self::Item> {
        self.shared.take()
    }
}

impl<T> Drop for Ordered<T> {
    fn drop(&mut self) {
        // Nobody waits for the workers: a hostile file may take one of them a minute.
        self.shared.stop();
    }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::atomic::{AtomicUsize, Ordering::SeqCst},
        time::Duration,
    };

    use super::*;

    #[test]
    fn results_come_in_order_whoever_finishes_first() {
        for workers in [1, 2, 7] {
            let early_ones_are_slow = |job: usize| {
                thread::sleep(Duration::from_millis(5 * (job as u64 % 3)));
                job
            };
            let results: Vec<usize> =
                Ordered::new(20, workers, 5, early_ones_are_slow).map(Result::unwrap).collect();
            assert_eq!(results, (0..20).collect::<Vec<_>>());
        }
    }

    #[test]
    fn no_more_than_the_window_is_begun_ahead() {
        let begun = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&begun);
        let mut results = Ordered::new(100, 4, 3, move |_| counter.fetch_add(1, SeqCst));
        for taken in 1..20 {
            results.next().unwrap().unwrap();
            thread::sleep(Duration::from_millis(1));
            assert!(begun.load(SeqCst) <= taken + 3);
        }
    }

    #[test]
    fn a_panic_is_handed_over_and_the_rest_goes_on() {
        let results = Ordered::new(3, 2, 2, |job| assert_ne!(job, 1, "job one is bad"));
        let outcomes: Vec<bool> = results.map(|result| result.is_ok()).collect();
        assert_eq!(outcomes, [true, false, true]);
    }

    #[test]
    fn dropping_early_begins_nothing_more() {
        let begun = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&begun);
        let mut results = Ordered::new(1000, 2, 4, move |_| counter.fetch_add(1, SeqCst));
        results.next();
        drop(results);
        assert!(begun.load(SeqCst) <= 5);
    }

    #[test]
    fn waiting_ends_with_a_result_or_with_patience_and_dropping_waits_for_nobody() {
        let (release, gate) = std::sync::mpsc::channel::<()>();
        let gate = Mutex::new(gate);
        let mut results = Ordered::new(2, 1, 1, move |_| gate.lock().unwrap().recv().is_ok());
        assert!(!results.wait(Duration::from_millis(10)));
        release.send(()).unwrap();
        assert!(results.wait(Duration::from_secs(60)) && results.next().is_some());
        // The worker is stuck in its second piece, and this returns all the same.
        drop(results);
    }

    #[test]
    fn stopping_frees_whoever_waits() {
        let (release, gate) = std::sync::mpsc::channel::<()>();
        let gate = Mutex::new(gate);
        let mut results = Ordered::new(1, 1, 1, move |_| gate.lock().unwrap().recv().is_ok());
        let stopper = results.stopper();
        let waiter = thread::spawn(move || (results.next().is_none(), results));
        thread::sleep(Duration::from_millis(10));
        stopper.stop();
        release.send(()).unwrap();
        assert!(waiter.join().unwrap().0);
    }
}
