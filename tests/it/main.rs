//! The whole product from outside: one binary, one module per concern.

mod data_check;
mod data_split;
mod data_synth;
mod hostile_images;
mod loader;
mod metrics_parity;
mod parity;
mod tidy;
