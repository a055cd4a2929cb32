//! Training in one call: a dataset in, a run directory out.

use std::path::PathBuf;

use burn::tensor::Device;

use super::{memory::require_memory_of, workers};
use crate::{
    collective::Ranks,
    config::{Backbone, Config},
    data::{Dataset, split::cut_validation},
    device,
    error::{Error, Result},
    method::{Learner, with_method},
    report::training_curves,
    run::{DataSource, RunDir},
    train::{
        Ending, Event, FeatureImage, FeatureMaker, Observer, TrainingTask, fit, wanted_features,
    },
};

/// A request for a training.
#[derive(Debug, Clone)]
pub struct TrainRequest {
    /// The dataset to learn from; `None` if a run is resumed that has not recorded its dataset.
    pub data: Option<DataSource>,
    /// The run directory to write.
    pub out: PathBuf,
    /// All settings, see [`method::published`](crate::method::published).
    pub config: Config,
    /// Weights to start from, `.safetensors` or `.pth`.
    pub weights: Option<PathBuf>,
    /// A folder with features of the images, see [`FeatureMaker`]; `None` to compute them now.
    pub features: Option<PathBuf>,
    /// The device to compute on, such as `cpu`.
    pub device: String,
    /// Threads that decode and augment images; one per core by default.
    pub threads: Option<usize>,
    /// Whether the fingerprint of the images is of all their bytes, or of a sample of each file.
    pub hash_images: bool,
    /// Whether to resume the run in `out`; otherwise there must be none.
    pub resume: bool,
    /// The processes that train together.
    pub ranks: Ranks,
}

/// The result of a training.
#[derive(Debug)]
pub struct Trained {
    /// The run directory.
    pub run: RunDir,
    /// How it ended.
    pub ending: Ending,
}

impl TrainRequest {
    /// A new run with weights drawn at random, on the processor.
    pub fn new(data: impl Into<PathBuf>, out: impl Into<PathBuf>, config: Config) -> Self {
        Self {
            data: Some(DataSource::new(data)),
            out: out.into(),
            config,
            weights: None,
            features: None,
            device: "cpu".to_owned(),
            threads: None,
            hash_images: false,
            resume: false,
            ranks: Ranks::alone(),
        }
    }

    /// The backbone that will be trained or used; `None` if the method has none, or is unknown.
    pub fn backbone(&self) -> Option<Backbone> {
        fn has_backbone<L: Learner>(_: &L) -> bool {
            L::HAS_BACKBONE
        }
        let has = with_method!(self.config.method.as_str(), learner => has_backbone(&learner), probe => true);
        has.unwrap_or_default().then_some(self.config.model.backbone)
    }

    /// Resumes a run: settings, dataset and initial weights are as it has recorded them.
    ///
    /// `config.train.epochs` may be raised; other settings must stay.
    pub fn resume(out: impl Into<PathBuf>) -> Result<Self> {
        let out = out.into();
        let run = RunDir::started(&out)?;
        let inputs = run.inputs()?;
        // Once there is a checkpoint, the weights are in it.
        let weights = inputs.as_ref().and_then(|inputs| inputs.weights.as_ref());
        let weights = weights.and_then(|file| file.path.clone());
        let weights = weights.filter(|path| path.is_file() && !run.checkpoint().exists());
        let request = Self::new("", out, run.config()?);
        let data = inputs.and_then(|inputs| inputs.data);
        Ok(Self { data, weights, resume: true, ..request })
    }
}

/// Trains until the last epoch, or until the observer wants to stop.
///
/// The outcome depends on the settings, the seed and the data only: not on the number of threads,
/// nor on how often the run was interrupted.
pub fn train(request: &TrainRequest, observer: &mut dyn Observer) -> Result<Trained> {
    let TrainRequest { config, ranks, .. } = request;
    let (dataset, device, run) = ranks.agree(prepare(request, observer))?;
    let task = TrainingTask {
        config,
        dataset: &dataset,
        source: request.data.as_ref(),
        weights: request.weights.as_deref(),
        features: request.features.as_deref(),
        device,
        workers: workers(request.threads),
        every_byte: request.hash_images,
        ranks: *ranks,
    };
    ranks.agree(require_memory_of(&task))?;
    let ending = fit(&task, &run, &mut WithCurves { run: &run, observer })?;
    Ok(Trained { run, ending })
}

/// The images whose features a training of a probe needs, to compute them in several processes.
#[derive(Debug)]
pub struct FeatureWork {
    /// The images, in the order of the dataset.
    pub images: Vec<FeatureImage>,
    /// Most cells that are kept of each.
    pub cells: usize,
}

impl FeatureWork {
    /// The work for a request, which is checked as training does.
    pub fn of(request: &TrainRequest) -> Result<Self> {
        let (dataset, ..) = prepare(request, &mut ())?;
        let (images, cells) = wanted_features(&dataset, &request.config)?;
        Ok(Self { images, cells })
    }

    /// The maker of the features, in any process that has access to the same weights and images.
    pub fn maker(request: &TrainRequest, cells: usize) -> Result<FeatureMaker> {
        let TrainRequest { config, weights, hash_images, .. } = request;
        let device = device::open(&request.device)?;
        FeatureMaker::open(config, weights.as_deref(), cells, *hash_images, &device)
    }
}

/// Opens all that training needs, which may fail in one process and not in another.
fn prepare(
    request: &TrainRequest,
    observer: &mut dyn Observer,
) -> Result<(Dataset, Device, RunDir)> {
    let TrainRequest { config, out, ranks, .. } = request;
    config.check()?;
    let device = device::open(&request.device)?;
    let data = request.data.as_ref().ok_or_else(|| {
        let problem = "the run does not say which dataset it was started on";
        Error::run(out, problem, "give the dataset by `--data`")
    })?;
    let dataset = open_dataset(data, config)?;
    observer.observe(&Event::Opened(&dataset));
    let run = match request.resume {
        // One process writes the run.
        true if ranks.is_first() => RunDir::reopen(out, config)?,
        true => RunDir::started(out)?,
        false => RunDir::plan(out)?,
    };
    Ok((dataset, device, run))
}

/// Opens a dataset to learn from, with a validation split.
pub fn open_dataset(source: &DataSource, config: &Config) -> Result<Dataset> {
    let mut dataset = source.open(&config.data)?;
    dataset.require_usable()?;
    cut_validation(&mut dataset, config.data.valid_fraction, config.seed);
    if dataset.classes.len() < 2 {
        return Err(Error::data(
            &source.path,
            "there is one class only, so there is nothing to tell apart",
            "add images of at least one other class, such as images without the object",
        ));
    }
    Ok(dataset)
}

/// Draws the training curves after each epoch, and passes events on.
struct WithCurves<'a> {
    run: &'a RunDir,
    observer: &'a mut dyn Observer,
}

impl Observer for WithCurves<'_> {
    fn observe(&mut self, event: &Event<'_>) {
        self.observer.observe(event);
        if let Event::Epoch(_) = event {
            let records = self.run.records();
            let drawn = records.and_then(|found| self.run.write_curves(&training_curves(&found)));
            // Curves that cannot be written are no reason to stop training.
            if let Err(error) = drawn {
                self.observer.observe(&Event::Warning(&error.to_string()));
            }
        }
    }

    fn wants_to_stop(&self) -> bool {
        self.observer.wants_to_stop()
    }
}
