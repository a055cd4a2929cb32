//! `pinpoint data split`.

use std::process::ExitCode;

use crate::ui::Ui;

/// Write train and valid folds by the published algorithm
#[derive(Debug, clap::Args)]
pub(crate) struct Split {}

impl Split {
    pub(crate) fn run(self, ui: &mut Ui) -> anyhow::Result<ExitCode> {
        let Self {} = self;
        ui.note("nothing here yet");
        Ok(ExitCode::SUCCESS)
    }
}
