//! Answers that need no training, to see what scores are worth.

use super::{Answer, Method};
use crate::{config::PreprocessConfig, data::loader::EvalImage};

/// The trivial answer: everything is foreground.
#[derive(Debug)]
pub struct AllOnes {
    preprocess: PreprocessConfig,
}

impl Default for AllOnes {
    /// Images are left as they are: nothing looks at them.
    fn default() -> Self {
        let preprocess = PreprocessConfig {
            upscale_short_side: 0,
            eval_multiple: 1,
            ..PreprocessConfig::default()
        };
        Self { preprocess }
    }
}

impl Method for AllOnes {
    fn preprocess(&self) -> &PreprocessConfig {
        &self.preprocess
    }

    fn answer(&self, image: &EvalImage, _told: Option<usize>) -> Answer {
        Answer { classifier: None, localizer: None, map: vec![1.0; image.geometry.original.area()] }
    }
}
