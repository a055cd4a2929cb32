//! `pinpoint data`: look at, split and make datasets.

mod check;
mod split;
mod synth;

use std::process::ExitCode;

use crate::ui::Ui;

/// Check, split or draw a dataset
#[derive(Debug, clap::Args)]
pub(crate) struct Data {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    Check(check::Check),
    Split(split::Split),
    Synth(synth::Synth),
}

impl Data {
    pub(crate) fn run(self, ui: &mut Ui) -> anyhow::Result<ExitCode> {
        match self.verb {
            Verb::Check(check) => check.run(ui),
            Verb::Split(split) => split.run(ui),
            Verb::Synth(synth) => synth.run(ui),
        }
    }
}
