//! The `pinpoint` command.

mod bench;
mod choice;
mod compare;
mod comparison;
mod completions;
mod crf;
mod data;
mod data_args;
mod demo;
mod doctor;
mod evaluate;
mod event_file;
mod expected_time;
mod export;
mod interrupt;
mod machine;
mod overrides;
mod predict;
mod processes;
mod reproduce;
mod shipped;
mod study;
mod sweep;
mod train;
mod ui;
mod view;
mod watch;
mod weight_files;
mod weights;

use std::process::ExitCode;

use clap::{CommandFactory as _, Parser, Subcommand};
use huge_pages::HugePages;

use crate::ui::Ui;

/// Maps and weights are blocks of megabytes, which the system hands out page by page.
#[global_allocator]
static MEMORY: HugePages = HugePages;

/// Localize objects pixel by pixel, learning from image labels alone
#[derive(Debug, Parser)]
#[command(version, propagate_version = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Demo(demo::Demo),
    Data(data::Data),
    Train(train::Train),
    Evaluate(evaluate::Evaluate),
    Predict(predict::Predict),
    Export(export::Export),
    Compare(compare::Compare),
    Sweep(sweep::Sweep),
    Reproduce(reproduce::Reproduce),
    Crf(crf::Crf),
    View(view::View),
    Weights(weights::Weights),
    Completions(completions::Completions),
    Man(completions::Man),
    Bench(bench::Bench),
    Doctor(doctor::Doctor),
}

/// Exits with 0 on success, 1 if some inputs failed, 2 if nothing could be done, and 130 if a
/// signal stopped it, see `interrupt.rs`.
fn main() -> ExitCode {
    let Cli { command } = Cli::parse();
    let ui = &mut Ui::new();
    let outcome = match command {
        Command::Demo(demo) => demo.run(ui),
        Command::Data(data) => data.run(ui),
        Command::Train(train) => train.run(ui),
        Command::Evaluate(evaluate) => evaluate.run(ui),
        Command::Predict(predict) => predict.run(ui),
        Command::Export(export) => export.run(ui),
        Command::Compare(compare) => compare.run(ui),
        Command::Sweep(sweep) => sweep.run(ui),
        Command::Reproduce(reproduce) => reproduce.run(ui),
        Command::Crf(crf) => crf.run(ui),
        Command::View(view) => view.run(ui),
        Command::Weights(weights) => weights.run(ui),
        Command::Completions(completions) => completions.run(&mut Cli::command(), ui),
        Command::Man(man) => man.run(Cli::command(), ui),
        Command::Bench(bench) => bench.run(ui),
        Command::Doctor(doctor) => doctor.run(ui),
    };
    outcome.unwrap_or_else(|error| {
        ui.error(&error);
        ExitCode::from(2)
    })
}
