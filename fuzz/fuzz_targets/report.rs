#![no_main]

#[path = "../entry_points.rs"]
mod entry_points;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| entry_points::run("report", bytes));
