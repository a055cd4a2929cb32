//! Features of the images that a probe learns from, computed or read from where they were kept.

use std::path::Path;

use burn::tensor::Device;

use super::{Event, Observer, TrainingTask, features::Stored, images_of};
use crate::{
    config::ProbeConfig,
    data::{Sample, loader::EvalImage},
    error::{Error, Result},
    method::probe::{ImageFeatures, Plan, StageMaps},
    model::resnet::Resnet,
};

/// Features of the images that are looked at.
pub(super) struct Features<'a> {
    pub(super) task: &'a TrainingTask<'a>,
    pub(super) plan: Plan,
    pub(super) samples: &'a [&'a Sample],
    pub(super) backbone: Resnet,
    /// Features that were made before; none if each image is passed through the backbone.
    pub(super) stored: Option<Stored>,
}

impl Features<'_> {
    /// Gives the features of every sample from the `first` on; whether it was not asked to stop.
    pub(super) fn each(
        &self,
        first: usize,
        observer: &mut dyn Observer,
        mut give: impl FnMut(ImageFeatures),
    ) -> Result<bool> {
        let Self { task, plan, samples, backbone, stored } = self;
        let (what, decoded) = match stored {
            Some(_) => ("reading features", &[][..]),
            None => ("computing features", &samples[first..]),
        };
        let paths = decoded.iter().map(|sample| sample.image.clone()).collect();
        let mut images = images_of(paths, task.config, task.workers);
        for (index, sample) in samples.iter().enumerate().skip(first) {
            if observer.wants_to_stop() {
                return Ok(false);
            }
            let (done, total) = (index - first, samples.len() - first);
            observer.observe(&Event::Working { what, done, total });
            give(match stored {
                Some(stored) => stored.read(index)?,
                None => {
                    let Some(image) = images.next_unless(|| observer.wants_to_stop()) else {
                        return Ok(false);
                    };
                    let (probe, device) = (&task.config.probe, &task.device);
                    features_of(backbone, image?, plan.cells, probe, device, &sample.image)?
                }
            });
        }
        Ok(true)
    }
}

/// Passes an image through the backbone, and keeps so many cells of it.
pub(super) fn features_of(
    backbone: &Resnet,
    image: EvalImage,
    cells: usize,
    config: &ProbeConfig,
    device: &Device,
    path: &Path,
) -> Result<ImageFeatures> {
    let EvalImage { input, geometry, .. } = image;
    let maps = StageMaps::of(backbone, input, geometry.padded.rows_columns(), config, device);
    let features = ImageFeatures::of(&maps, cells, config).ok_or_else(|| Error::Image {
        path: path.to_owned(),
        problem: "the features of the image are no numbers, or too large to be kept".to_owned(),
        remedy: "give weights that were trained on such images, as ImageNet's are".to_owned(),
    })?;
    maps.reuse();
    Ok(features)
}
