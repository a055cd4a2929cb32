//! Every method of a settings file trained, scored and compared; what is finished is not done
//! again.

mod observer;
mod plan;

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::bail;
use pinpoint::{
    EvaluateRequest, TrainRequest,
    config::{Config, DataConfig, Experiment},
    data::{Dataset, MaskRule, problem},
    evaluate,
    metrics::ThresholdRule,
    model::weights,
    refine::Preset,
    report::{
        Report,
        compare::{self, Comparison, Format},
    },
    run::{DataSource, RunDir, WeightFile},
    train,
    train::Ending,
    workflow::{EvaluateEvent, SaveMaps, open_dataset},
};

pub(crate) use self::plan::seed;
use self::{
    observer::RunObserver,
    plan::{Job, passes_per_image, plan},
};
use crate::{
    choice::{PRESETS, named},
    comparison::write,
    data_args::{LayoutArgs, MaskArgs},
    interrupt::{self, go_on, interrupted},
    machine::use_threads,
    ui::{Progress, Ui},
    weight_files::{file_or_name, warn_of},
};

/// Rows and seeds of a settings file on one dataset, and how they are scored.
#[derive(Debug, clap::Args)]
pub(crate) struct Study {
    /// Dataset to learn from and to score on
    #[arg(long, value_name = "PATH")]
    pub(crate) data: PathBuf,

    /// Classes that it must have, if that is known
    #[arg(skip)]
    pub(crate) classes: Option<usize>,

    /// Folder for the runs and their comparison; what is finished there is not done again
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,

    /// These rows instead of the file's, separated by commas
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    pub(crate) methods: Vec<String>,

    /// These seeds instead of the file's, separated by commas
    #[arg(long, value_name = "N,…", value_delimiter = ',', value_parser = seed)]
    pub(crate) seeds: Vec<u64>,

    /// Change one setting of all rows, as in `--set train.batch_size=4`; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,

    /// Passes over the training set, for all rows
    #[arg(long, value_name = "N")]
    pub(crate) epochs: Option<usize>,

    /// Weights to start from: a `.safetensors` or `.pth` file, or what `pinpoint weights get`
    /// fetched; U-Net starts from random ones
    #[arg(long, value_name = "FILE|NAME", value_parser = file_or_name())]
    pub(crate) weights: Option<PathBuf>,

    /// Also score with maps snapped to the edges of their image
    #[arg(long, value_name = "PRESET", value_parser = named::<Preset>(PRESETS))]
    pub(crate) crf: Option<Preset>,

    /// Where maps are cut, as for `pinpoint evaluate`
    #[arg(long, value_name = "RULE", default_value = "0.5")]
    pub(crate) threshold: ThresholdRule,

    /// Tell methods the true class when they are scored, as the paper does
    #[arg(long)]
    pub(crate) oracle_label: bool,

    /// Also score maps without masks, as `pinpoint evaluate` does, with features of `--weights`
    #[arg(long, requires = "weights")]
    pub(crate) decidability: bool,

    #[command(flatten)]
    pub(crate) layout: LayoutArgs,

    #[command(flatten)]
    pub(crate) masks: MaskArgs,

    /// Device to compute on: `cpu`, or a GPU backend of this build
    #[arg(long, value_name = "DEVICE", default_value = "cpu")]
    pub(crate) device: String,

    /// Threads to use; all cores by default
    #[arg(long, value_name = "N")]
    pub(crate) threads: Option<usize>,
}

/// What all jobs share.
struct Runner<'a> {
    study: &'a Study,
    jobs: &'a [Job],
    workers: usize,
    progress: Progress,
    /// Images of the splits that are trained on and scored.
    images: (usize, usize),
    /// How masks are read by every row, also by those that have no settings, and the rule that
    /// this comes to.
    read_as: (DataConfig, MaskRule),
}

impl Study {
    pub(crate) fn run(self, experiment: &Experiment, ui: &mut Ui) -> anyhow::Result<ExitCode> {
        let workers = use_threads(self.threads)?;
        let jobs = plan(experiment, &self)?;
        if let Some(weights) = &self.weights {
            // Told once, and not by every row.
            weights::read(weights)?;
        }
        // One row stands for the others.
        let configs = || jobs.iter().filter_map(|job| job.config.as_ref());
        let mut from_weights = configs().filter(|config| config.method != "unet");
        from_weights.find(|config| warn_of(self.weights.as_deref(), config, ui));
        let mut any = configs().next().cloned().unwrap_or_default();
        self.masks.apply(&mut any.data);
        let dataset = open_dataset(&self.source(), &any)?;
        self.require_classes(&dataset)?;
        dataset.notes.iter().for_each(|note| ui.note(note));
        for group in problem::group(&dataset.problems) {
            ui.warn(&group.to_string());
        }
        let images = (dataset.train.len(), dataset.test.len());
        if images.1 == 0 {
            bail!("`{}` has no test split to compare on", self.data.display());
        }
        let scored = images.1 * self.refinements().len();
        let effort = jobs.iter().map(|job| job.effort(images.0) + scored as u64).sum();
        let progress = ui.progress(effort, "sweep");
        interrupt::listen()?;
        let read_as = (any.data.clone(), dataset.mask_rule);
        let runner = Runner { study: &self, jobs: &jobs, workers, progress, images, read_as };

        let mut failed: Vec<&str> = Vec::new();
        for job in &jobs {
            let Err(error) = runner.work(job, &failed, ui) else { continue };
            if let Some(pinpoint::Error::Interrupted) = error.downcast_ref() {
                drop(runner);
                return Ok(interrupted(ui, "the same command goes on from here"));
            }
            // One row that fails must not cost the user the others.
            failed.push(&job.name);
            let error = error.context(format!("`{}` failed", job.name));
            runner.progress.aside(|| ui.error(&error));
        }
        drop(runner);
        if failed.len() == jobs.len() {
            bail!("no row could be scored");
        }
        self.compare(&jobs, &failed, &dataset, ui)?;
        if !failed.is_empty() {
            ui.warn(&format!("left out, since they failed: {}", failed.join(", ")));
        }
        Ok(ExitCode::from(u8::from(!failed.is_empty())))
    }

    fn source(&self) -> DataSource {
        self.layout.of(&self.data)
    }

    /// Refuses data that is not what the study is of.
    fn require_classes(&self, dataset: &Dataset) -> anyhow::Result<()> {
        let found = dataset.classes.len();
        if let Some(classes) = self.classes.filter(|classes| *classes != found) {
            bail!(
                "`{}` is another dataset: it has {found} classes and not {classes}\n\
                 hint: see how it is read by `pinpoint data check`",
                self.data.display()
            );
        }
        Ok(())
    }

    /// How maps are scored: as they are, and refined if asked to.
    fn refinements(&self) -> Vec<Option<Preset>> {
        std::iter::once(None).chain(self.crf.map(Some)).collect()
    }

    /// Compares what was scored, in `OUT/compare`.
    fn compare(
        &self,
        jobs: &[Job],
        failed: &[&str],
        dataset: &Dataset,
        ui: &mut Ui,
    ) -> anyhow::Result<()> {
        let mut entries = Vec::new();
        for job in jobs.iter().filter(|job| !failed.contains(&job.name.as_str())) {
            for crf in self.refinements() {
                entries.extend(compare::open(&report_folder(&job.folder(&self.out), crf))?);
            }
        }
        let comparison = Comparison::of(entries)?;
        write(&comparison, &self.out.join("compare"), Some(dataset), ui)?;
        ui.print(comparison.render(Format::Markdown).trim_end());
        Ok(())
    }
}

/// Where the report of a run goes.
fn report_folder(run: &Path, crf: Option<Preset>) -> PathBuf {
    match crf {
        None => run.join("report"),
        Some(preset) => run.join(format!("report-crf-{}", preset.name())),
    }
}

impl Runner<'_> {
    /// Trains and scores a row, as far as that is not done.
    fn work(&self, job: &Job, failed: &[&str], ui: &mut Ui) -> anyhow::Result<()> {
        let mut open = self.study.refinements();
        let asked = open.len();
        open.retain(|crf| !self.is_scored(job, *crf));
        self.progress.skip(((asked - open.len()) * self.images.1) as u64);
        if open.is_empty() {
            self.progress.skip(job.effort(self.images.0));
            self.progress.say(&format!("{}: finished before", job.name));
            return Ok(());
        }
        if let Some(config) = &job.config {
            self.train(job, config, failed)?;
        }
        open.into_iter().try_for_each(|crf| self.score(job, crf, ui))
    }

    /// Whether a report is what would be written now.
    fn is_scored(&self, job: &Job, crf: Option<Preset>) -> bool {
        let folder = report_folder(&job.folder(&self.study.out), crf);
        let Ok(report) = Report::read(&folder) else { return false };
        let Study { threshold, oracle_label, data, .. } = self.study;
        let conditions = &report.conditions;
        report.settings.as_deref() == job.config.as_ref()
            && conditions.crf == crf
            && conditions.oracle_label == *oracle_label
            && conditions.truth_rule == self.read_as.1
            && conditions.data == data.display().to_string()
            && report.evaluation.scores.protocol.threshold.rule() == *threshold
            && report.evaluation.images.len() == self.images.1
            && (conditions.features.is_some() || !self.measures_decidability(crf))
            && self.is_of_these_weights(&report)
    }

    /// Whether a row that started from a weight file started from the one that is given.
    fn is_of_these_weights(&self, report: &Report) -> bool {
        let before = report.inputs.as_ref().and_then(|inputs| inputs.weights.as_ref());
        let now = self.study.weights.as_deref().map(WeightFile::of);
        match (before, now) {
            (Some(before), Some(Ok(now))) => before.sha256 == now.sha256,
            // What needs no weights, or was made before they were recorded.
            _ => true,
        }
    }

    /// Whether decidability is measured; once is enough, of maps as they are.
    fn measures_decidability(&self, crf: Option<Preset>) -> bool {
        self.study.decidability && crf.is_none()
    }

    /// Trains a run from wherever it stands.
    fn train(&self, job: &Job, config: &Config, failed: &[&str]) -> anyhow::Result<()> {
        let folder = job.folder(&self.study.out);
        // A run that has begun to learn by itself goes on with that.
        if let Some(earlier) = job.adopts {
            let run = match RunDir::exists(&folder) {
                true => RunDir::reopen(&folder, config)?,
                false => RunDir::plan(&folder)?,
            };
            if run.adopted().is_some() || !run.checkpoint().exists() {
                let from = &self.jobs[earlier];
                if failed.contains(&from.name.as_str()) {
                    bail!("its training is that of `{}`, which failed", from.name);
                }
                if !run.checkpoint().exists() {
                    run.begin(config, None)?;
                    run.adopt(&RunDir::open(&from.folder(&self.study.out))?)?;
                    self.progress.say(&format!("{}: trained as {}", job.name, from.name));
                }
                return Ok(());
            }
        }
        let request = TrainRequest {
            data: Some(self.study.source()),
            weights: self.study.weights.clone(),
            device: self.study.device.clone(),
            threads: Some(self.workers),
            resume: RunDir::exists(&folder),
            ..TrainRequest::new(&self.study.data, &folder, config.clone())
        };
        let mut observer = RunObserver {
            name: &job.name,
            progress: &self.progress,
            weight: passes_per_image(config),
            left: job.effort(self.images.0),
        };
        let outcome = train(&request, &mut observer);
        observer.close();
        match outcome?.ending {
            Ending::Finished(_) => Ok(()),
            Ending::Interrupted => Err(pinpoint::Error::Interrupted.into()),
        }
    }

    /// Scores a run on the test split.
    fn score(&self, job: &Job, crf: Option<Preset>, ui: &mut Ui) -> anyhow::Result<()> {
        let study = self.study;
        let folder = job.folder(&study.out);
        let decidability = self.measures_decidability(crf);
        let request = EvaluateRequest {
            run: job.config.is_some().then(|| folder.clone()),
            method: job.config.is_none().then(|| job.method.clone()),
            data: Some(study.source()),
            mask_rule: self.read_as.0.mask_rule,
            no_mask_names: !self.read_as.0.mask_names,
            crf,
            threshold: study.threshold,
            oracle_label: study.oracle_label,
            decidability,
            weights: study.weights.clone().filter(|_| decidability),
            report: Some(report_folder(&folder, crf)),
            save_maps: SaveMaps::Shown,
            threads: Some(self.workers),
            ..EvaluateRequest::default()
        };
        self.progress.describe(&format!("{}, scoring", job.name));
        let mut scoring = false;
        evaluate(&request, |event| {
            match event {
                EvaluateEvent::Warning(text) => self.progress.aside(|| ui.warn(text)),
                EvaluateEvent::Scoring(_) => scoring = true,
                // Images that the threshold is tuned on were not counted beforehand.
                EvaluateEvent::Image if scoring => self.progress.inc(1),
                // Notes and problems of the dataset were told once for all rows.
                _ => {}
            }
            go_on()
        })?;
        Ok(())
    }
}
