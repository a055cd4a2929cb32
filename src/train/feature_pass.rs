//! Features of the images that a probe learns from, computed or read from where they were kept.

use std::path::{Path, PathBuf};

use burn::tensor::Device;

use super::{Event, Observer, TrainingTask, features::Stored};
use crate::{
    config::{Config, ProbeConfig},
    data::{
        Sample,
        loader::{EvalImage, EvalImages},
    },
    error::{Error, Result},
    method::probe::{ImageFeatures, NotFinite, Plan, StageMaps},
    model::resnet::Resnet,
};

/// Features of the images that are looked at.
pub(super) struct Features<'a> {
    pub(super) task: &'a TrainingTask<'a>,
    pub(super) plan: Plan,
    pub(super) samples: &'a [&'a Sample],
    pub(super) source: Source<'a>,
}

/// Where features come from.
pub(super) enum Source<'a> {
    /// They were made before.
    Stored(&'a Stored),
    /// Each image is passed through the backbone.
    Computed(&'a Resnet),
}

/// Gives them, one after the other.
enum Reader<'a> {
    Stored(&'a Stored),
    Computed(&'a Resnet, EvalImages),
}

impl Features<'_> {
    /// Gives the features of every sample from the `first` on; whether it was not asked to stop.
    pub(super) fn each(
        &self,
        first: usize,
        observer: &mut dyn Observer,
        mut give: impl FnMut(ImageFeatures),
    ) -> Result<bool> {
        let Self { task, plan, samples, source } = self;
        let (what, mut reader) = match source {
            Source::Stored(stored) => ("reading features", Reader::Stored(stored)),
            Source::Computed(backbone) => {
                let images = images(task, &samples[first..]);
                ("computing features", Reader::Computed(backbone, images))
            }
        };
        for (index, sample) in samples.iter().enumerate().skip(first) {
            if observer.wants_to_stop() {
                return Ok(false);
            }
            let (done, total) = (index - first, samples.len() - first);
            observer.observe(&Event::Working { what, done, total });
            give(match &mut reader {
                Reader::Stored(stored) => stored.read(index)?,
                Reader::Computed(backbone, images) => {
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
    let features = ImageFeatures::of(&maps, cells, config).map_err(|NotFinite| Error::Image {
        path: path.to_owned(),
        problem: "the features of the image are no numbers, or too large to be kept".to_owned(),
        remedy: "give weights that were trained on such images, as ImageNet's are".to_owned(),
    })?;
    maps.reuse();
    Ok(features)
}

/// The images of some samples, as prediction sees them.
pub(super) fn images(task: &TrainingTask<'_>, samples: &[&Sample]) -> EvalImages {
    let paths = samples.iter().map(|sample| sample.image.clone()).collect();
    images_of(paths, task.config, task.workers)
}

/// Images as prediction sees them, decoded by so many threads.
pub(super) fn images_of(paths: Vec<PathBuf>, config: &Config, workers: usize) -> EvalImages {
    EvalImages::new(paths, config.preprocess.clone(), config.data.max_megapixels, workers)
}
