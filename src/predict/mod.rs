//! What a method says about an image.

mod trained;
mod trivial;

pub use self::{
    trained::Trained,
    trivial::{AllOnes, CentreGaussian, UNTRAINED, untrained},
};
pub use crate::method::{
    minmax::examine::{Examination, examine, examine_batch, most_probable},
    tiles::Tiling,
};
use image::RgbImage;

use crate::{
    config::PreprocessConfig,
    data::{loader::EvalImage, preprocess::EvalGeometry},
};

/// What a method says about one image, at the image's own resolution.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// Probability of each class, by the classifier; none for a method without one.
    pub classifier: Option<Vec<f32>>,
    /// Probability of each class, by the localizer; none for a method without one.
    pub localizer: Option<Vec<f32>>,
    /// Soft mask, row by row, 1 is foreground; one half is where the method itself would cut.
    pub map: Vec<f32>,
}

/// Something that says where the object is.
pub trait Method {
    /// What it is called, in reports and by `--method`.
    fn name(&self) -> &str;

    /// How images are prepared for it.
    fn preprocess(&self) -> &PreprocessConfig;

    /// Its answer for one image.
    ///
    /// A method whose mask depends on the class takes the class it is `told`,
    /// or else the one it finds most probable.
    fn answer(&self, image: &EvalImage, told: Option<usize>) -> Answer;

    /// Its answer for an image whose input is too large to be held; none if it must see it whole.
    fn answer_in_tiles(
        &self,
        _image: &RgbImage,
        _geometry: &EvalGeometry,
        _tiling: Tiling,
    ) -> Option<Answer> {
        None
    }

    /// How its soft mask comes about and is cut, for the protocol of a report.
    fn mask_rule(&self) -> String;
}
