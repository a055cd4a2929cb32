//! Training on a dataset, and evaluation of a run, each as one call.
//!
//! The command and the bindings for other languages fill in a request, make the call, and show the
//! events that an observer is told; so all of them write the same bytes.

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
