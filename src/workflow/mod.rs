//! Whole tasks in one call: train on a dataset, evaluate a run.
//!
//! The command and the bindings for other languages do nothing but fill in a request, call, and
//! show what an observer is told; the files that result are the same bytes.

mod evaluation;
mod memory;
mod training;

use std::thread;

pub use self::{
    evaluation::{EvaluateEvent, EvaluateRequest, SaveMaps, evaluate, name_of},
    memory::require_memory_to_predict,
    training::{FeatureWork, TrainRequest, Trained, open_dataset, train},
};

/// The number of threads asked for, or one per core.
fn workers(threads: Option<usize>) -> usize {
    threads.unwrap_or_else(|| thread::available_parallelism().map_or(1, usize::from)).max(1)
}
