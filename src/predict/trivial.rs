//! Answers that need no training, to see what scores are worth.

use super::{Answer, Method};
use crate::{config::PreprocessConfig, data::loader::EvalImage};

/// The trivial answer: everything is foreground.
#[derive(Debug, Default)]
pub struct AllOnes {
    preprocess: PreprocessConfig,
}

impl Method for AllOnes {
    fn preprocess(&self) -> &PreprocessConfig {
        &self.preprocess
    }

    fn answer(&self, image: &EvalImage, _told: Option<usize>) -> Answer {
        Answer { classifier: None, localizer: None, map: vec![1.0; image.geometry.original.area()] }
    }
}
