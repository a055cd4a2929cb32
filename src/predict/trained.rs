//! A trained network, opened from its run.

use std::{fmt, path::PathBuf};

use burn::{module::Module as _, tensor::Device};
use image::RgbImage;

use super::{Answer, Method, Tiling};
use crate::{
    config::{Config, PreprocessConfig},
    data::{
        Dataset,
        loader::EvalImage,
        preprocess::{EvalGeometry, InputView, Normalizer},
    },
    error::{Error, Result},
    method::{self, Finding, Learner, Visitor, learner::input, probe::Probe, tiles::TiledFinding},
    model::weights::{self, Noted},
    run::{RunDir, WeightsNote},
};

/// A trained network of any method.
pub struct Trained {
    classes: Vec<String>,
    config: Config,
    device: Device,
    network: Box<dyn Network>,
    verified: bool,
}

/// A network with the method that knows what to ask it, whichever they are.
trait Network {
    fn find(&self, image: &EvalImage, told: Option<usize>, of: &Trained) -> Finding;
    fn find_in_tiles(
        &self,
        input: &InputView<'_>,
        tiling: Tiling,
        of: &Trained,
    ) -> Option<TiledFinding>;
    fn mask_rule(&self, config: &Config) -> String;
}

struct Opened<L: Learner> {
    learner: L,
    network: L::Network,
}

impl<L: Learner> Network for Opened<L> {
    fn find(&self, image: &EvalImage, told: Option<usize>, of: &Trained) -> Finding {
        self.learner.find(&self.network, input(image, &of.device), told, &of.config)
    }

    fn find_in_tiles(
        &self,
        input: &InputView<'_>,
        tiling: Tiling,
        of: &Trained,
    ) -> Option<TiledFinding> {
        self.learner.find_in_tiles(&self.network, input, tiling, &of.config, &of.device)
    }

    fn mask_rule(&self, config: &Config) -> String {
        self.learner.mask_rule(config)
    }
}

impl Network for Probe {
    fn find(&self, image: &EvalImage, _told: Option<usize>, of: &Trained) -> Finding {
        self.find(image, &of.config, &of.device)
    }

    fn find_in_tiles(
        &self,
        input: &InputView<'_>,
        tiling: Tiling,
        of: &Trained,
    ) -> Option<TiledFinding> {
        Some(self.find_in_tiles(input, tiling, &of.config, &of.device))
    }

    fn mask_rule(&self, _config: &Config) -> String {
        "odds of foreground, by students and by the image's own discriminant, cut where they fall \
         into two heaps, between 1 : e and e : 1"
            .to_owned()
    }
}

impl Trained {
    /// Opens the best weights of a run.
    pub fn open(run: &RunDir, device: &Device) -> Result<Self> {
        struct Open<'a>(&'a RunDir, Config, &'a Device);
        impl Visitor for Open<'_> {
            type Output = Result<Trained>;
            fn visit<L: Learner + 'static>(self, learner: L) -> Result<Trained> {
                let Self(run, config, device) = self;
                let path = run.best();
                let Noted { arrays, note, verified } =
                    weights::read_with_note::<WeightsNote>(&path)?;
                run.require_settings(&config, &note)?;
                let network = learner.blank(&config, note.classes.len(), device);
                let (network, loaded) = weights::load(network, &path, arrays)?;
                if !loaded.missing.is_empty() {
                    return Err(incomplete(path, &loaded));
                }
                let network = Box::new(Opened { learner, network: network.valid() });
                let (classes, device) = (note.classes, device.clone());
                Ok(Trained { classes, config, device, network, verified })
            }
            fn visit_probe(self) -> Result<Trained> {
                let Self(run, config, device) = self;
                let path = run.best();
                let Noted { arrays, note, verified } =
                    weights::read_with_note::<WeightsNote>(&path)?;
                let probe = Probe::from_arrays(arrays, &path, &config, note.classes.len(), device)?;
                let (network, device) = (Box::new(probe), device.clone());
                Ok(Trained { classes: note.classes, config, device, network, verified })
            }
        }
        let config = run.config()?;
        method::with(&config.method.clone(), Open(run, config, device))?
    }

    /// What the user should know about the weights.
    pub fn note(&self) -> Option<&'static str> {
        (!self.verified).then_some(
            "the weights are of an older version, without checksums: damage to them would go \
             unnoticed",
        )
    }

    /// The settings it was trained with.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The classes it tells apart, in the order of its probabilities.
    pub fn classes(&self) -> &[String] {
        &self.classes
    }

    /// Refuses a dataset whose classes are not those the network was trained to tell apart.
    pub fn require_classes(&self, dataset: &Dataset) -> Result<()> {
        if self.classes == dataset.classes {
            return Ok(());
        }
        Err(Error::Data {
            path: dataset.root.clone(),
            problem: format!(
                "the dataset's classes ({}) are not those of the run ({})",
                dataset.classes.join(", "),
                self.classes.join(", ")
            ),
            remedy: "score on data with the same class names, in the same order".to_owned(),
        })
    }
}

impl Method for Trained {
    fn name(&self) -> &str {
        &self.config.method
    }

    fn preprocess(&self) -> &PreprocessConfig {
        &self.config.preprocess
    }

    fn answer(&self, image: &EvalImage, told: Option<usize>) -> Answer {
        let Finding { classifier, localizer, mask } = self.network.find(image, told, self);
        Answer { classifier, localizer, map: image.geometry.restore(&mask) }
    }

    fn answer_in_tiles(
        &self,
        image: &RgbImage,
        geometry: &EvalGeometry,
        tiling: Tiling,
    ) -> Option<Answer> {
        let normalizer = Normalizer::new(self.config.preprocess.normalization);
        let input = geometry.view(image, &normalizer);
        let TiledFinding { classifier, localizer, mask } =
            self.network.find_in_tiles(&input, tiling, self)?;
        // An enlarged copy of the image is not needed any more, and the map takes room.
        drop(input);
        let map = geometry.restore_rows(|row, left, line| mask.fill(row, left, line));
        Some(Answer { classifier, localizer, map })
    }

    fn mask_rule(&self) -> String {
        self.network.mask_rule(&self.config)
    }
}

fn incomplete(path: PathBuf, loaded: &weights::Loaded) -> Error {
    Error::Weights {
        path,
        problem: format!("weights of an incomplete network ({loaded})"),
        remedy: "give a run as `pinpoint train` wrote it".to_owned(),
    }
}

impl fmt::Debug for Trained {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { classes, config, .. } = self;
        let mut debug = f.debug_struct("Trained");
        debug.field("classes", classes).field("config", config).finish_non_exhaustive()
    }
}
