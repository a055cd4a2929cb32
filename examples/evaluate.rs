//! Scores a run on the data it was trained on: `cargo run --release --example evaluate -- RUN`.
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::{env, ops::ControlFlow};

use pinpoint::{EvaluateRequest, evaluate};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let run = env::args().nth(1).ok_or("usage: evaluate RUN")?;
    let report = evaluate(&EvaluateRequest::run(run), |_| ControlFlow::Continue(()))?;
    let scores = &report.evaluation.scores;
    println!("{} images of the {} split", scores.images, report.split);
    println!("classification error {:?} %", scores.classification_error);
    println!("F1 of the foreground {:?} %", scores.mean.f1_foreground);
    Ok(())
}
