//! A trained network, opened from its run.

use burn::{module::Module as _, tensor::Device};
use image::RgbImage;

use super::{
    Answer, Examination, Method, Tiling, examine,
    tiles::{TiledExamination, examine_in_tiles},
};
use crate::{
    config::{Config, PreprocessConfig},
    data::{
        Dataset,
        loader::EvalImage,
        preprocess::{EvalGeometry, Normalizer, Size},
    },
    error::{Error, Result},
    model::{Model, weights},
    train::run::{RunDir, WeightsNote},
};

/// A trained network.
#[derive(Debug)]
pub struct Trained {
    classes: Vec<String>,
    config: Config,
    model: Model,
    device: Device,
}

impl Trained {
    /// Opens the best weights of a run.
    pub fn open(run: &RunDir, device: &Device) -> Result<Self> {
        let config = run.config()?;
        let path = run.best();
        let (arrays, note) = weights::read_with_note::<WeightsNote>(&path)?;
        let model = Model::blank(&config, note.classes.len(), device);
        let (model, report) = weights::load(model, &path, &arrays)?;
        if !report.missing.is_empty() {
            return Err(Error::Weights {
                problem: format!("weights of an incomplete network ({report})"),
                remedy: "give a run that `pinpoint train` finished at least an epoch of".to_owned(),
                path,
            });
        }
        Ok(Self { classes: note.classes, config, model: model.valid(), device: device.clone() })
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
    fn preprocess(&self) -> &PreprocessConfig {
        &self.config.preprocess
    }

    /// The mask weighs every class's map by its probability, so it needs to be told nothing.
    fn answer(&self, image: &EvalImage, _told: Option<usize>) -> Answer {
        let Size { width, height } = image.geometry.padded;
        let size = [height as usize, width as usize];
        let Examination { classifier, localizer, mask } =
            examine(&self.model, &self.config, image.input.clone(), size, &self.device);
        Answer {
            classifier: Some(classifier),
            localizer: Some(localizer),
            map: image.geometry.restore(&mask),
        }
    }

    fn answer_in_tiles(
        &self,
        image: &RgbImage,
        geometry: &EvalGeometry,
        tiling: Tiling,
    ) -> Option<Answer> {
        let normalizer = Normalizer::new(self.config.preprocess.normalization);
        let input = geometry.view(image, &normalizer);
        let TiledExamination { classifier, localizer, mask } =
            examine_in_tiles(&self.model, &self.config, &input, tiling, &self.device);
        // An enlarged copy of the image is not needed any more, and the map takes room.
        drop(input);
        let map = geometry.restore_rows(|row, left, line| mask.fill(row, left, line));
        Some(Answer { classifier: Some(classifier), localizer: Some(localizer), map })
    }
}
