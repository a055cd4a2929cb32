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

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use pinpoint::model::known::KnownFile;

    use super::*;

    /// The shell blocks of a page, line by line, with lines that go on put together.
    fn shell_lines(page: &str) -> Vec<String> {
        let mut lines = Vec::new();
        let blocks = page.split("```").skip(1).step_by(2);
        for block in blocks.filter_map(|block| block.strip_prefix("sh\n")) {
            let joined = block.replace("\\\n", " ");
            lines.extend(joined.lines().map(str::to_owned));
        }
        lines
    }

    /// The words of the command in a line, if it has one that stands for itself.
    fn command(line: &str) -> Option<Vec<String>> {
        let line = line.split(" #").next()?.split(" | ").next()?.split(" > ").next()?;
        let line = line.replace("cargo run --release -- ", "pinpoint ");
        // What is left out, or filled in by a shell, cannot be parsed.
        let abridged = ["…", "$(", "\"$"].iter().any(|mark| line.contains(mark));
        let words: Vec<String> =
            line.split_whitespace().map(|word| word.replace(['"', '\''], "")).collect();
        let start = words.iter().position(|word| word == "pinpoint")?;
        (!abridged).then(|| words[start..].to_vec())
    }

    #[test]
    fn every_command_in_the_docs_is_one() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut pages = vec![root.join("README.md"), root.join("configs/README.md")];
        pages.extend(fs::read_dir(root.join("docs")).unwrap().map(|entry| entry.unwrap().path()));
        let pages = pages.iter().filter(|path| path.extension().is_some_and(|end| end == "md"));
        let mut seen = 0;
        for page in pages {
            for line in shell_lines(&fs::read_to_string(page).unwrap()) {
                let Some(words) = command(&line) else { continue };
                seen += 1;
                // Names of weights are looked up in a cache that the test does not have.
                let is_cached = |word: &str| KnownFile::named(word).is_some();
                let gets = words.get(1).is_some_and(|verb| verb == "weights");
                let words = words.into_iter().map(|word| match is_cached(&word) && !gets {
                    true => "weights.pth".to_owned(),
                    false => word,
                });
                if let Err(error) = Cli::try_parse_from(words)
                    && error.exit_code() != 0
                {
                    panic!("{}: {line}\n{error}", page.display());
                }
            }
        }
        assert!(seen > 20, "{seen} commands were found");
    }
}
