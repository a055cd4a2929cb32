//! `pinpoint compare`: evaluated runs in, the paper's tables out.

use std::{path::PathBuf, process::ExitCode};

use clap::ValueEnum;
use pinpoint::report::compare::{self, Comparison};

use crate::ui::Ui;

/// Put evaluated runs beside each other in the paper's tables
#[derive(Debug, clap::Args)]
pub(crate) struct Compare {
    /// Runs that were evaluated, their reports, or folders of runs
    #[arg(value_name = "RUN", required = true)]
    runs: Vec<PathBuf>,

    /// Folder for the tables in every form, and the pictures
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,

    /// Form of the tables on stdout
    #[arg(long, value_enum, default_value = "markdown")]
    format: Format,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Format {
    Markdown,
    Csv,
    Latex,
    Html,
}

impl Compare {
    pub(crate) fn run(self, ui: &mut Ui) -> anyhow::Result<ExitCode> {
        let Self { runs, out, format } = self;
        let mut entries = Vec::new();
        for run in &runs {
            entries.extend(compare::open(run)?);
        }
        let comparison = Comparison::of(entries)?;
        if let Some(out) = &out {
            compare::write(&comparison, out)?;
            ui.note(&format!("comparison in `{}`", out.join("comparison.html").display()));
        }
        ui.answer(comparison.render(format.into()).trim_end());
        Ok(ExitCode::SUCCESS)
    }
}

impl From<Format> for compare::Format {
    fn from(format: Format) -> Self {
        match format {
            Format::Markdown => Self::Markdown,
            Format::Csv => Self::Csv,
            Format::Latex => Self::Latex,
            Format::Html => Self::Html,
        }
    }
}
