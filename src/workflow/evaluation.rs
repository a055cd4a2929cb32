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

/// A request for an evaluation.
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
    /// The dataset to score on; by default the one that the run was trained on.
    pub data: Option<DataSource>,
    /// What counts as foreground in a mask file; by default the rule of the run's settings or of
    /// the layout.
    pub mask_rule: Option<MaskRule>,
    /// Whether pictures in class folders are images even if they are named like masks.
    pub no_mask_names: bool,
    /// The split to score; the test split by default.
    pub split: Option<Split>,
    /// The CRF that refines maps before they are scored, if any.
    pub crf: Option<Preset>,
    /// How the threshold of maps is chosen.
    pub threshold: ThresholdRule,
    /// Whether the method is given the true class, as in the paper for its baselines.
    pub oracle_label: bool,
    /// Whether decidability is computed: how well the class is predicted from the features of the
    /// maps' foregrounds, and of their backgrounds.
    pub decidability: bool,
    /// Weights of the backbone for those features; those of the run by default.
    pub weights: Option<PathBuf>,
    /// The folder to write the report to, if any.
    pub report: Option<PathBuf>,
    /// Which score maps the report keeps.
    pub save_maps: SaveMaps,
    /// Number of threads that decode, and of threads that score; one per core by default.
    pub threads: Option<usize>,
}

/// Which score maps a report keeps, as `.npy`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SaveMaps {
    /// None.
    #[default]
    None,
    /// The maps of the images that comparisons show.
    Shown,
    /// All.
    All,
}

/// An event of an evaluation.
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
    /// Scores a run on the dataset that it was trained on, with default options.
    pub fn run(run: impl Into<PathBuf>) -> Self {
        Self { run: Some(run.into()), ..Self::default() }
    }

    /// Scores a method that needs no training.
    pub fn untrained(method: &str, data: impl Into<PathBuf>) -> Self {
        let data = Some(DataSource::new(data));
        Self { method: Some(method.to_owned()), data, ..Self::default() }
    }
}

/// Makes the evaluation, and writes its report if the request has a folder for it.
///
/// `observe` is told every event, and may break off between two images, which gives
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

/// Tells the observer an event; an error if that breaks off.
type Tell<'a> = &'a mut dyn FnMut(EvaluateEvent<'_>) -> Result<()>;

/// A request with its run opened and its dataset known.
struct Evaluating<'a> {
    request: &'a EvaluateRequest,
    split: Split,
    data: &'a DataSource,
    run: Option<&'a OpenRun>,
}

impl Evaluating<'_> {
    /// Opens the dataset, with a validation split if one is needed.
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
                let remedy = match split {
                    Split::Test => {
                        "put test images in a split of their own, such as `test/CLASS/`, or name \
                         other images by `--data` or `--split`"
                    }
                    Split::Train | Split::Valid => "see `pinpoint data check`",
                };
                return Err(Error::data(&self.data.path, problem, remedy));
            }
        }
        Ok(dataset)
    }

    /// Tells the problems of a dataset.
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

    /// The backbone that decidability is computed with, if it is asked for.
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

    /// The threshold, which is tuned on another split first if the rule needs that.
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

/// The problem with a ground truth of which this share is foreground, in percent, if there is one.
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

/// The last part of a path, `run` if it has none.
pub fn name_of(path: &Path) -> OsString {
    let whole = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    whole.file_name().unwrap_or("run".as_ref()).to_owned()
}
