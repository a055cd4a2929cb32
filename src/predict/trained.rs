//! Trained models of every method, opened from their weights.

use std::path::Path;

use burn::{module::Module as _, tensor::Device};

use super::{Inference, Tiling};
use crate::{
    config::Config,
    data::preprocess::Size,
    error::{Error, Result},
    method::{Learner, ModelOutput, probe::Probe, tiles::LargeImage, with_method},
    model::{
        layers::tensor,
        weights::{self, Arrays},
    },
};

/// The model of the method in the settings, with the weights of a file.
pub(super) fn open(
    path: &Path,
    arrays: Arrays,
    config: &Config,
    classes: usize,
    device: &Device,
) -> Result<Box<dyn Inference>> {
    with_method!(
        config.method.as_str(),
        learner => {
            let network = network(&learner, path, arrays, config, classes, device)?;
            let (config, device) = (config.clone(), device.clone());
            Box::new(TrainedNetwork { learner, network, config, device })
        },
        probe => Box::new(Probe::from_arrays(arrays, path, config, classes, device)?)
    )
}

fn network<L: Learner>(
    learner: &L,
    path: &Path,
    arrays: Arrays,
    config: &Config,
    classes: usize,
    device: &Device,
) -> Result<L::Network> {
    let (network, loaded) = weights::load(learner.blank(config, classes, device), path, arrays)?;
    if !loaded.missing.is_empty() {
        let problem = format!("weights of an incomplete network ({loaded})");
        return Err(Error::weights(path, problem, "give a run as `pinpoint train` wrote it"));
    }
    Ok(network.valid())
}

/// The network of a learner, with its settings and its device.
struct TrainedNetwork<L: Learner> {
    learner: L,
    network: L::Network,
    config: Config,
    device: Device,
}

impl<L: Learner + Send + Sync> Inference for TrainedNetwork<L> {
    fn run(&self, input: Vec<f32>, size: Size, class: Option<usize>) -> ModelOutput {
        let [height, width] = size.rows_columns();
        let input = tensor(input, [1, 3, height, width], &self.device);
        self.learner.localize(&self.network, input, class, &self.config)
    }

    fn run_tiled(&self, image: LargeImage<'_>, tiling: Tiling) -> Option<ModelOutput> {
        let Self { learner, network, config, device } = self;
        learner.localize_tiled(network, image, tiling, config, device)
    }

    fn mask_rule(&self) -> String {
        self.learner.mask_rule(&self.config)
    }
}

impl Inference for Probe {
    /// The mask is the same for every class, so that `_class` is not used.
    fn run(&self, input: Vec<f32>, size: Size, _class: Option<usize>) -> ModelOutput {
        self.localize(input, size.rows_columns())
    }

    fn run_tiled(&self, image: LargeImage<'_>, tiling: Tiling) -> Option<ModelOutput> {
        Some(self.localize_tiled(image, tiling))
    }

    fn mask_rule(&self) -> String {
        self.mask_rule()
    }
}
