//! `pinpoint data synth`.

use std::process::ExitCode;

use crate::ui::Ui;

/// Draw a labelled dataset with exact masks
#[derive(Debug, clap::Args)]
pub(crate) struct Synth {}

impl Synth {
    pub(crate) fn run(self, ui: &mut Ui) -> anyhow::Result<ExitCode> {
        let Self {} = self;
        ui.note("nothing here yet");
        Ok(ExitCode::SUCCESS)
    }
}
