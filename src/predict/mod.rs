//! Prediction: a run and an image in, class, mask and boxes out.
//!
//! ```text
//! image ─▶ geometry, input ─▶ Inference (whole, or tile by tile) ─▶ CRF ─▶ threshold ─▶ Prediction
//! ```
//!
//! [`Predictor`] is the public interface, for the command and for other programs.

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
    data::preprocess::Size,
    method::{ModelOutput, tiles::LargeImage},
};

/// A model that is ready to be run on images: a trained network, or a trivial rule.
pub(crate) trait Inference: Send + Sync {
    /// Class and pixel scores of an input `[3, H, W]`, at its size.
    ///
    /// Where the mask depends on the class, it is of the `class` given, or else of the most probable
    /// one.
    fn run(&self, input: Vec<f32>, size: Size, class: Option<usize>) -> ModelOutput;

    /// Class and pixel scores of an image whose input is too large to be held, at the size of the
    /// image; `None` if the model cannot work in tiles.
    fn run_tiled(&self, _image: LargeImage<'_>, _tiling: Tiling) -> Option<ModelOutput> {
        None
    }

    /// How the soft mask is computed and cut, for the protocol of a report.
    fn mask_rule(&self) -> String;
}
