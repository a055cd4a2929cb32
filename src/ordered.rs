//! Work done by several threads, handed over in order.

use std::{
    collections::{BTreeMap, VecDeque},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

/// Jobs under way in worker threads; an iterator over what came of them, in the order given.
///
/// At most `window` results are begun and not yet taken, which bounds the memory. Results come
/// in order, whichever thread finishes first. A panic in the work is handed over in place of its
/// result. Dropping the queue stops the workers as soon as they finish the piece at hand.
#[derive(Debug)]
pub(crate) struct Ordered<J, T> {
    shared: Arc<Shared<J, T>>,
}

/// Ends an [`Ordered`] early, from any thread.
#[derive(Debug)]
pub(crate) struct Stopper<J, T>(Arc<Shared<J, T>>);

#[derive(Debug)]
struct Shared<J, T> {
    state: Mutex<State<J, T>>,
    /// Told when a result arrives, or when everything ends.
    arrived: Condvar,
    /// Told when there may be something to begin, or when everything ends.
    room: Condvar,
    window: usize,
}

/// Jobs are numbered as they are given: those below `taken` are done with, those from `begun` on
/// are waiting.
#[derive(Debug)]
struct State<J, T> {
    waiting: VecDeque<J>,
    begun: usize,
    taken: usize,
    finished: BTreeMap<usize, thread::Result<T>>,
    stopped: bool,
}

impl<J: Send + 'static, T: Send + 'static> Ordered<J, T> {
    /// Does all of the jobs ahead, in threads that nobody waits for.
    pub(crate) fn ahead(
        jobs: impl IntoIterator<Item = J>,
        workers: usize,
        window: usize,
        work: impl Fn(J) -> T + Send + Sync + 'static,
    ) -> Self {
        let waiting: VecDeque<J> = jobs.into_iter().collect();
        let workers = workers.clamp(1, waiting.len().max(1));
        let queue = Self::of(waiting, window);
        let work = Arc::new(work);
        for _ in 0..workers {
            let (shared, work) = (Arc::clone(&queue.shared), Arc::clone(&work));
            thread::spawn(move || shared.run(&*work));
        }
        queue
    }
}

impl<J: Send, T: Send> Ordered<J, T> {
    /// Runs `feed`, which gives the jobs and takes the results, beside threads that end with it.
    ///
    /// Who feeds keeps the window by taking all that is [ready](Self::ready) after each
    /// [push](Self::push).
    pub(crate) fn fed<R>(
        workers: usize,
        window: usize,
        work: &(impl Fn(J) -> T + Sync),
        feed: impl FnOnce(&mut Self) -> R,
    ) -> R {
        // Moved into the scope, so that the workers are told when the feeding ends, however it does.
        let mut queue = Self::of(VecDeque::new(), window);
        thread::scope(move |scope| {
            for _ in 0..workers.max(1) {
                let shared = Arc::clone(&queue.shared);
                scope.spawn(move || shared.run(work));
            }
            feed(&mut queue)
        })
    }
}

impl<J, T> Ordered<J, T> {
    fn of(waiting: VecDeque<J>, window: usize) -> Self {
        assert!(window > 0, "no work could ever begin");
        let finished = BTreeMap::new();
        let state = State { waiting, begun: 0, taken: 0, finished, stopped: false };
        let state = Mutex::new(state);
        let (arrived, room) = (Condvar::new(), Condvar::new());
        Self { shared: Arc::new(Shared { state, arrived, room, window }) }
    }

    /// Gives a job to the next free worker.
    pub(crate) fn push(&self, job: J) {
        self.shared.lock().waiting.push_back(job);
        self.shared.room.notify_one();
    }

    /// The next result if it is there, or has to be waited for since the window is full.
    pub(crate) fn ready(&mut self) -> Option<thread::Result<T>> {
        let is_full = {
            let state = self.shared.lock();
            state.given() - state.taken >= self.shared.window
        };
        if is_full || self.wait(Duration::ZERO) { self.next() } else { None }
    }

    /// Waits for the next result, but no longer than this; whether it would come at once now.
    pub(crate) fn wait(&self, patience: Duration) -> bool {
        let outcome =
            self.shared.arrived.wait_timeout_while(self.shared.lock(), patience, State::is_missing);
        !outcome.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }

    /// A handle that can end this iterator while another thread waits for it.
    pub(crate) fn stopper(&self) -> Stopper<J, T> {
        Stopper(Arc::clone(&self.shared))
    }
}

impl<J, T> Stopper<J, T> {
    /// Lets no further work begin; whoever waits for a result gets none.
    pub(crate) fn stop(&self) {
        self.0.stop();
    }
}

impl<J, T> State<J, T> {
    fn given(&self) -> usize {
        self.begun + self.waiting.len()
    }

    /// Whether the next result is yet to come.
    fn is_missing(&mut self) -> bool {
        !self.stopped && self.taken < self.given() && !self.finished.contains_key(&self.taken)
    }
}

impl<J, T> Shared<J, T> {
    /// What a worker does until it is stopped.
    fn run(&self, work: &impl Fn(J) -> T) {
        while let Some((number, job)) = self.begin() {
            let result = catch_unwind(AssertUnwindSafe(|| work(job)));
            self.lock().finished.insert(number, result);
            self.arrived.notify_all();
        }
    }

    /// Waits until there is a job that fits into the window.
    fn begin(&self) -> Option<(usize, J)> {
        let idle = |state: &mut State<J, T>| {
            let is_full = state.begun >= state.taken + self.window;
            !state.stopped && (is_full || state.waiting.is_empty())
        };
        let mut state =
            self.room.wait_while(self.lock(), idle).unwrap_or_else(PoisonError::into_inner);
        if state.stopped {
            return None;
        }
        let job = state.waiting.pop_front()?;
        state.begun += 1;
        Some((state.begun - 1, job))
    }

    fn stop(&self) {
        self.lock().stopped = true;
        self.arrived.notify_all();
        self.room.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State<J, T>> {
        // No code that can panic runs under the lock, so its contents are whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<J, T> Iterator for Ordered<J, T> {
    type Item = thread::Result<T>;

    /// Waits for the next result in order; none if everything given has been taken.
    fn next(&mut self) -> Option<Self::Item> {
        let Shared { arrived, room, .. } = &*self.shared;
        let mut state = arrived
            .wait_while(self.shared.lock(), State::is_missing)
            .unwrap_or_else(PoisonError::into_inner);
        if state.stopped {
            return None;
        }
        let next = state.taken;
        let result = state.finished.remove(&next)?;
        state.taken += 1;
        room.notify_all();
        Some(result)
    }
}

impl<J, T> Drop for Ordered<J, T> {
    fn drop(&mut self) {
        // Not waited for: a hostile file may take one of the workers a minute.
        self.shared.stop();
    }
}

#[cfg(test)]
mod tests {
    use std::{
        panic::resume_unwind,
        sync::{
            atomic::{AtomicUsize, Ordering::SeqCst},
            mpsc::channel,
        },
    };

    use super::*;

    #[test]
    fn results_come_in_order_whoever_finishes_first() {
        for workers in [1, 2, 7] {
            let early_ones_are_slow = |job: usize| {
                thread::sleep(Duration::from_millis(5 * (job as u64 % 3)));
                job
            };
            let results: Vec<usize> = Ordered::ahead(0..20, workers, 5, early_ones_are_slow)
                .map(Result::unwrap)
                .collect();
            assert_eq!(results, (0..20).collect::<Vec<_>>());
        }
    }

    #[test]
    fn results_of_what_is_fed_come_in_order_whoever_finishes_first() {
        for workers in [1, 2, 5] {
            let early_ones_are_slow = |job: u64| {
                thread::sleep(Duration::from_millis(3 * (2 - job % 3)));
                job
            };
            let mut outcomes = Vec::new();
            Ordered::fed(workers, 2 * workers, &early_ones_are_slow, |queue| {
                for job in 0..20 {
                    queue.push(job);
                    while let Some(outcome) = queue.ready() {
                        outcomes.push(outcome.unwrap());
                    }
                }
                outcomes.extend(queue.map(Result::unwrap));
            });
            assert_eq!(outcomes, (0..20).collect::<Vec<_>>());
        }
    }

    #[test]
    fn no_more_than_the_window_is_begun_ahead() {
        let begun = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&begun);
        let mut results = Ordered::ahead(0..100, 4, 3, move |_| counter.fetch_add(1, SeqCst));
        for taken in 1..20 {
            results.next().unwrap().unwrap();
            thread::sleep(Duration::from_millis(1));
            assert!(begun.load(SeqCst) <= taken + 3);
        }
    }

    #[test]
    fn no_more_than_the_window_is_under_way_where_jobs_are_fed() {
        let done = AtomicUsize::new(0);
        let work = |()| {
            thread::sleep(Duration::from_millis(1));
            done.fetch_add(1, SeqCst);
        };
        Ordered::fed(2, 4, &work, |queue| {
            for given in 1..40 {
                queue.push(());
                while queue.ready().is_some() {}
                assert!(given - done.load(SeqCst) <= 4);
            }
        });
    }

    #[test]
    fn a_panic_is_handed_over_and_the_rest_goes_on() {
        let results = Ordered::ahead(0..3, 2, 2, |job| assert_ne!(job, 1, "job one is bad"));
        let outcomes: Vec<bool> = results.map(|result| result.is_ok()).collect();
        assert_eq!(outcomes, [true, false, true]);
    }

    #[test]
    #[should_panic(expected = "job two is bad")]
    fn a_panic_that_whoever_feeds_passes_on_ends_the_workers() {
        let work = |job: u8| assert_ne!(job, 2, "job two is bad");
        Ordered::fed(2, 8, &work, |queue| {
            (0..5).for_each(|job| queue.push(job));
            queue.for_each(|outcome| outcome.unwrap_or_else(|panic| resume_unwind(panic)));
        });
    }

    #[test]
    fn dropping_early_begins_nothing_more() {
        let begun = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&begun);
        let mut results = Ordered::ahead(0..1000, 2, 4, move |_| counter.fetch_add(1, SeqCst));
        results.next();
        drop(results);
        assert!(begun.load(SeqCst) <= 5);
    }

    #[test]
    fn feeding_that_stops_early_leaves_no_thread_waiting() {
        let stopped: Result<(), &str> = Ordered::fed(3, 6, &|job: u8| job, |queue| {
            queue.push(1);
            Err("enough")
        });
        assert_eq!(stopped, Err("enough"));
    }

    #[test]
    fn waiting_ends_with_a_result_or_with_patience_and_dropping_waits_for_nobody() {
        let (release, gate) = channel::<()>();
        let gate = Mutex::new(gate);
        let work = move |_| gate.lock().unwrap().recv().is_ok();
        let mut results = Ordered::ahead(0..2, 1, 1, work);
        assert!(!results.wait(Duration::from_millis(10)));
        release.send(()).unwrap();
        assert!(results.wait(Duration::from_secs(60)) && results.next().is_some());
        // The worker is stuck in its second piece, and this returns all the same.
        drop(results);
    }

    #[test]
    fn stopping_frees_whoever_waits() {
        let (release, gate) = channel::<()>();
        let gate = Mutex::new(gate);
        let work = move |_| gate.lock().unwrap().recv().is_ok();
        let mut results = Ordered::ahead(0..1, 1, 1, work);
        let stopper = results.stopper();
        let waiter = thread::spawn(move || (results.next().is_none(), results));
        thread::sleep(Duration::from_millis(10));
        stopper.stop();
        release.send(()).unwrap();
        assert!(waiter.join().unwrap().0);
    }
}
