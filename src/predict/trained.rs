//! A trained network, opened from its run.

use std::{fmt, path::Path};

use burn::{module::Module as _, tensor::Device};
use image::RgbImage;

use super::{Answer, Method, Tiling};
use crate::{
    config::{Config, PreprocessConfig, Refinement},
    data::{
        Dataset,
        loader::EvalImage,
        preprocess::{EvalGeometry, InputView, Normalizer},
    },
    error::{Error, Result},
    method::{self, Finding, Learner, Visitor, learner::input, probe::Probe, tiles::TiledFinding},
    model::weights::{self, Arrays, Noted},
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

    fn mask_rule(&self, config: &Config) -> String {
        let edges = match config.probe.refine {
            Refinement::None => "",
            Refinement::Edges => ", then snapped to edges of the colours",
        };
        format!(
            "odds of foreground, {} by the image's own discriminant and the rest by students, cut \
             where they fall into two heaps (β = {:.2}), between 1 : e and e : 1{edges}",
            config.probe.own_image,
            self.beta()
        )
    }
}

impl Trained {
    /// Opens the best weights of a run.
    pub fn open(run: &RunDir, device: &Device) -> Result<Self> {
        struct Open<'a> {
            path: &'a Path,
            arrays: Arrays,
            config: &'a Config,
            classes: usize,
            device: &'a Device,
        }
        impl Visitor for Open<'_> {
            type Output = Result<Box<dyn Network>>;
            fn visit<L: Learner + 'static>(self, learner: L) -> Self::Output {
                let Self { path, arrays, config, classes, device } = self;
                let network = learner.blank(config, classes, device);
                let (network, loaded) = weights::load(network, path, arrays)?;
                if !loaded.missing.is_empty() {
                    return Err(incomplete(path, &loaded));
                }
                Ok(Box::new(Opened { learner, network: network.valid() }))
            }
            fn visit_probe(self) -> Self::Output {
                let Self { path, arrays, config, classes, device } = self;
                Ok(Box::new(Probe::from_arrays(arrays, path, config, classes, device)?))
            }
        }
        let (config, path) = (run.config()?, run.best());
        let Noted { arrays, note, verified } = weights::read_with_note::<WeightsNote>(&path)?;
        run.require_settings(&config, &note)?;
        let classes = note.classes.len();
        let open = Open { path: &path, arrays, config: &config, classes, device };
        let network = method::with(&config.method, open)??;
        Ok(Self { classes: note.classes, config, device: device.clone(), network, verified })
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

fn incomplete(path: &Path, loaded: &weights::Loaded) -> Error {
    Error::Weights {
        path: path.to_owned(),
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
