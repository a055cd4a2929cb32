//! A model with its settings and classes, ready to predict images of any size.

use std::{fmt, path::Path};

use burn::tensor::Device;
use dense_crf::Params;
use image::RgbImage;

use super::{Inference, Prediction, Tiling, trained, trivial::untrained};
use crate::{
    config::{Config, PreprocessConfig},
    data::{
        Dataset,
        loader::EvalImage,
        preprocess::{EvalGeometry, Normalizer, Size, check_upscaled},
    },
    device,
    error::{Error, Result},
    method::{ModelOutput, most_probable, tiles::LargeImage},
    metrics::{ScoreMap, Threshold},
    model::weights::{self, Noted},
    refine::refine_with,
    run::{RunDir, WeightsNote},
};

/// A trained run, or a rule that needs no training, ready to predict images.
///
/// It may be shared by threads and called any number of times.
pub struct Predictor {
    config: Config,
    classes: Vec<String>,
    model: Box<dyn Inference>,
    /// Whether the checksums of the weights were verified; older runs have none.
    verified: bool,
}

/// Options of a prediction.
#[derive(Debug, Clone, Copy, Default)]
pub struct PredictOptions {
    /// Parameters of the dense CRF that refines the scores before they are cut, if any;
    /// [`Preset::params`](crate::refine::Preset::params) has published ones.
    pub crf: Option<Params>,
    /// The threshold of foreground; 0.5 by default.
    pub threshold: Threshold,
    /// How large images are cut into windows.
    pub tiling: Tiling,
    /// The class that the mask is of, where a method has one mask per class; the most probable one
    /// by default.
    pub class: Option<usize>,
}

impl Predictor {
    /// Opens the best weights of a run directory on a device, such as `"cpu"`.
    pub fn open(run: impl AsRef<Path>, device: &str) -> Result<Self> {
        Self::load(&RunDir::open(run.as_ref())?, &device::open(device)?)
    }

    /// The same for an opened run directory.
    pub fn load(run: &RunDir, device: &Device) -> Result<Self> {
        let (config, path) = (run.config()?, run.best());
        let Noted { arrays, note, verified } = weights::read_with_note::<WeightsNote>(&path)?;
        run.require_settings(&config, &note)?;
        let model = trained::open(&path, arrays, &config, note.classes.len(), device)?;
        Ok(Self { config, classes: note.classes, model, verified })
    }

    /// A rule that needs no training, one of [`UNTRAINED`](super::UNTRAINED).
    pub fn untrained(name: &str) -> Option<Self> {
        let model = untrained(name)?;
        let preprocess = PreprocessConfig::unchanged();
        let config = Config { method: name.to_owned(), preprocess, ..Config::default() };
        Some(Self { config, classes: Vec::new(), model, verified: true })
    }

    /// Predicts an image, in tiles if it is large.
    pub fn predict(&self, image: &RgbImage, options: &PredictOptions) -> Result<Prediction> {
        self.predict_named(image, Path::new("image in memory"), options)
    }

    /// The same; errors call the image by `name`.
    pub fn predict_named(
        &self,
        image: &RgbImage,
        name: &Path,
        options: &PredictOptions,
    ) -> Result<Prediction> {
        let PreprocessConfig { upscale_short_side, normalization, .. } = self.config.preprocess;
        let size = Size::of(image);
        self.check(name, size, options)?;
        check_upscaled(name, size, upscale_short_side, self.config.data.max_megapixels)?;
        let geometry = EvalGeometry::new(size, &self.config.preprocess);
        let normalizer = Normalizer::new(normalization);
        let output = if geometry.padded.area() <= options.tiling.max_pixels() {
            self.run(geometry.input(image, &normalizer), &geometry, options.class)
        } else {
            let large = LargeImage::new(image, geometry, &normalizer);
            self.model.run_tiled(large, options.tiling).ok_or_else(|| {
                Error::image(
                    name,
                    "this run's method must see images whole, and this one is too large",
                    "shrink it, or raise `--tile` if there is memory for it",
                )
            })?
        };
        self.finish(image, name, output, options)
    }

    /// Predicts an image that a loader has preprocessed by [`Self::preprocess`]; it is not cut into
    /// tiles.
    pub fn predict_prepared(
        &self,
        image: EvalImage,
        name: &Path,
        options: &PredictOptions,
    ) -> Result<(RgbImage, Prediction)> {
        let EvalImage { input, geometry, rgb, .. } = image;
        self.check(name, geometry.original, options)?;
        let output = self.run(input, &geometry, options.class);
        let prediction = self.finish(&rgb, name, output, options)?;
        Ok((rgb, prediction))
    }

    /// Class and pixel scores of a preprocessed image, neither refined nor cut.
    ///
    /// `class` is one of the model's classes, see [`PredictOptions::class`].
    pub fn run(
        &self,
        input: Vec<f32>,
        geometry: &EvalGeometry,
        class: Option<usize>,
    ) -> ModelOutput {
        let output = self.model.run(input, geometry.padded, class);
        ModelOutput { scores: geometry.restore(&output.scores), ..output }
    }

    /// Refines and cuts the output of the network.
    fn finish(
        &self,
        image: &RgbImage,
        name: &Path,
        output: ModelOutput,
        options: &PredictOptions,
    ) -> Result<Prediction> {
        let ModelOutput { classifier, localizer, mut scores } = output;
        let size = Size::of(image);
        let [height, width] = size.rows_columns();
        // CRF and threshold assume scores in `[0, 1]`.
        ScoreMap::new(width, height, &scores).map_err(|error| {
            let problem = format!("the network gives no usable scores ({error})");
            Error::image(name, problem, "train again")
        })?;
        if let Some(params) = &options.crf {
            scores = refine_with(image, &scores, params)?;
        }
        let threshold = options.threshold.at(&scores);
        let class = classifier.as_deref().map(most_probable);
        Ok(Prediction {
            size,
            class,
            class_name: class.map(|class| self.classes[class].clone()),
            probabilities: classifier,
            localizer_probabilities: localizer,
            mask: scores.iter().map(|&score| score >= threshold).collect(),
            scores,
            threshold,
        })
    }

    /// Refuses images without pixels, and classes that do not exist.
    fn check(&self, name: &Path, size: Size, options: &PredictOptions) -> Result<()> {
        if size.area() == 0 {
            return Err(Error::image(name, "the image has no pixels", "give another image"));
        }
        match options.class {
            Some(class) if class >= self.classes.len() => Err(Error::image(
                name,
                format!("there is no class {class}: this run has {}", self.classes.len()),
                "give the place of one of the run's classes, counted from 0",
            )),
            _ => Ok(()),
        }
    }

    /// The method's name, as `--method` gives it.
    pub fn method(&self) -> &str {
        &self.config.method
    }

    /// The settings of the run.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// How images are prepared for the network.
    pub fn preprocess(&self) -> &PreprocessConfig {
        &self.config.preprocess
    }

    /// The classes, in the order of the probabilities; none for an untrained rule.
    pub fn classes(&self) -> &[String] {
        &self.classes
    }

    /// How the soft mask is computed and cut, for the protocol of a report.
    pub fn mask_rule(&self) -> String {
        self.model.mask_rule()
    }

    /// What the user should know about the weights.
    pub fn note(&self) -> Option<&'static str> {
        (!self.verified).then_some(
            "the weights are of an older version, without checksums: damage to them would go \
             unnoticed",
        )
    }

    /// Numbers a dataset's classes as the run does; refuses, by name, those it was not trained on.
    pub fn number_classes(&self, dataset: &mut Dataset) -> Result<()> {
        // A rule that was never trained knows no classes.
        if self.classes.is_empty() { Ok(()) } else { dataset.number_classes_as(&self.classes) }
    }
}

impl fmt::Debug for Predictor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { config, classes, verified, .. } = self;
        let mut debug = f.debug_struct("Predictor");
        debug.field("config", config).field("classes", classes).field("verified", verified);
        debug.finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use image::Rgb;

    use super::*;
    use crate::metrics::ThresholdRule;

    #[test]
    fn a_predictor_may_be_shared_by_threads() {
        fn shareable<T: Send + Sync>() {}
        shareable::<Predictor>();
    }

    #[test]
    fn an_untrained_rule_predicts_a_mask_of_the_image_s_size_and_no_class() {
        let predictor = Predictor::untrained("centre-gaussian").unwrap();
        let image = RgbImage::from_pixel(40, 20, Rgb([9; 3]));
        let found = predictor.predict(&image, &PredictOptions::default()).unwrap();
        assert_eq!((found.scores.len(), found.mask.len()), (800, 800));
        assert_eq!((found.class, found.threshold), (None, 0.5));
        assert!(found.mask[10 * 40 + 20] && !found.mask[0]);
        assert_eq!(found.regions().len(), 1);

        let threshold = ThresholdRule::Percentile(90.0).ready().unwrap();
        let options = PredictOptions { threshold, ..PredictOptions::default() };
        let tenth = predictor.predict(&image, &options).unwrap();
        assert!((tenth.foreground() - 0.1).abs() < 0.02, "{}", tenth.foreground());
    }

    #[test]
    fn what_cannot_be_predicted_is_an_error() {
        let predictor = Predictor::untrained("all-ones").unwrap();
        let empty = RgbImage::new(0, 5);
        let message = predictor.predict(&empty, &PredictOptions::default()).unwrap_err();
        assert!(message.to_string().contains("no pixels"), "{message}");
        let options = PredictOptions { class: Some(0), ..PredictOptions::default() };
        let message = predictor.predict(&RgbImage::new(5, 5), &options).unwrap_err();
        assert!(message.to_string().contains("no class 0"), "{message}");
        let tiling = Tiling { tile: 4, halo: None };
        let options = PredictOptions { tiling, ..PredictOptions::default() };
        let message = predictor.predict(&RgbImage::new(5, 5), &options).unwrap_err();
        assert!(message.to_string().contains("must see images whole"), "{message}");
    }
}
