//! `pinpoint compare`: evaluated runs in, the paper's tables out.

use std::{path::PathBuf, process::ExitCode};

use clap::ValueEnum;
use pinpoint::{
    data::Dataset,
    report::compare::{self, Comparison},
};

use crate::{comparison::write, ui::Ui};

/// Put evaluated runs beside each other in the paper's tables
#[derive(Debug, clap::Args)]
pub(crate) struct Compare {
    /// Runs that were evaluated, their reports, or folders of runs
    #[arg(value_name = "RUN", required = true)]
    runs: Vec<PathBuf>,

    /// Folder for the tables in every form, and the pictures
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,

    /// Dataset of the reports, if it is elsewhere now; its images are shown side by side
    #[arg(long, value_name = "PATH", requires = "out")]
    data: Option<PathBuf>,

    /// Where the images of a CSV dataset are, if not beside it
    #[arg(long, value_name = "DIR", requires = "out")]
    images: Option<PathBuf>,

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
        let Self { runs, out, data, images, format } = self;
        let mut entries = Vec::new();
        for run in &runs {
            entries.extend(compare::open(run)?);
        }
        let comparison = Comparison::of(entries)?;
        if let Some(out) = &out {
            let dataset = match comparison.has_maps() {
                true => shown(comparison.dataset(data.as_deref(), images), data.is_some(), ui)?,
                false => {
                    ui.note(
                        "no images are shown: `pinpoint evaluate --save-maps` keeps their maps",
                    );
                    None
                }
            };
            write(&comparison, out, dataset.as_ref(), ui)?;
        }
        ui.print(comparison.render(format.into()).trim_end());
        Ok(ExitCode::SUCCESS)
    }
}

/// The dataset; one that nobody asked for may be out of reach.
fn shown(
    dataset: pinpoint::Result<Dataset>,
    asked: bool,
    ui: &mut Ui,
) -> anyhow::Result<Option<Dataset>> {
    match dataset {
        Ok(dataset) => Ok(Some(dataset)),
        Err(error) if asked => Err(error.into()),
        Err(error) => {
            ui.warn(&format!("no images are shown: {error}\nhint: say where they are by `--data`"));
            Ok(None)
        }
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
