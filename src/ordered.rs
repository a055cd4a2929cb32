//! Work done by several threads, whose results are handed over in order.
//!
//! `rayon` gives ordered results only once all of them are computed, so that nothing bounds the
//! memory of those that wait.

use std::{
    collections::VecDeque,
    iter,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering::Relaxed},
        mpsc::{Receiver, Sender, channel},
    },
    thread,
    time::Duration,
};

/// A queue of jobs for worker threads, and an iterator over their results.
///
/// Results come in the order of the jobs, whichever thread finishes first. At most `window` jobs
/// are started and not yet taken, which bounds the memory. A panic in a job is resumed where its
/// result is taken. Dropping the queue stops each worker once it has finished its present job.
#[derive(Debug)]
pub(crate) struct OrderedJobs<J, T> {
    /// Jobs that do not fit into the window yet.
    waiting: VecDeque<J>,
    window: usize,
    /// To the workers.
    jobs: Sender<Task<J, T>>,
    /// From the workers: the results of the jobs that were started, in their order.
    started: VecDeque<Receiver<thread::Result<T>>>,
    /// The next result, if it has arrived and was not taken yet.
    next: Option<thread::Result<T>>,
    stopped: Arc<AtomicBool>,
}

/// A job, and where its result is to be sent.
type Task<J, T> = (J, Sender<thread::Result<T>>);

/// The jobs of an [`OrderedJobs`], as its workers see them.
#[derive(Debug)]
struct Worker<J, T> {
    jobs: Arc<Mutex<Receiver<Task<J, T>>>>,
    stopped: Arc<AtomicBool>,
}

impl<J: Send + 'static, T: Send + 'static> OrderedJobs<J, T> {
    /// Does the jobs in detached threads, ahead of whoever takes the results.
    pub(crate) fn detached(
        jobs: Vec<J>,
        workers: usize,
        window: usize,
        work: impl Fn(J) -> T + Send + Sync + 'static,
    ) -> Self {
        let work = Arc::new(work);
        let (mut queue, threads) = Self::new(workers.clamp(1, jobs.len().max(1)), window);
        for worker in threads {
            let work = Arc::clone(&work);
            thread::spawn(move || worker.run(&*work));
        }
        jobs.into_iter().for_each(|job| queue.push(job));
        queue
    }
}

impl<J: Send, T: Send> OrderedJobs<J, T> {
    /// Runs `feed`, which pushes jobs and takes results, beside worker threads that end with it.
    ///
    /// `feed` must take all that is [ready](Self::ready) after each [push](Self::push), or jobs
    /// pile up beyond the window.
    pub(crate) fn scoped<R>(
        workers: usize,
        window: usize,
        work: &(impl Fn(J) -> T + Sync),
        feed: impl FnOnce(&mut Self) -> R,
    ) -> R {
        let (mut queue, threads) = Self::new(workers.max(1), window);
        // Moved into the scope, so that the workers stop when `feed` ends, also by a panic.
        thread::scope(move |scope| {
            for worker in threads {
                scope.spawn(move || worker.run(work));
            }
            feed(&mut queue)
        })
    }
}

impl<J, T> OrderedJobs<J, T> {
    fn new(workers: usize, window: usize) -> (Self, Vec<Worker<J, T>>) {
        assert!(window > 0, "no work could ever begin");
        let (jobs, receiver) = channel();
        let (receiver, stopped) = (Arc::new(Mutex::new(receiver)), Arc::default());
        let worker = || Worker { jobs: Arc::clone(&receiver), stopped: Arc::clone(&stopped) };
        let threads = iter::repeat_with(worker).take(workers).collect();
        let (waiting, started) = (VecDeque::new(), VecDeque::new());
        (Self { waiting, window, jobs, started, next: None, stopped }, threads)
    }

    /// Adds a job.
    pub(crate) fn push(&mut self, job: J) {
        self.waiting.push_back(job);
        self.start();
    }

    /// The next result if it has arrived, or waits for it if the window is full.
    pub(crate) fn ready(&mut self) -> Option<T> {
        let is_full = self.started.len() >= self.window;
        if is_full || self.wait(Duration::ZERO) { self.next() } else { None }
    }

    /// Waits for the next result, but no longer than this; whether it has arrived, or no job is
    /// left.
    pub(crate) fn wait(&mut self, timeout: Duration) -> bool {
        if let (None, Some(result)) = (&self.next, self.started.front()) {
            self.next = result.recv_timeout(timeout).ok();
        }
        self.next.is_some() || self.started.is_empty()
    }

    /// Starts the jobs that fit into the window.
    fn start(&mut self) {
        while self.started.len() < self.window
            && let Some(job) = self.waiting.pop_front()
        {
            let (sender, result) = channel();
            self.jobs.send((job, sender)).expect("workers end after the queue");
            self.started.push_back(result);
        }
    }
}

impl<J, T> Worker<J, T> {
    /// Works until the queue is gone.
    fn run(&self, work: &impl Fn(J) -> T) {
        let take = || self.jobs.lock().unwrap_or_else(PoisonError::into_inner).recv();
        while let Ok((job, result)) = take() {
            if self.stopped.load(Relaxed) {
                return;
            }
            // The receiver is gone if the queue was dropped.
            let _ = result.send(catch_unwind(AssertUnwindSafe(|| work(job))));
        }
    }
}

impl<J, T> Iterator for OrderedJobs<J, T> {
    type Item = T;

    /// Waits for the next result in order; none if all results have been taken.
    fn next(&mut self) -> Option<T> {
        let result = self.started.pop_front()?;
        let answer = || result.recv().expect("a worker answers for every job");
        let outcome = self.next.take().unwrap_or_else(answer);
        self.start();
        Some(outcome.unwrap_or_else(|panic| resume_unwind(panic)))
    }
}

impl<J, T> Drop for OrderedJobs<J, T> {
    fn drop(&mut self) {
        // Workers are not joined: a hostile file may keep one of them busy for a minute.
        self.stopped.store(true, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

    use super::*;

    #[test]
    fn results_come_in_order_whoever_finishes_first() {
        for workers in [1, 2, 7] {
            let early_ones_are_slow = |job: usize| {
                thread::sleep(Duration::from_millis(5 * (job as u64 % 3)));
                job
            };
            let jobs: Vec<usize> = (0..20).collect();
            let results = OrderedJobs::detached(jobs.clone(), workers, 5, early_ones_are_slow);
            assert_eq!(results.collect::<Vec<_>>(), jobs);
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
            OrderedJobs::scoped(workers, 2 * workers, &early_ones_are_slow, |queue| {
                for job in 0..20 {
                    queue.push(job);
                    while let Some(outcome) = queue.ready() {
                        outcomes.push(outcome);
                    }
                }
                outcomes.extend(queue);
            });
            assert_eq!(outcomes, (0..20).collect::<Vec<_>>());
        }
    }

    #[test]
    fn no_more_than_the_window_is_begun_ahead() {
        let begun = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&begun);
        let mut results =
            OrderedJobs::detached(vec![(); 100], 4, 3, move |()| counter.fetch_add(1, SeqCst));
        for taken in 1..20 {
            results.next().unwrap();
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
        OrderedJobs::scoped(2, 4, &work, |queue| {
            for given in 1..40 {
                queue.push(());
                while queue.ready().is_some() {}
                assert!(given - done.load(SeqCst) <= 4);
            }
        });
    }

    #[test]
    fn a_panic_is_handed_over_and_the_rest_goes_on() {
        let mut results =
            OrderedJobs::detached(vec![0, 1, 2], 2, 2, |job| assert_ne!(job, 1, "job one is bad"));
        let mut next = || catch_unwind(AssertUnwindSafe(|| results.next().unwrap()));
        let outcomes: Vec<bool> = (0..3).map(|_| next().is_ok()).collect();
        assert_eq!(outcomes, [true, false, true]);
        assert!(results.next().is_none());
    }

    #[test]
    #[should_panic(expected = "job two is bad")]
    fn a_panic_that_whoever_feeds_passes_on_ends_the_workers() {
        let work = |job: u8| assert_ne!(job, 2, "job two is bad");
        OrderedJobs::scoped(2, 8, &work, |queue| {
            (0..5).for_each(|job| queue.push(job));
            queue.for_each(drop);
        });
    }

    #[test]
    fn dropping_early_begins_nothing_more() {
        let begun = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&begun);
        let mut results =
            OrderedJobs::detached(vec![(); 1000], 2, 4, move |()| counter.fetch_add(1, SeqCst));
        results.next();
        drop(results);
        assert!(begun.load(SeqCst) <= 5);
    }

    #[test]
    fn feeding_that_stops_early_leaves_no_thread_waiting() {
        let stopped: Result<(), &str> = OrderedJobs::scoped(3, 6, &|job: u8| job, |queue| {
            queue.push(1);
            Err("enough")
        });
        assert_eq!(stopped, Err("enough"));
    }

    #[test]
    fn waiting_ends_with_a_result_or_with_timeout_and_dropping_waits_for_nobody() {
        let (release, gate) = channel::<()>();
        let gate = Mutex::new(gate);
        let work = move |()| gate.lock().unwrap().recv().is_ok();
        let mut results = OrderedJobs::detached(vec![(); 2], 1, 1, work);
        assert!(!results.wait(Duration::from_millis(10)));
        release.send(()).unwrap();
        assert!(results.wait(Duration::from_secs(60)) && results.next().is_some());
        // The worker is stuck in its second piece, and this returns all the same.
        drop(results);
    }
}
