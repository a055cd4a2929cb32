//! Answers that need no training, to see what scores are worth.

use super::{Answer, Method};
use crate::{
    config::PreprocessConfig,
    data::{loader::EvalImage, preprocess::Size},
};

/// The methods that need no training, as `--method` names them.
pub const UNTRAINED: &[&str] = &["all-ones", "centre-gaussian"];

/// The method of that name, if it is one of [`UNTRAINED`].
pub fn untrained(name: &str) -> Option<Box<dyn Method>> {
    match name {
        "all-ones" => Some(Box::new(AllOnes::default())),
        "centre-gaussian" => Some(Box::new(CentreGaussian::default())),
        _ => None,
    }
}

/// The trivial answer: everything is foreground.
#[derive(Debug)]
pub struct AllOnes {
    preprocess: PreprocessConfig,
}

impl Default for AllOnes {
    fn default() -> Self {
        Self { preprocess: untouched() }
    }
}

/// The photographer's answer: what is meant is in the middle.
///
/// A Gaussian about the centre, its spread a quarter of each side, as
///
/// ```text
/// R = exp(−ln 2 · ((x/w)² + (y/h)²)),   w, h = ¼ of width and height
/// ```
///
/// so that the cut at one half is an ellipse that spans half of the image each way.
#[derive(Debug)]
pub struct CentreGaussian {
    preprocess: PreprocessConfig,
}

impl Default for CentreGaussian {
    fn default() -> Self {
        Self { preprocess: untouched() }
    }
}

/// Leaves images as they are: nothing looks at them.
fn untouched() -> PreprocessConfig {
    PreprocessConfig {
        upscale_short_side: 0,
        shrink_short_side: 0,
        eval_multiple: 1,
        ..PreprocessConfig::default()
    }
}

impl Method for AllOnes {
    fn name(&self) -> &str {
        "all-ones"
    }

    fn preprocess(&self) -> &PreprocessConfig {
        &self.preprocess
    }

    fn answer(&self, image: &EvalImage, _told: Option<usize>) -> Answer {
        Answer { classifier: None, localizer: None, map: vec![1.0; image.geometry.original.area()] }
    }

    fn mask_rule(&self) -> String {
        "every pixel is foreground".to_owned()
    }
}

impl Method for CentreGaussian {
    fn name(&self) -> &str {
        "centre-gaussian"
    }

    fn preprocess(&self) -> &PreprocessConfig {
        &self.preprocess
    }

    fn answer(&self, image: &EvalImage, _told: Option<usize>) -> Answer {
        Answer { classifier: None, localizer: None, map: bell(image.geometry.original) }
    }

    fn mask_rule(&self) -> String {
        "ellipse about the centre, half as wide and as high as the image".to_owned()
    }
}

fn bell(Size { width, height }: Size) -> Vec<f32> {
    // Distances of pixels' centres from the middle, in quarters of the side.
    let distances = |side: u32| -> Vec<f64> {
        let middle = f64::from(side) / 2.0;
        (0..side).map(|i| (f64::from(i) + 0.5 - middle) / (middle / 2.0)).collect()
    };
    let (across, down) = (distances(width), distances(height));
    let value = |x: f64, y: f64| (-std::f64::consts::LN_2 * (x * x + y * y)).exp() as f32;
    down.iter().flat_map(|&y| across.iter().map(move |&x| value(x, y))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_untrained_method_answers_to_its_name() {
        for name in UNTRAINED {
            assert_eq!(untrained(name).unwrap().name(), *name);
        }
        assert!(untrained("minmax").is_none());
    }

    #[test]
    fn the_bell_covers_an_ellipse_half_as_wide_and_high_as_the_image() {
        let map = bell(Size { width: 400, height: 200 });
        let share = map.iter().filter(|&&value| value >= 0.5).count() as f64 / map.len() as f64;
        // π/16 of the image.
        assert!((share - std::f64::consts::PI / 16.0).abs() < 1e-3, "{share}");
        let row = &map[100 * 400..101 * 400];
        assert!(row[98] < 0.5 && row[102] > 0.5 && row[297] > 0.5 && row[301] < 0.5);
    }
}
