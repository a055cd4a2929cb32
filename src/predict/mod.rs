//! Prediction: a run and an image in, class, mask and boxes out.
//!
//! ```text
//! image ─▶ geometry, input ─▶ Inference (whole, or tile by tile) ─▶ CRF ─▶ threshold ─▶ Prediction
//! ```
//!
//! [`Predictor`] is the one way in, for the command and for other programs.

mod prediction;
mod predictor;
mod trained;
mod trivial;

pub use self::{
    prediction::Prediction,
    predictor::{PredictOptions, Predictor},
    trivial::UNTRAINED,
};
pub use crate::method::tiles::Tiling;
use crate::{
    data::preprocess::EvalGeometry,
    method::{ModelOutput, tiles::LargeImage},
};

/// A model that is ready to be run on images: a trained network, or a trivial rule.
pub(crate) trait Inference: Send + Sync {
    /// Class and pixel scores of a preprocessed image, at the image's own size.
    ///
    /// `input` is `[3, H, W]` at the geometry's padded size. Where the mask depends on the class,
    /// it is of the `class` given, or else of the most probable one.
    fn run(&self, input: Vec<f32>, geometry: &EvalGeometry, class: Option<usize>) -> ModelOutput;

    /// The same for an image whose input is too large to be held; none if it must be seen whole.
    fn run_tiled(&self, _image: LargeImage<'_>, _tiling: Tiling) -> Option<ModelOutput> {
        None
    }

    /// How the soft mask comes about and is cut, for the protocol of a report.
    fn mask_rule(&self) -> String;
}
