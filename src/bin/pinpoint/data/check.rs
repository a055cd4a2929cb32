//! `pinpoint data check`.

use std::process::ExitCode;

use crate::ui::Ui;

/// List what a dataset holds and everything wrong with it
#[derive(Debug, clap::Args)]
pub(crate) struct Check {}

impl Check {
    pub(crate) fn run(self, ui: &mut Ui) -> anyhow::Result<ExitCode> {
        let Self {} = self;
        ui.note("nothing here yet");
        Ok(ExitCode::SUCCESS)
    }
}
