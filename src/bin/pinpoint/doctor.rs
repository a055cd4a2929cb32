//! `pinpoint doctor`.

use std::process::ExitCode;

use crate::ui::Ui;

/// Show version, devices, threads, memory and CPU features
#[derive(Debug, clap::Args)]
pub(crate) struct Doctor {
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

impl Doctor {
    pub(crate) fn run(self, ui: &mut Ui) -> anyhow::Result<ExitCode> {
        let Self { json } = self;
        ui.note(if json { "{}" } else { "nothing here yet" });
        Ok(ExitCode::SUCCESS)
    }
}
