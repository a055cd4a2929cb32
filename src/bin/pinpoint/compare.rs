//! `pinpoint compare`: evaluated runs in, the paper's tables out.

use std::{path::PathBuf, process::ExitCode};

use pinpoint::{
    data::Dataset,
    report::compare::{self, Comparison, Format},
};

use crate::{choice::named, comparison::write, ui::Ui};

/// Compare evaluated runs in tables
#[derive(Debug, clap::Args)]
pub(crate) struct Compare {
    /// Runs that were evaluated, their reports, or folders of runs
    #[arg(value_name = "RUN", required = true)]
    runs: Vec<PathBuf>,

    /// Folder for the tables in all formats, and the figures; without it, tables are only printed
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,

    /// Dataset of the reports, if it has moved; its images are shown with the masks
    #[arg(long, value_name = "PATH", requires = "out")]
    data: Option<PathBuf>,

    /// Where the images of a CSV dataset are, if not beside it
    #[arg(long, value_name = "DIR", requires = "out")]
    images: Option<PathBuf>,

    /// Format of the tables on stdout
    #[arg(long, value_parser = named::<Format>(FORMATS), default_value = "markdown")]
    format: Format,
}

const FORMATS: &[&str] = &["markdown", "csv", "latex", "html"];

impl Compare {
    pub(crate) fn run(self, ui: &mut Ui) -> anyhow::Result<ExitCode> {
        let Self { runs, out, data, images, format } = self;
        let entries = runs.iter().map(|run| compare::open(run)).collect::<Result<Vec<_>, _>>()?;
        let comparison = Comparison::of(entries.into_iter().flatten().collect())?;
        if let Some(out) = &out {
            let dataset = shown(&comparison, data, images, ui)?;
            write(&comparison, out, dataset.as_ref(), ui)?;
        }
        ui.print(comparison.render(format).trim_end());
        Ok(ExitCode::SUCCESS)
    }
}

/// The dataset whose images are shown; one that nobody asked for may be out of reach.
fn shown(
    comparison: &Comparison,
    data: Option<PathBuf>,
    images: Option<PathBuf>,
    ui: &mut Ui,
) -> pinpoint::Result<Option<Dataset>> {
    if !comparison.has_maps() {
        ui.note("no images are shown: `pinpoint evaluate --save-maps` keeps their maps");
        return Ok(None);
    }
    match comparison.dataset(data.as_deref(), images) {
        Err(error) if data.is_none() => {
            ui.warn(&format!("no images are shown: {error}\nhint: say where they are by `--data`"));
            Ok(None)
        }
        outcome => outcome.map(Some),
    }
}
