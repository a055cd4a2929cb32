//! Work done by several threads, handed over in order.
//!
//! Not `rayon`, whose results come in order only when all of them are there, so that nothing bounds
//! how many wait.

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

/// Jobs under way in worker threads; an iterator over what came of them, in the order given.
///
/// At most `window` results are begun and not yet taken, which bounds the memory. Results come
/// in order, whichever thread finishes first. A panic in the work goes on where its result is
/// taken. Dropping the queue stops the workers as soon as they finish the job at hand.
#[derive(Debug)]
pub(crate) struct Ordered<J, T> {
    waiting: VecDeque<J>,
    window: usize,
    /// To the workers.
    jobs: Sender<Task<J, T>>,
    /// From the workers: the results of the jobs begun, in their order.
    begun: VecDeque<Receiver<thread::Result<T>>>,
    /// The next result, if it was waited for and not taken yet.
    next: Option<thread::Result<T>>,
    stopped: Arc<AtomicBool>,
}

/// A job, and where its result is to be sent.
type Task<J, T> = (J, Sender<thread::Result<T>>);

/// The jobs of an [`Ordered`], as its workers see them.
#[derive(Debug)]
struct Worker<J, T> {
    jobs: Arc<Mutex<Receiver<Task<J, T>>>>,
    stopped: Arc<AtomicBool>,
}

impl<J: Send + 'static, T: Send + 'static> Ordered<J, T> {
    /// Does all of the jobs ahead, in threads that nobody waits for.
    pub(crate) fn ahead(
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
        let (mut queue, threads) = Self::new(workers.max(1), window);
        // Moved into the scope, so that the workers are told when the feeding ends, however it does.
        thread::scope(move |scope| {
            for worker in threads {
                scope.spawn(move || worker.run(work));
            }
            feed(&mut queue)
        })
    }
}

impl<J, T> Ordered<J, T> {
    fn new(workers: usize, window: usize) -> (Self, Vec<Worker<J, T>>) {
        assert!(window > 0, "no work could ever begin");
        let (jobs, receiver) = channel();
        let (receiver, stopped) = (Arc::new(Mutex::new(receiver)), Arc::default());
        let worker = || Worker { jobs: Arc::clone(&receiver), stopped: Arc::clone(&stopped) };
        let threads = iter::repeat_with(worker).take(workers).collect();
        let (waiting, begun) = (VecDeque::new(), VecDeque::new());
        (Self { waiting, window, jobs, begun, next: None, stopped }, threads)
    }

    /// Gives a job to the next free worker.
    pub(crate) fn push(&mut self, job: J) {
        self.waiting.push_back(job);
        self.begin();
    }

    /// The next result if it is there, or has to be waited for since the window is full.
    pub(crate) fn ready(&mut self) -> Option<T> {
        let is_full = self.begun.len() >= self.window;
        if is_full || self.wait(Duration::ZERO) { self.next() } else { None }
    }

    /// Waits for the next result, but no longer than this; whether it would come at once now.
    pub(crate) fn wait(&mut self, timeout: Duration) -> bool {
        if let (None, Some(result)) = (&self.next, self.begun.front()) {
            self.next = result.recv_timeout(timeout).ok();
        }
        self.next.is_some() || self.begun.is_empty()
    }

    /// Hands on the jobs that fit into the window.
    fn begin(&mut self) {
        while self.begun.len() < self.window
            && let Some(job) = self.waiting.pop_front()
        {
            let (sender, result) = channel();
            self.jobs.send((job, sender)).expect("workers end after the queue");
            self.begun.push_back(result);
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
            // If nobody waits for it any more, it is nobody's.
            let _ = result.send(catch_unwind(AssertUnwindSafe(|| work(job))));
        }
    }
}

impl<J, T> Iterator for Ordered<J, T> {
    type Item = T;

    /// Waits for the next result in order; none if everything given has been taken.
    fn next(&mut self) -> Option<T> {
        let result = self.begun.pop_front()?;
        let answer = || result.recv().expect("a worker answers for every job");
        let outcome = self.next.take().unwrap_or_else(answer);
        self.begin();
        Some(outcome.unwrap_or_else(|panic| resume_unwind(panic)))
    }
}

impl<J, T> Drop for Ordered<J, T> {
    fn drop(&mut self) {
        // Not waited for: a hostile file may take one of the workers a minute.
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
            let results = Ordered::ahead(jobs.clone(), workers, 5, early_ones_are_slow);
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
            Ordered::fed(workers, 2 * workers, &early_ones_are_slow, |queue| {
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
            Ordered::ahead(vec![(); 100], 4, 3, move |()| counter.fetch_add(1, SeqCst));
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
        let mut results =
            Ordered::ahead(vec![0, 1, 2], 2, 2, |job| assert_ne!(job, 1, "job one is bad"));
        let mut next = || catch_unwind(AssertUnwindSafe(|| results.next().unwrap()));
        let outcomes: Vec<bool> = (0..3).map(|_| next().is_ok()).collect();
        assert_eq!(outcomes, [true, false, true]);
        assert!(results.next().is_none());
    }

    #[test]
    #[should_panic(expected = "job two is bad")]
    fn a_panic_that_whoever_feeds_passes_on_ends_the_workers() {
        let work = |job: u8| assert_ne!(job, 2, "job two is bad");
        Ordered::fed(2, 8, &work, |queue| {
            (0..5).for_each(|job| queue.push(job));
            queue.for_each(drop);
        });
    }

    #[test]
    fn dropping_early_begins_nothing_more() {
        let begun = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&begun);
        let mut results =
            Ordered::ahead(vec![(); 1000], 2, 4, move |()| counter.fetch_add(1, SeqCst));
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
    fn waiting_ends_with_a_result_or_with_timeout_and_dropping_waits_for_nobody() {
        let (release, gate) = channel::<()>();
        let gate = Mutex::new(gate);
        let work = move |()| gate.lock().unwrap().recv().is_ok();
        let mut results = Ordered::ahead(vec![(); 2], 1, 1, work);
        assert!(!results.wait(Duration::from_millis(10)));
        release.send(()).unwrap();
        assert!(results.wait(Duration::from_secs(60)) && results.next().is_some());
        // The worker is stuck in its second piece, and this returns all the same.
        drop(results);
    }
}
