//! Every kernel against its naive definition, on every instruction set of this machine.
#![allow(clippy::unwrap_used, reason = "a test stops where something is missing")]

mod batch_norm;
mod conv;
mod pool;
mod reference;
mod threads;
