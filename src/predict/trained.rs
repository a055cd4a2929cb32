//! Trained networks of every method, opened from their weights.

use std::path::Path;

use burn::{module::Module as _, tensor::Device};

use super::{Inference, Tiling};
use crate::{
    config::Config,
    data::preprocess::EvalGeometry,
    error::{Error, Result},
    method::{Learner, ModelOutput, probe::Probe, tiles::LargeImage, with_method},
    model::{
        layers::tensor,
        weights::{self, Arrays},
    },
};

/// Builds the network of the settings' method with the weights of a file.
pub(super) fn open(
    path: &Path,
    arrays: Arrays,
    config: &Config,
    classes: usize,
    device: &Device,
) -> Result<Box<dyn Inference>> {
    let trained = Settings { config: config.clone(), device: device.clone() };
    with_method!(
        config.method.as_str(),
        learner => Box::new(TrainedLearner::open(learner, path, arrays, classes, trained)?),
        probe => {
            let probe = Probe::from_arrays(arrays, path, config, classes, device)?;
            Box::new(TrainedProbe { probe, trained })
        }
    )
}

/// What a network was trained with, and where it runs.
struct Settings {
    config: Config,
    device: Device,
}

/// A network that was trained batch by batch.
struct TrainedLearner<L: Learner> {
    learner: L,
    network: L::Network,
    trained: Settings,
}

impl<L: Learner> TrainedLearner<L> {
    fn open(
        learner: L,
        path: &Path,
        arrays: Arrays,
        classes: usize,
        trained: Settings,
    ) -> Result<Self> {
        let network = learner.blank(&trained.config, classes, &trained.device);
        let (network, loaded) = weights::load(network, path, arrays)?;
        if !loaded.missing.is_empty() {
            return Err(Error::Weights {
                path: path.to_owned(),
                problem: format!("weights of an incomplete network ({loaded})"),
                remedy: "give a run as `pinpoint train` wrote it".to_owned(),
            });
        }
        Ok(Self { learner, network: network.valid(), trained })
    }
}

impl<L: Learner + Send + Sync> Inference for TrainedLearner<L> {
    fn run(&self, input: Vec<f32>, geometry: &EvalGeometry, class: Option<usize>) -> ModelOutput {
        let Settings { config, device } = &self.trained;
        let [height, width] = geometry.padded.rows_columns();
        let input = tensor(input, [1, 3, height, width], device);
        let output = self.learner.localize(&self.network, input, class, config);
        ModelOutput { scores: geometry.restore(&output.scores), ..output }
    }

    fn run_tiled(&self, image: LargeImage<'_>, tiling: Tiling) -> Option<ModelOutput> {
        let Settings { config, device } = &self.trained;
        self.learner.localize_tiled(&self.network, image, tiling, config, device)
    }

    fn mask_rule(&self) -> String {
        self.learner.mask_rule(&self.trained.config)
    }
}

struct TrainedProbe {
    probe: Probe,
    trained: Settings,
}

impl Inference for TrainedProbe {
    /// The mask is of what tells any class from the others, so that no class need be given.
    fn run(&self, input: Vec<f32>, geometry: &EvalGeometry, _class: Option<usize>) -> ModelOutput {
        let Settings { config, device } = &self.trained;
        let output = self.probe.localize(input, geometry.padded.rows_columns(), config, device);
        ModelOutput { scores: geometry.restore(&output.scores), ..output }
    }

    fn run_tiled(&self, image: LargeImage<'_>, tiling: Tiling) -> Option<ModelOutput> {
        let Settings { config, device } = &self.trained;
        Some(self.probe.localize_tiled(image, tiling, config, device))
    }

    fn mask_rule(&self) -> String {
        self.probe.mask_rule(&self.trained.config)
    }
}
