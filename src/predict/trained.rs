//! Trained networks of every method, opened from their weights.

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

/// Builds the network of the settings' method with the weights of a file.
pub(super) fn open(
    path: &Path,
    arrays: Arrays,
    config: &Config,
    classes: usize,
    device: &Device,
) -> Result<Box<dyn Inference>> {
    let (config, device) = (config.clone(), device.clone());
    with_method!(
        config.method.clone().as_str(),
        learner => {
            let network = network(&learner, path, arrays, &config, classes, &device)?;
            Box::new(Trained { model: (learner, network), config, device })
        },
        probe => {
            let model = Probe::from_arrays(arrays, path, &config, classes, &device)?;
            Box::new(Trained { model, config, device })
        }
    )
}

/// Of a method that was trained batch by batch.
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
        return Err(Error::Weights {
            path: path.to_owned(),
            problem: format!("weights of an incomplete network ({loaded})"),
            remedy: "give a run as `pinpoint train` wrote it".to_owned(),
        });
    }
    Ok(network.valid())
}

/// A model, what it was trained with, and where it runs.
struct Trained<M> {
    model: M,
    config: Config,
    device: Device,
}

impl<L: Learner + Send + Sync> Inference for Trained<(L, L::Network)> {
    fn run(&self, input: Vec<f32>, size: Size, class: Option<usize>) -> ModelOutput {
        let Self { model: (learner, network), config, device } = self;
        let [height, width] = size.rows_columns();
        learner.localize(network, tensor(input, [1, 3, height, width], device), class, config)
    }

    fn run_tiled(&self, image: LargeImage<'_>, tiling: Tiling) -> Option<ModelOutput> {
        let Self { model: (learner, network), config, device } = self;
        learner.localize_tiled(network, image, tiling, config, device)
    }

    fn mask_rule(&self) -> String {
        self.model.0.mask_rule(&self.config)
    }
}

impl Inference for Trained<Probe> {
    /// The mask is of what tells any class from the others, so that no class need be given.
    fn run(&self, input: Vec<f32>, size: Size, _class: Option<usize>) -> ModelOutput {
        self.model.localize(input, size.rows_columns(), &self.config, &self.device)
    }

    fn run_tiled(&self, image: LargeImage<'_>, tiling: Tiling) -> Option<ModelOutput> {
        Some(self.model.localize_tiled(image, tiling, &self.config, &self.device))
    }

    fn mask_rule(&self) -> String {
        self.model.mask_rule(&self.config)
    }
}
