//! `pinpoint evaluate`: runs, saved score maps or a trivial method, scored on a dataset.

mod scores;

use std::{path::PathBuf, process::ExitCode, time::Instant};

use anyhow::ensure;
use clap::builder::PossibleValuesParser;
use pinpoint::{
    EvaluateRequest,
    data::Split,
    metrics::ThresholdRule,
    predict::UNTRAINED,
    refine::Preset,
    report::{Warning, warnings},
    workflow::{SaveMaps, name_of},
};

use self::scores::{document, table};
use crate::{
    choice::{PRESETS, named},
    data_args::{LayoutArgs, MaskArgs},
    interrupt::{self, interrupted},
    machine::use_threads,
    ui::Ui,
    watch, weight_files,
};

/// Score runs on a dataset, and write a report
#[derive(Debug, clap::Args)]
pub(crate) struct Evaluate {
    /// Run directories written by `pinpoint train`
    #[arg(value_name = "RUN", required_unless_present_any = ["method", "maps"])]
    runs: Vec<PathBuf>,

    /// Score a method that needs no training instead
    #[arg(long, value_parser = PossibleValuesParser::new(UNTRAINED))]
    #[arg(conflicts_with_all = ["runs", "maps"], requires = "data")]
    method: Option<String>,

    /// Score saved maps instead: `.npy` files in [0, 1], named after the images
    #[arg(long, value_name = "DIR")]
    maps: Option<PathBuf>,

    /// Dataset to score on; the one the run was trained on by default
    #[arg(long, value_name = "PATH")]
    data: Option<PathBuf>,

    /// Split to score
    #[arg(long, value_parser = named::<Split>(SPLITS), default_value = "test")]
    split: Split,

    #[command(flatten)]
    layout: LayoutArgs,

    #[command(flatten)]
    masks: MaskArgs,

    /// Snap maps to the edges of their image first
    #[arg(long, value_name = "PRESET", value_parser = named::<Preset>(PRESETS))]
    crf: Option<Preset>,

    /// Where maps are cut: a number, `otsu`, `percentile:80`, `valid` (best on the validation
    /// split) or `oracle` (best on the scored split)
    #[arg(long, value_name = "RULE", default_value = "0.5")]
    threshold: ThresholdRule,

    /// Tell the method the true class, as the paper does for its baselines
    #[arg(long)]
    oracle_label: bool,

    /// Also score maps without masks, by how well the class of held-out images is predicted from
    /// what they show, and from what they hide
    #[arg(long)]
    decidability: bool,

    /// Backbone for the features of `--decidability`: a file, or a name that `pinpoint weights get`
    /// fetched; the run's own by default
    #[arg(long, value_name = "FILE|NAME", requires = "decidability")]
    #[arg(value_parser = weight_files::file_or_name())]
    weights: Option<PathBuf>,

    /// Folder for the report, `RUN/report` by default; with several runs it gets one folder per run
    #[arg(long, value_name = "DIR", conflicts_with = "no_report")]
    report: Option<PathBuf>,

    /// Write no report
    #[arg(long)]
    no_report: bool,

    /// Put the score maps into the report, as `.npy`
    #[arg(long, conflicts_with = "no_report")]
    save_maps: bool,

    /// Threads to use; all cores by default
    #[arg(long, value_name = "N")]
    threads: Option<usize>,

    /// Print one JSON document per run
    #[arg(long)]
    json: bool,
}

const SPLITS: &[&str] = &["train", "valid", "test"];

impl Evaluate {
    pub(crate) fn run(self, ui: &mut Ui) -> anyhow::Result<ExitCode> {
        let threads = use_threads(self.threads)?;
        ensure!(
            self.maps.is_none() || self.runs.len() < 2,
            "`--maps` holds the maps of one run\nhint: evaluate one run at a time"
        );
        ensure!(
            self.maps.is_none() || !self.runs.is_empty() || self.data.is_some(),
            "nothing says of which dataset the maps are\nhint: give the dataset by `--data`"
        );
        let folders = self.folders()?;
        interrupt::listen()?;
        let runs: Vec<Option<&PathBuf>> = match self.runs.is_empty() {
            true => vec![None],
            false => self.runs.iter().map(Some).collect(),
        };
        let mut failures = Vec::new();
        for (index, run) in runs.iter().enumerate() {
            let request = EvaluateRequest {
                threads: Some(threads),
                report: folders.get(index).cloned(),
                ..self.request(run.cloned())
            };
            match self.one(&request, ui) {
                Ok(()) => {}
                Err(_) if interrupt::requested() => {
                    let text = format!("{index} of {} runs are scored", runs.len());
                    return Ok(interrupted(ui, &text));
                }
                Err(error) => failures.push(error),
            }
        }
        // One run that cannot be scored must not cost the user the others.
        match failures.len() {
            0 => Ok(ExitCode::SUCCESS),
            1 if runs.len() == 1 => Err(failures.remove(0)),
            failed => {
                failures.iter().for_each(|error| ui.error(error));
                Ok(ExitCode::from(if failed == runs.len() { 2 } else { 1 }))
            }
        }
    }

    /// Where the report of each run goes; nothing if none is written.
    fn folders(&self) -> anyhow::Result<Vec<PathBuf>> {
        let Self { runs, report, .. } = self;
        let folders = match report {
            _ if self.no_report => Vec::new(),
            Some(folder) if runs.len() < 2 => vec![folder.clone()],
            Some(folder) => runs.iter().map(|run| folder.join(name_of(run))).collect(),
            None if self.maps.is_some() => Vec::new(),
            None => runs.iter().map(|run| run.join("report")).collect(),
        };
        for (index, folder) in folders.iter().enumerate() {
            ensure!(
                !folders[..index].contains(folder),
                "two reports would be written to `{}`\nhint: evaluate one run at a time",
                folder.display()
            );
        }
        ensure!(
            !self.save_maps || !folders.is_empty(),
            "`--save-maps` puts maps into the report, but none is written\nhint: add `--report DIR`"
        );
        Ok(folders)
    }

    fn request(&self, run: Option<PathBuf>) -> EvaluateRequest {
        EvaluateRequest {
            run,
            method: self.method.clone(),
            maps: self.maps.clone(),
            data: self.data.as_deref().map(|path| self.layout.of(path)),
            mask_rule: self.masks.mask_rule,
            no_mask_names: self.masks.no_mask_names,
            split: Some(self.split),
            crf: self.crf,
            threshold: self.threshold,
            oracle_label: self.oracle_label,
            decidability: self.decidability,
            weights: self.weights.clone(),
            save_maps: if self.save_maps { SaveMaps::All } else { SaveMaps::None },
            ..EvaluateRequest::default()
        }
    }

    /// Scores one run, or what is scored without one, and prints the scores.
    fn one(&self, request: &EvaluateRequest, ui: &mut Ui) -> anyhow::Result<()> {
        let started = Instant::now();
        let report = &watch::score(request, ui)?;
        ui.note(&format!(
            "{} images scored in {:.1} s",
            report.evaluation.scores.images,
            started.elapsed().as_secs_f64()
        ));
        let folder = request.report.as_deref();
        if self.json {
            ui.print(&document(report, folder)?.to_string());
        } else {
            table(report).iter().for_each(|line| ui.print(line));
        }
        for Warning { problem, remedy } in warnings(report) {
            ui.warn(&format!("{problem}\nhint: {remedy}"));
        }
        if let Some(folder) = folder {
            ui.note(&format!("report in `{}`", folder.join("report.html").display()));
        }
        Ok(())
    }
}
