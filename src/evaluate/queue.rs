//! Images scored by several threads while the next one is answered, taken in order.

use std::{
    collections::VecDeque,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    sync::{
        Mutex, PoisonError,
        mpsc::{self, Receiver, Sender},
    },
    thread,
};

/// The giving and the taking end of some worker threads.
pub(super) struct Scoring<J, T> {
    jobs: Sender<(usize, J)>,
    finished: Receiver<(usize, thread::Result<T>)>,
    /// Everything given and not yet taken, in order; `None` while a worker has it.
    pending: VecDeque<Option<T>>,
    /// Number of outcomes taken.
    taken: usize,
    window: usize,
}

impl<J: Send, T: Send> Scoring<J, T> {
    /// Runs `feed` beside `workers` threads that do `work`.
    ///
    /// At most twice as many jobs as workers are under way, which bounds the memory.
    pub(super) fn run<R>(
        workers: usize,
        work: &(impl Fn(J) -> T + Sync),
        feed: impl FnOnce(&mut Self) -> R,
    ) -> R {
        let workers = workers.max(1);
        let (jobs, queue) = mpsc::channel::<(usize, J)>();
        let (done, finished) = mpsc::channel();
        let queue = Mutex::new(queue);
        thread::scope(|scope| {
            for _ in 0..workers {
                let (done, queue) = (done.clone(), &queue);
                scope.spawn(move || {
                    while let Some((index, job)) = next(queue) {
                        let outcome = catch_unwind(AssertUnwindSafe(|| work(job)));
                        // Nobody listens any more once the feeding has failed.
                        let _ = done.send((index, outcome));
                    }
                });
            }
            // Moved in, so that the workers are told when the feeding ends, however it does.
            let mut scoring =
                Self { jobs, finished, pending: VecDeque::new(), taken: 0, window: 2 * workers };
            feed(&mut scoring)
        })
    }

    /// Gives a job to the next free worker.
    pub(super) fn push(&mut self, job: J) {
        let index = self.taken + self.pending.len();
        self.pending.push_back(None);
        self.jobs.send((index, job)).expect("the workers listen until this end is gone");
    }

    /// Puts in an outcome that needs no work.
    pub(super) fn push_outcome(&mut self, outcome: T) {
        self.pending.push_back(Some(outcome));
    }

    /// Outcomes that are ready to be taken; waits while too many jobs are under way.
    pub(super) fn ready(&mut self) -> Vec<T> {
        while let Ok((index, outcome)) = self.finished.try_recv() {
            self.receive(index, outcome);
        }
        while self.pending.len() >= self.window && self.pending[0].is_none() {
            self.wait();
        }
        let mut ready = Vec::new();
        while let Some(Some(_)) = self.pending.front() {
            ready.extend(self.pending.pop_front().flatten());
        }
        self.taken += ready.len();
        ready
    }

    /// Every outcome that has not been taken yet.
    pub(super) fn rest(&mut self) -> impl Iterator<Item = T> {
        while self.pending.iter().any(Option::is_none) {
            self.wait();
        }
        self.taken += self.pending.len();
        std::mem::take(&mut self.pending).into_iter().flatten()
    }

    fn wait(&mut self) {
        let (index, outcome) = self.finished.recv().expect("every job is finished by a worker");
        self.receive(index, outcome);
    }

    fn receive(&mut self, index: usize, outcome: thread::Result<T>) {
        let outcome = outcome.unwrap_or_else(|panic| resume_unwind(panic));
        self.pending[index - self.taken] = Some(outcome);
    }
}

fn next<J>(queue: &Mutex<Receiver<(usize, J)>>) -> Option<(usize, J)> {
    // Waiting under the lock is fine: the others would only wait for the same thing.
    queue.lock().unwrap_or_else(PoisonError::into_inner).recv().ok()
}

#[cfg(test)]
mod tests {
    use std::{
        sync::atomic::{AtomicUsize, Ordering::SeqCst},
        time::Duration,
    };

    use super::*;

    #[test]
    fn outcomes_come_in_order_whoever_finishes_first() {
        for workers in [1, 2, 5] {
            let early_ones_are_slow = |job: u64| {
                thread::sleep(Duration::from_millis(3 * (2 - job % 3)));
                job
            };
            let mut outcomes = Vec::new();
            Scoring::run(workers, &early_ones_are_slow, |scoring| {
                for job in 0..20 {
                    if job == 7 {
                        scoring.push_outcome(7)
                    } else {
                        scoring.push(job)
                    }
                    outcomes.extend(scoring.ready());
                }
                outcomes.extend(scoring.rest());
            });
            assert_eq!(outcomes, (0..20).collect::<Vec<_>>());
        }
    }

    #[test]
    fn no_more_than_twice_the_workers_are_under_way() {
        let done = AtomicUsize::new(0);
        let work = |()| {
            thread::sleep(Duration::from_millis(1));
            done.fetch_add(1, SeqCst);
        };
        Scoring::run(2, &work, |scoring| {
            for given in 1..40 {
                scoring.push(());
                scoring.ready();
                assert!(given - done.load(SeqCst) <= 4);
            }
        });
    }

    #[test]
    fn feeding_that_stops_early_leaves_no_thread_waiting() {
        let stopped: Result<(), &str> = Scoring::run(3, &|job: u8| job, |scoring| {
            scoring.push(1);
            Err("enough")
        });
        assert_eq!(stopped, Err("enough"));
    }

    #[test]
    #[should_panic(expected = "job two is bad")]
    fn a_panic_of_a_worker_is_ours() {
        let work = |job: u8| assert_ne!(job, 2, "job two is bad");
        Scoring::run(2, &work, |scoring| {
            (0..5).for_each(|job| scoring.push(job));
            scoring.rest().for_each(drop);
        });
    }
}
