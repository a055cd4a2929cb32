//! Every method of a settings file trained, scored and compared; what is finished is not done
//! again.

mod plan;
mod watch;

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::bail;
use pinpoint::{
    EvaluateRequest, TrainRequest,
    config::{Config, DataConfig, Experiment},
    data::{Dataset, Layout, MaskRule, problem},
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

pub(crate) use self::plan::{Changes, seed};
use self::{
    plan::{Job, Work, passes_per_image, plan},
    watch::Watch,
};
use crate::{
    comparison::write,
    interrupt::{Interrupt, interrupted},
    machine::use_threads,
    ui::{Progress, Ui},
    watch::go_on,
    weight_files::warn_of,
};

/// Rows and seeds of a settings file on one dataset, and how they are scored.
#[derive(Debug)]
pub(crate) struct Study {
    /// Settings of the rows.
    pub(crate) experiment: Experiment,
    /// What is done otherwise than the settings say.
    pub(crate) changes: Changes,
    /// Dataset to learn from and to score on.
    pub(crate) data: PathBuf,
    /// Classes that it must have, if that is known.
    pub(crate) classes: Option<usize>,
    /// Folder for the runs and their comparison.
    pub(crate) out: PathBuf,
    /// Weights to start from.
    pub(crate) weights: Option<PathBuf>,
    /// How maps are refined when they are scored a second time, if they are.
    pub(crate) crf: Option<Preset>,
    /// Where maps are cut.
    pub(crate) threshold: ThresholdRule,
    /// Whether methods are told the true class.
    pub(crate) oracle_label: bool,
    /// Whether the class is told from features of `weights` under and beside the maps.
    pub(crate) decidability: bool,
    /// How the dataset is arranged, if it cannot be told.
    pub(crate) layout: Option<Layout>,
    /// Where the images of a CSV dataset are, if not beside it.
    pub(crate) images: Option<PathBuf>,
    /// Where to compute.
    pub(crate) device: String,
    /// Threads to use; all cores by default.
    pub(crate) threads: Option<usize>,
}

/// How a job ended.
enum Outcome {
    Done,
    Interrupted,
}

/// What all jobs share.
struct Workplace<'a> {
    study: &'a Study,
    jobs: &'a [Job],
    workers: usize,
    interrupt: Interrupt,
    progress: Progress,
    /// Images of the splits that are trained on and scored.
    images: (usize, usize),
    /// How masks are read by every row, also by those that have no settings, and the rule that
    /// this comes to.
    read_as: (DataConfig, MaskRule),
}

impl Study {
    pub(crate) fn run(self, ui: &mut Ui) -> anyhow::Result<ExitCode> {
        let workers = use_threads(self.threads)?;
        let jobs = plan(&self.experiment, &self.changes)?;
        if let Some(weights) = &self.weights {
            // Told once, and not by every row.
            weights::read(weights)?;
        }
        let configs = jobs.iter().filter_map(Job::config).filter(|config| config.method != "unet");
        for config in configs {
            // One row stands for the others.
            if warn_of(self.weights.as_deref(), config, ui) {
                break;
            }
        }
        let mut any = jobs.iter().find_map(Job::config).cloned().unwrap_or_default();
        self.changes.masks.apply(&mut any.data);
        let dataset = self.open(&any)?;
        self.require_classes(&dataset)?;
        for note in &dataset.notes {
            ui.note(note);
        }
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
        let interrupt = Interrupt::listen()?;
        let read_as = (any.data.clone(), dataset.mask_rule);
        let place =
            Workplace { study: &self, jobs: &jobs, workers, interrupt, progress, images, read_as };

        let mut failed: Vec<&str> = Vec::new();
        for job in &jobs {
            match place.work(job, &failed, ui) {
                Ok(Outcome::Done) => {}
                Ok(Outcome::Interrupted) => {
                    place.progress.finish();
                    return Ok(interrupted(ui, "the same command goes on from here"));
                }
                // One row that fails must not cost the user the others.
                Err(error) => {
                    failed.push(&job.name);
                    let error = error.context(format!("`{}` failed", job.name));
                    place.progress.aside(|| ui.error(&error));
                }
            }
        }
        place.progress.finish();
        if failed.len() == jobs.len() {
            bail!("no row could be scored");
        }
        self.compare(&jobs, &failed, &dataset, ui)?;
        if !failed.is_empty() {
            ui.warn(&format!("left out, since they failed: {}", failed.join(", ")));
        }
        Ok(ExitCode::from(u8::from(!failed.is_empty())))
    }

    fn open(&self, config: &Config) -> anyhow::Result<Dataset> {
        Ok(open_dataset(&self.source(), config)?)
    }

    fn source(&self) -> DataSource {
        DataSource { path: self.data.clone(), layout: self.layout, images: self.images.clone() }
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

impl Workplace<'_> {
    /// Trains and scores a row, as far as that is not done.
    fn work(&self, job: &Job, failed: &[&str], ui: &mut Ui) -> anyhow::Result<Outcome> {
        let refinements = self.study.refinements();
        let open: Vec<_> =
            refinements.iter().filter(|crf| !self.is_scored(job, **crf)).copied().collect();
        let scored = (refinements.len() - open.len()) * self.images.1;
        self.progress.skip(scored as u64);
        if open.is_empty() {
            self.progress.skip(job.effort(self.images.0));
            self.progress.say(&format!("{}: finished before", job.name));
            return Ok(Outcome::Done);
        }
        if let Some(config) = job.config()
            && let Outcome::Interrupted = self.train(job, config, failed)?
        {
            return Ok(Outcome::Interrupted);
        }
        for crf in open {
            match self.score(job, crf, ui) {
                Err(pinpoint::Error::Interrupted) => return Ok(Outcome::Interrupted),
                outcome => outcome?,
            }
        }
        Ok(Outcome::Done)
    }

    /// Whether a report is what would be written now.
    fn is_scored(&self, job: &Job, crf: Option<Preset>) -> bool {
        let folder = report_folder(&job.folder(&self.study.out), crf);
        let Ok(report) = Report::read(&folder) else { return false };
        let Study { threshold, oracle_label, data, .. } = self.study;
        let conditions = &report.conditions;
        report.settings.as_deref() == job.config()
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
    fn train(&self, job: &Job, config: &Config, failed: &[&str]) -> anyhow::Result<Outcome> {
        let folder = job.folder(&self.study.out);
        // A run that has begun to learn by itself goes on with that.
        if let Work::Adopt(_, earlier) = job.work {
            let run = match RunDir::exists(&folder) {
                true => RunDir::reopen(&folder, config)?,
                false => RunDir::plan(&folder)?,
            };
            if run.adopted().is_some() || !run.checkpoint().exists() {
                self.adopt(job, config, &run, &self.jobs[earlier], failed)?;
                return Ok(Outcome::Done);
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
        let mut watch = Watch {
            name: &job.name,
            interrupt: &self.interrupt,
            progress: &self.progress,
            weight: passes_per_image(config),
            left: job.effort(self.images.0),
        };
        let outcome = train(&request, &mut watch);
        watch.close();
        Ok(match outcome?.ending {
            Ending::Finished(_) => Outcome::Done,
            Ending::Interrupted => Outcome::Interrupted,
        })
    }

    /// Takes over the training of an earlier job.
    fn adopt(
        &self,
        job: &Job,
        config: &Config,
        run: &RunDir,
        from: &Job,
        failed: &[&str],
    ) -> anyhow::Result<()> {
        if failed.contains(&from.name.as_str()) {
            bail!("its training is that of `{}`, which failed", from.name);
        }
        if !run.checkpoint().exists() {
            run.begin(config, None)?;
            run.adopt(&RunDir::open(&from.folder(&self.study.out))?)?;
            self.progress.say(&format!("{}: trained as {}", job.name, from.name));
        }
        Ok(())
    }

    /// Scores a run on the test split.
    fn score(&self, job: &Job, crf: Option<Preset>, ui: &mut Ui) -> pinpoint::Result<()> {
        let study = self.study;
        let folder = job.folder(&study.out);
        let method = match &job.work {
            Work::Score(method) => Some(method.clone()),
            _ => None,
        };
        let decidability = self.measures_decidability(crf);
        let request = EvaluateRequest {
            run: method.is_none().then(|| folder.clone()),
            method,
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
        self.progress.describe(format!("{}, scoring", job.name));
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
            go_on(&self.interrupt)
        })?;
        Ok(())
    }
}
