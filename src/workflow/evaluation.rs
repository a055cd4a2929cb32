//! Evaluation in one call: a run, saved score maps or a trivial rule in, a report out.

use std::{
    ffi::OsString,
    ops::ControlFlow,
    path::{Path, PathBuf},
};

use super::{memory::ImageWork, workers};
use crate::{
    config::{Config, DataConfig},
    data::{Dataset, MaskRule, Split, problem, split::cut_validation},
    device,
    error::{Error, Result},
    evaluate::{self, EvaluationTask, Features, MapSource, tune, tuning_split},
    metrics::{Protocol, Threshold, ThresholdRule},
    predict::Predictor,
    refine::Preset,
    report::{Conditions, Folder, Report, Training, compare},
    run::{DataSource, RunDir},
};

/// What is scored, on which data, and how.
///
/// One of `run`, `method` and `maps` must be given; maps may be those of a run.
#[derive(Debug, Clone, Default)]
pub struct EvaluateRequest {
    /// A run directory.
    pub run: Option<PathBuf>,
    /// A method that needs no training, one of [`UNTRAINED`](crate::predict::UNTRAINED).
    pub method: Option<String>,
    /// Saved score maps: `.npy` files in [0, 1], named after the images.
    pub maps: Option<PathBuf>,
    /// The dataset to score on; that of the run if absent.
    pub data: Option<DataSource>,
    /// What counts as foreground in a mask; what the run's settings or the layout say if absent.
    pub mask_rule: Option<MaskRule>,
    /// Takes pictures in class folders for images even if they are named like masks.
    pub no_mask_names: bool,
    /// Which of its samples; the test split if absent.
    pub split: Option<Split>,
    /// Snaps maps to the edges of their image first.
    pub crf: Option<Preset>,
    /// Where maps are cut.
    pub threshold: ThresholdRule,
    /// Whether the method is given the true class, as the paper does for its baselines.
    pub oracle_label: bool,
    /// Whether the class is also predicted from features under the maps and beside them.
    pub decidability: bool,
    /// The backbone that those features are of; the run's own if absent.
    pub weights: Option<PathBuf>,
    /// The folder for the report; none is written if absent.
    pub report: Option<PathBuf>,
    /// Which score maps the report keeps.
    pub save_maps: SaveMaps,
    /// Threads that decode, and threads that score; one per core by default.
    pub threads: Option<usize>,
}

/// Which score maps a report keeps, as `.npy`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SaveMaps {
    /// None.
    #[default]
    None,
    /// Those of the images that comparisons show.
    Shown,
    /// All.
    All,
}

/// What happens during an evaluation.
#[derive(Debug)]
#[non_exhaustive]
pub enum EvaluateEvent<'a> {
    /// Something the user should know.
    Note(&'a str),
    /// Something that the user probably did not intend.
    Warning(&'a str),
    /// Something about the dataset that limits what can be scored.
    DatasetProblem(&'a str),
    /// The threshold is about to be tuned on this many images.
    Tuning(usize),
    /// This many images are about to be scored.
    Scoring(usize),
    /// One more of them is done.
    Image,
}

impl EvaluateRequest {
    /// Scores a run on the data it knows, as if no flag were given.
    pub fn run(run: impl Into<PathBuf>) -> Self {
        Self { run: Some(run.into()), ..Self::default() }
    }

    /// Scores a method that needs no training.
    pub fn untrained(method: &str, data: impl Into<PathBuf>) -> Self {
        let data = Some(DataSource::new(data));
        Self { method: Some(method.to_owned()), data, ..Self::default() }
    }
}

/// Scores what is asked for, and writes its report if there is a folder for it.
///
/// `observe` is told what happens, and may break off between two images, which is the error
/// [`Error::Interrupted`].
pub fn evaluate(
    request: &EvaluateRequest,
    mut observe: impl FnMut(EvaluateEvent<'_>) -> ControlFlow<()>,
) -> Result<Report> {
    let mut tell = |event: EvaluateEvent<'_>| match observe(event) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(Error::Interrupted),
    };
    let run = request.run.as_deref().map(OpenRun::open).transpose()?;
    let mut settings = run.as_ref().map_or_else(Config::default, |run| run.config.clone());
    settings.data.mask_rule = request.mask_rule.or(settings.data.mask_rule);
    settings.data.mask_names &= !request.no_mask_names;
    let data = match (&request.data, &run) {
        (Some(data), _) => data.clone(),
        (None, Some(run)) => run.data()?,
        (None, None) => return Err(unusable("no dataset is given")),
    };
    let evaluation = Evaluating {
        request,
        split: request.split.unwrap_or(Split::Test),
        data: &data,
        run: run.as_ref(),
    };
    let mut dataset = evaluation.dataset(&settings.data, settings.seed)?;
    evaluation.warn(&dataset, &mut tell)?;
    let predictor = evaluation.predictor()?;
    if let Some(predictor) = &predictor {
        predictor.number_classes(&mut dataset)?;
    }
    if let Some(note) = predictor.as_ref().and_then(Predictor::note) {
        tell(EvaluateEvent::Note(note))?;
    }
    let source = match (&predictor, &request.maps) {
        (Some(predictor), _) => MapSource::Predictor(predictor),
        (None, Some(maps)) => MapSource::Maps(maps),
        (None, None) => {
            return Err(unusable("a run, a method that needs no training, or maps must be given"));
        }
    };
    let features = evaluation.features()?;
    let mut task = EvaluationTask {
        source,
        dataset: &dataset,
        split: evaluation.split,
        data: &settings.data,
        protocol: Protocol::default(),
        crf: request.crf,
        oracle_label: request.oracle_label,
        features: features.as_ref(),
        workers: workers(request.threads),
    };
    evaluation.require_memory(&task)?;
    task.protocol.threshold = evaluation.threshold(&task, &mut tell)?;
    evaluation.score(&task, &mut tell)
}

fn unusable(problem: &str) -> Error {
    Error::Setting(vec![problem.to_owned()])
}

/// Tells of an event; whoever is told of it may break off.
type Tell<'a> = &'a mut dyn FnMut(EvaluateEvent<'_>) -> Result<()>;

/// A request whose run and data are known.
struct Evaluating<'a> {
    request: &'a EvaluateRequest,
    split: Split,
    data: &'a DataSource,
    run: Option<&'a OpenRun>,
}

impl Evaluating<'_> {
    /// The dataset, with a validation split where one is needed.
    fn dataset(&self, settings: &DataConfig, seed: u64) -> Result<Dataset> {
        let mut dataset = self.data.open(settings)?;
        let tuned_on = tuning_split(self.request.threshold, self.split);
        if self.split != Split::Test || tuned_on != Split::Test {
            // The same cut as training made, so that `valid` means the same samples.
            cut_validation(&mut dataset, settings.valid_fraction, seed);
        }
        for split in [self.split, tuned_on] {
            if dataset.split(split).is_empty() {
                let problem = format!("there is no `{split}` split");
                return Err(Error::data(&self.data.path, problem, "see `pinpoint data check`"));
            }
        }
        Ok(dataset)
    }

    /// Tells what of a dataset cannot be used.
    fn warn(&self, dataset: &Dataset, tell: Tell<'_>) -> Result<()> {
        for group in problem::group(&dataset.problems) {
            tell(EvaluateEvent::DatasetProblem(&group.to_string()))?;
        }
        let split = self.split;
        if dataset.split(split).iter().any(|sample| sample.truth.has_mask()) {
            return Ok(());
        }
        let text = format!("no image of the `{split}` split has a mask, so masks get no score");
        tell(EvaluateEvent::DatasetProblem(&text))?;
        if !self.request.decidability {
            let text = "`--decidability` scores maps without masks";
            tell(EvaluateEvent::Note(text))?;
        }
        Ok(())
    }

    /// The model to be scored; none for saved maps.
    fn predictor(&self) -> Result<Option<Predictor>> {
        if self.request.maps.is_some() {
            return Ok(None);
        }
        match self.run {
            Some(run) => Predictor::load(&run.dir, &device::cpu()).map(Some),
            None => Ok(self.request.method.as_deref().and_then(Predictor::untrained)),
        }
    }

    /// What decidability is measured by, if it is asked for.
    fn features(&self) -> Result<Option<Features>> {
        if !self.request.decidability {
            return Ok(None);
        }
        let own = self.run.map(|run| run.dir.best());
        let Some(weights) = self.request.weights.clone().or(own) else {
            return Err(unusable(
                "`--decidability` needs a network to take features from\nhint: give its weights by \
                 `--weights FILE`; `pinpoint weights` lists some",
            ));
        };
        Ok(Some(Features::open(&weights)?))
    }

    /// Refuses an evaluation that would run out of memory.
    fn require_memory(&self, task: &EvaluationTask<'_>) -> Result<()> {
        let splits = [self.split, tuning_split(self.request.threshold, self.split)];
        let samples = splits.iter().flat_map(|&split| task.dataset.split(split));
        let images: Vec<&Path> = samples.map(|sample| &*sample.image).collect();
        let preprocess = task.preprocess();
        let work = ImageWork {
            predictor: task.source.predictor(),
            preprocess: &preprocess,
            max_megapixels: task.data.max_megapixels,
            max_pixels: None,
            waiting: task.images_held(),
            crf: task.crf.map(Preset::params),
            refined: task.workers,
        };
        work.require_memory(&images, "scoring", "lower `--threads`, or shrink image and mask")
    }

    /// The threshold, found on another split first if the rule asks for it.
    fn threshold(&self, task: &EvaluationTask<'_>, tell: Tell<'_>) -> Result<Threshold> {
        let rule = self.request.threshold;
        if rule.ready().is_none() {
            let images = task.dataset.split(tuning_split(rule, self.split)).len();
            tell(EvaluateEvent::Tuning(images))?;
        }
        tune(rule, task, || tell(EvaluateEvent::Image))
    }

    /// Scores the split and writes the report.
    fn score(&self, task: &EvaluationTask<'_>, tell: Tell<'_>) -> Result<Report> {
        let EvaluateRequest { save_maps, report, .. } = self.request;
        let training = match self.run.map(|run| run.dir.records()) {
            Some(Ok(records)) => Some(Training::of(&records)),
            Some(Err(error)) => {
                let text = format!("the time of training is not known: {error}");
                tell(EvaluateEvent::Warning(&text))?;
                None
            }
            None => None,
        };
        let images = task.dataset.split(self.split).len();
        tell(EvaluateEvent::Scoring(images))?;
        let saved = |index| match save_maps {
            SaveMaps::None => false,
            SaveMaps::Shown => compare::is_shown(index, images),
            SaveMaps::All => true,
        };
        let mut folder = report.as_deref().map(Folder::create).transpose()?;
        let mut advance = || tell(EvaluateEvent::Image);
        let evaluation = match &mut folder {
            Some(folder) => folder.evaluate(task, saved, advance)?,
            None => evaluate::evaluate(task, |_| Ok(()), |()| advance())?,
        };
        if let Some(problem) = one_sided(evaluation.scores.truth_foreground) {
            tell(EvaluateEvent::Warning(problem))?;
        }
        let method = match task.source {
            MapSource::Predictor(predictor) => predictor.method().to_owned(),
            MapSource::Maps(folder) => format!("maps of {}", name_of(folder).display()),
        };
        let report = Report {
            format: Report::FORMAT,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            method,
            split: self.split,
            conditions: self.conditions(task),
            training,
            settings: self.run.map(|run| Box::new(run.config.clone())),
            inputs: self.run.map(|run| run.dir.inputs()).transpose()?.flatten(),
            evaluation,
        };
        if let Some(folder) = folder {
            folder.write(&report)?;
        }
        Ok(report)
    }

    fn conditions(&self, task: &EvaluationTask<'_>) -> Conditions {
        let Self { request, run, data, .. } = self;
        let text = |path: &Path| path.display().to_string();
        let weights = run.filter(|_| request.maps.is_none()).map(|run| text(&run.dir.best()));
        Conditions {
            data: text(&data.path),
            layout: task.dataset.layout,
            truth_rule: task.truth_rule(),
            mask_rule: task.source.predictor().map(Predictor::mask_rule),
            run: run.map(|run| text(run.dir.root())),
            weights,
            maps: request.maps.as_deref().map(text),
            backbone: run.map(|run| run.config.model.backbone.name().to_owned()),
            semantics: run.map(|run| run.config.semantics),
            seed: run.map(|run| run.config.seed),
            trained_in: run.and_then(|run| run.dir.adopted()),
            crf: request.crf,
            oracle_label: request.oracle_label,
            features: task.features.map(|features| features.name().to_owned()),
        }
    }
}

/// A trained run with its settings.
struct OpenRun {
    dir: RunDir,
    config: Config,
}

impl OpenRun {
    fn open(path: &Path) -> Result<Self> {
        let dir = RunDir::open(path)?;
        let config = dir.config()?;
        Ok(Self { dir, config })
    }

    /// The dataset that the run was trained on.
    fn data(&self) -> Result<DataSource> {
        let known = self.dir.inputs()?.and_then(|inputs| inputs.data);
        known.ok_or_else(|| {
            let problem = "the run does not say which dataset it was trained on";
            Error::run(self.dir.root(), problem, "give the dataset by `--data`")
        })
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
pub fn name_of(path: &Path) -> OsString {
    let whole = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    whole.file_name().unwrap_or("run".as_ref()).to_owned()
}
