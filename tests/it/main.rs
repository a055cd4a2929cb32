//! The whole product from outside: one binary, one module per concern.
#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "what the tests share is test code too"
)]

mod baselines;
mod browser;
mod compare;
mod completions;
mod crf;
mod data_check;
mod data_split;
mod data_synth;
mod diagnosis;
mod docs_commands;
mod docs_messages;
mod drawn_run;
mod evaluate;
mod evaluate_maps;
mod evaluate_memory;
mod export;
mod faults;
mod features;
mod formats;
mod front_door;
mod fuzz_corpus;
mod hostile_images;
mod hostile_inputs;
mod loader;
mod masks;
mod memory_estimate;
mod method_parity;
mod metrics_parity;
mod mpi;
mod parity;
mod predict;
mod probe;
mod report_page;
mod reproduce;
mod run_integrity;
mod run_lock;
mod settings_page;
mod sweep;
mod tensorboard;
mod tidy;
mod train;
mod view;
mod weights;
