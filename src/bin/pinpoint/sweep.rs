//! `pinpoint sweep`: every method of a settings file trained, scored and compared.

use std::{path::PathBuf, process::ExitCode};

use pinpoint::config::Experiment;

use crate::{study::Study, ui::Ui};

/// Train, score and compare every method of a settings file
#[derive(Debug, clap::Args)]
pub(crate) struct Sweep {
    /// Settings file whose `[sweep]` lists methods and seeds
    #[arg(value_name = "FILE")]
    file: PathBuf,

    #[command(flatten)]
    study: Study,
}

impl Sweep {
    pub(crate) fn run(self, ui: &mut Ui) -> anyhow::Result<ExitCode> {
        self.study.run(&Experiment::load(&self.file)?, ui)
    }
}
