//! `pinpoint evaluate`: runs, saved score maps or a trivial method, scored on a dataset.

mod answer;

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    process::ExitCode,
    time::Instant,
};

use anyhow::{bail, ensure};
use clap::builder::PossibleValuesParser;
use pinpoint::{
    config::{Config, DataConfig},
    data::{Dataset, Layout, Split, problem, split::cut_validation},
    device,
    evaluate::{EvaluationTask, Features, MapSource, evaluate, tune, tuning_split},
    metrics::{Protocol, Threshold, ThresholdRule},
    predict::{Method, Trained, UNTRAINED, untrained},
    refine::Preset,
    report::{Conditions, Folder, Report, Training, Warning, compare, warnings},
    run::{RunDir, open_run},
};

use self::answer::{document, table};
use crate::{
    choice::{self, PRESETS, named},
    train::use_threads,
    ui::{Progress, Ui},
};

/// Score runs on a dataset, and write a report
#[derive(Debug, clap::Args)]
pub(crate) struct Evaluate {
    /// Run directories written by `pinpoint train`
    #[arg(value_name = "RUN", required_unless_present_any = ["method", "maps"])]
    runs: Vec<PathBuf>,

    /// Score a method that needs no training instead
    #[arg(long, value_parser = PossibleValuesParser::new(UNTRAINED))]
    #[arg(conflicts_with_all = ["runs", "maps"])]
    pub(crate) method: Option<String>,

    /// Score saved maps instead: `.npy` files in [0, 1], named after the images
    #[arg(long, value_name = "DIR")]
    maps: Option<PathBuf>,

    /// Dataset to score on
    #[arg(long, value_name = "PATH")]
    data: PathBuf,

    /// Which of its samples
    #[arg(long, value_parser = named::<Split>(SPLITS), default_value = "test")]
    split: Split,

    /// How the dataset is laid out, if it should not be told from its files
    #[arg(long, value_parser = choice::layout())]
    pub(crate) layout: Option<Layout>,

    /// Where the images of list files are, when not beside the lists
    #[arg(long, value_name = "DIR")]
    pub(crate) images: Option<PathBuf>,

    /// Snap maps to the edges of their image first
    #[arg(long, value_name = "PRESET", value_parser = named::<Preset>(PRESETS))]
    pub(crate) crf: Option<Preset>,

    /// Where maps are cut: a number, `otsu`, `percentile:80`, `valid` (best on the validation
    /// split) or `oracle` (best on the scored split)
    #[arg(long, value_name = "RULE", default_value = "0.5")]
    pub(crate) threshold: ThresholdRule,

    /// Tell the method the true class, as the paper does for its baselines
    #[arg(long)]
    pub(crate) oracle_label: bool,

    /// Also tell the class from features under the maps and beside them, on held-out images:
    /// a score of the maps that needs no masks
    #[arg(long)]
    pub(crate) decidability: bool,

    /// Backbone that those features are of: a file, or a name that `pinpoint weights get` fetched;
    /// the run's own by default
    #[arg(long, value_name = "FILE|NAME", requires = "decidability", value_parser = crate::weights::file_or_name())]
    pub(crate) weights: Option<PathBuf>,

    /// Folder for the report; `RUN/report` by default, one folder per run where there are several
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

    /// Put the maps of the images that comparisons show into the report
    #[arg(skip)]
    pub(crate) save_shown_maps: bool,
}

const SPLITS: &[&str] = &["train", "valid", "test"];

/// A trained run with its settings.
struct Run {
    dir: RunDir,
    config: Config,
}

impl Evaluate {
    /// The test split of a dataset, scored as if no flag were given.
    pub(crate) fn on(data: PathBuf) -> Self {
        Self {
            runs: Vec::new(),
            method: None,
            maps: None,
            data,
            split: Split::Test,
            layout: None,
            images: None,
            crf: None,
            threshold: ThresholdRule::default(),
            oracle_label: false,
            decidability: false,
            weights: None,
            report: None,
            no_report: false,
            save_maps: false,
            threads: None,
            json: false,
            save_shown_maps: false,
        }
    }

    pub(crate) fn run(self, ui: &mut Ui) -> anyhow::Result<ExitCode> {
        let workers = use_threads(self.threads)?;
        ensure!(
            self.maps.is_none() || self.runs.len() < 2,
            "`--maps` holds the maps of one run\nhint: evaluate one run at a time"
        );
        let folders = self.folders()?;
        if self.runs.is_empty() {
            self.one(None, folders.first().map(PathBuf::as_path), workers, ui)?;
            return Ok(ExitCode::SUCCESS);
        }
        let mut failures = Vec::new();
        for (index, run) in self.runs.iter().enumerate() {
            let folder = folders.get(index).map(PathBuf::as_path);
            if let Err(error) = self.one(Some(run), folder, workers, ui) {
                failures.push(error);
            }
        }
        // One run that cannot be scored must not cost the user the others.
        match failures.len() {
            0 => Ok(ExitCode::SUCCESS),
            1 if self.runs.len() == 1 => Err(failures.remove(0)),
            failed => {
                failures.iter().for_each(|error| ui.error(error));
                Ok(ExitCode::from(if failed == self.runs.len() { 2 } else { 1 }))
            }
        }
    }

    /// Where the report of each run goes; nothing if none is written.
    fn folders(&self) -> anyhow::Result<Vec<PathBuf>> {
        let Self { runs, report, .. } = self;
        let folders = match report {
            _ if self.no_report => Vec::new(),
            Some(folder) if runs.len() < 2 => vec![folder.clone()],
            Some(folder) => runs.iter().map(|run| folder.join(name(run))).collect(),
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

    /// Scores one run, or what is scored without one, and tells the scores.
    fn one(
        &self,
        run: Option<&PathBuf>,
        folder: Option<&Path>,
        workers: usize,
        ui: &mut Ui,
    ) -> anyhow::Result<()> {
        let started = Instant::now();
        let report = self.report_on(run.map(PathBuf::as_path), folder, workers, None, ui)?;
        ui.note(&format!(
            "{} images scored in {:.1} s",
            report.evaluation.scores.images,
            started.elapsed().as_secs_f64()
        ));
        self.answer(&report, folder, ui)
    }

    /// Scores one run, or what is scored without one, and writes its report.
    ///
    /// Images count as pieces of work `within` which this is done, if it is part of more.
    pub(crate) fn report_on(
        &self,
        run: Option<&Path>,
        folder: Option<&Path>,
        workers: usize,
        within: Option<&Progress>,
        ui: &mut Ui,
    ) -> anyhow::Result<Report> {
        let run = run.map(Run::open).transpose()?;
        let (settings, seed) = match &run {
            Some(run) => (run.config.data.clone(), run.config.seed),
            None => (DataConfig::default(), 0),
        };
        let dataset = self.dataset(&settings, seed)?;
        if within.is_none() {
            self.warn_of(&dataset, ui);
        }
        let method = match (&run, &self.maps) {
            (_, Some(_)) => None,
            (Some(run), None) => Some(run.network(&dataset, ui)?),
            (None, None) => self.method.as_deref().and_then(untrained),
        };
        let source = match (&method, &self.maps) {
            (Some(method), _) => MapSource::Method(&**method),
            (None, Some(maps)) => MapSource::Maps(maps),
            (None, None) => unreachable!("a run, a method or maps are asked for"),
        };
        let features = self.features(run.as_ref())?;
        let mut task = EvaluationTask {
            source,
            dataset: &dataset,
            split: self.split,
            data: &settings,
            protocol: Protocol::default(),
            crf: self.crf,
            oracle_label: self.oracle_label,
            features: features.as_ref(),
            workers,
        };
        task.protocol.threshold = self.tuned(&task, within.is_some(), ui)?;
        self.score(&task, run.as_ref(), folder, within, ui)
    }

    /// What decidability is told from, if it is asked for.
    fn features(&self, run: Option<&Run>) -> anyhow::Result<Option<Features>> {
        if !self.decidability {
            return Ok(None);
        }
        let own = run.map(|run| run.dir.best());
        let Some(weights) = self.weights.clone().or(own) else {
            bail!(
                "`--decidability` needs a network to take features from\n\
                 hint: give its weights by `--weights FILE`; `pinpoint weights` lists some"
            );
        };
        Ok(Some(Features::open(&weights)?))
    }

    /// The dataset, with a validation split where one is needed.
    fn dataset(&self, settings: &DataConfig, seed: u64) -> anyhow::Result<Dataset> {
        let Self { layout, images, split, data, .. } = self;
        let options = settings.open_options(*layout, images.clone());
        let mut dataset = Dataset::open(data, &options)?;
        let tuned_on = tuning_split(self.threshold, *split);
        if *split != Split::Test || tuned_on != Split::Test {
            // The same cut as training made, so that `valid` means the same samples.
            cut_validation(&mut dataset, settings.valid_fraction, seed);
        }
        for split in [*split, tuned_on] {
            if dataset.split(split).is_empty() {
                bail!(
                    "`{}` has no `{split}` split\nhint: see `pinpoint data check`",
                    data.display()
                );
            }
        }
        Ok(dataset)
    }

    /// Tells what of a dataset cannot be used.
    fn warn_of(&self, dataset: &Dataset, ui: &mut Ui) {
        for group in problem::group(&dataset.problems) {
            ui.warn(&group.to_string());
        }
        let split = self.split;
        if dataset.split(split).iter().all(|sample| sample.truth.masks.is_empty()) {
            ui.warn(&format!("no image of the `{split}` split has a mask, so masks get no score"));
            if !self.decidability {
                ui.note("`--decidability` scores maps without masks");
            }
        }
    }

    /// The threshold, found on another split first if the rule asks for it.
    fn tuned(&self, task: &EvaluationTask<'_>, quiet: bool, ui: &Ui) -> anyhow::Result<Threshold> {
        if let Some(threshold) = self.threshold.ready() {
            return Ok(threshold);
        }
        if quiet {
            return Ok(tune(self.threshold, task, || {})?);
        }
        let images = task.dataset.split(tuning_split(self.threshold, self.split)).len();
        let progress = ui.progress(images as u64, "tuning the threshold");
        let threshold = tune(self.threshold, task, || progress.inc(1))?;
        progress.finish();
        Ok(threshold)
    }

    /// Scores the split and writes the report.
    fn score(
        &self,
        task: &EvaluationTask<'_>,
        run: Option<&Run>,
        folder: Option<&Path>,
        within: Option<&Progress>,
        ui: &mut Ui,
    ) -> anyhow::Result<Report> {
        let training = run.and_then(|run| match run.dir.records() {
            Ok(records) => Some(Training::of(&records)),
            Err(error) => {
                ui.warn(&format!("the time of training is not known: {error}"));
                None
            }
        });
        let images = task.dataset.split(self.split).len();
        let own = within.is_none().then(|| ui.progress(images as u64, "evaluating"));
        let advance = || within.or(own.as_ref()).into_iter().for_each(|progress| progress.inc(1));
        let saved =
            |index| self.save_maps || self.save_shown_maps && compare::is_shown(index, images);
        let mut folder = folder.map(Folder::create).transpose()?;
        let evaluation = match &mut folder {
            Some(folder) => folder.evaluate(task, saved, advance)?,
            None => {
                let advance = |()| {
                    advance();
                    Ok(())
                };
                evaluate(task, |_| Ok(()), advance)?
            }
        };
        own.into_iter().for_each(Progress::finish);
        if let Some(problem) = one_sided(evaluation.scores.truth_foreground) {
            ui.warn(problem);
        }
        let method = match task.source {
            MapSource::Method(method) => method.name().to_owned(),
            MapSource::Maps(folder) => format!("maps of {}", name(folder).display()),
        };
        let conditions = self.conditions(task, run);
        let report = Report::new(method, self.split, conditions, training, evaluation)
            .with_settings(run.map(|run| run.config.clone()))
            .with_inputs(run.map(|run| run.dir.inputs()).transpose()?.flatten());
        if let Some(folder) = folder {
            folder.write(&report)?;
        }
        Ok(report)
    }

    fn conditions(&self, task: &EvaluationTask<'_>, run: Option<&Run>) -> Conditions {
        let text = |path: &Path| path.display().to_string();
        let weights = run.filter(|_| self.maps.is_none()).map(|run| text(&run.dir.best()));
        let backbone = run.and_then(|run| {
            let backbone = serde_json::to_value(run.config.model.backbone).ok()?;
            backbone.as_str().map(str::to_owned)
        });
        Conditions {
            data: text(&self.data),
            layout: task.dataset.layout,
            truth_rule: task.truth_rule(),
            mask_rule: match task.source {
                MapSource::Method(method) => Some(method.mask_rule()),
                MapSource::Maps(_) => None,
            },
            run: run.map(|run| text(run.dir.root())),
            weights,
            maps: self.maps.as_deref().map(text),
            backbone,
            semantics: run.map(|run| run.config.semantics),
            seed: run.map(|run| run.config.seed),
            trained_in: run.and_then(|run| run.dir.adopted()),
            crf: self.crf,
            oracle_label: self.oracle_label,
            features: task.features.map(|features| features.name().to_owned()),
        }
    }

    fn answer(&self, report: &Report, folder: Option<&Path>, ui: &mut Ui) -> anyhow::Result<()> {
        if self.json {
            ui.answer(&document(report, folder)?.to_string());
        } else {
            table(report).iter().for_each(|line| ui.answer(line));
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

impl Run {
    fn open(path: &Path) -> anyhow::Result<Self> {
        let dir = open_run(path)?;
        let config = dir.config()?;
        Ok(Self { dir, config })
    }

    /// The trained network, on data with its classes.
    fn network(&self, dataset: &Dataset, ui: &mut Ui) -> anyhow::Result<Box<dyn Method>> {
        let trained = Trained::open(&self.dir, &device::cpu())?;
        trained.require_classes(dataset)?;
        trained.note().into_iter().for_each(|note| ui.note(note));
        Ok(Box::new(trained))
    }
}

/// What is wrong with truth of which this share is foreground, in percent, if anything is.
fn one_sided(foreground: Option<f64>) -> Option<&'static str> {
    match foreground? {
        100.0 => Some(
            "every pixel of every mask is foreground, so that marking everything scores 100: \
             see what `data.mask_rule` takes for foreground",
        ),
        0.0 => Some(
            "no pixel of any mask is foreground, so that marking nothing scores 100: \
             see what `data.mask_rule` takes for foreground",
        ),
        _ => None,
    }
}

/// The last part of a path that is a name.
fn name(path: &Path) -> PathBuf {
    let whole = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    whole.file_name().map_or_else(|| OsString::from("run"), OsString::from).into()
}
