//! Rules that need no training, to see what scores are worth.

use super::Inference;
use crate::{
    data::preprocess::{EvalGeometry, Size},
    method::ModelOutput,
    metrics::from_centre,
};

/// The methods that need no training, as `--method` names them.
pub const UNTRAINED: &[&str] = &["all-ones", "centre-gaussian"];

/// The method of that name, if it is one of [`UNTRAINED`].
pub(super) fn untrained(name: &str) -> Option<Box<dyn Inference>> {
    match name {
        "all-ones" => Some(Box::new(AllOnes)),
        "centre-gaussian" => Some(Box::new(CentreGaussian)),
        _ => None,
    }
}

/// Every pixel is foreground.
struct AllOnes;

/// The object is in the middle of the image.
///
/// A Gaussian about the centre, its spread a quarter of each side, as
///
/// ```text
/// R = exp(−ln 2 · ((x/w)² + (y/h)²)),   w, h = ¼ of width and height
/// ```
///
/// so that the cut at one half is an ellipse that spans half of the image each way.
struct CentreGaussian;

impl Inference for AllOnes {
    fn run(&self, _: Vec<f32>, geometry: &EvalGeometry, _: Option<usize>) -> ModelOutput {
        without_class(vec![1.0; geometry.original.area()])
    }

    fn mask_rule(&self) -> String {
        "every pixel is foreground".to_owned()
    }
}

impl Inference for CentreGaussian {
    fn run(&self, _: Vec<f32>, geometry: &EvalGeometry, _: Option<usize>) -> ModelOutput {
        without_class(bell(geometry.original))
    }

    fn mask_rule(&self) -> String {
        "ellipse about the centre, half as wide and as high as the image".to_owned()
    }
}

fn without_class(scores: Vec<f32>) -> ModelOutput {
    ModelOutput { classifier: None, localizer: None, scores }
}

fn bell(Size { width, height }: Size) -> Vec<f32> {
    let (across, down) = (from_centre(width), from_centre(height));
    let value = |x: f64, y: f64| (-std::f64::consts::LN_2 * (x * x + y * y)).exp() as f32;
    down.iter().flat_map(|&y| across.iter().map(move |&x| value(x, y))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        data::mask::Mask,
        metrics::{EmptyRule, Trivial},
    };

    #[test]
    fn every_untrained_method_is_found_by_its_name() {
        assert!(UNTRAINED.iter().all(|name| untrained(name).is_some()));
        assert!(untrained("minmax").is_none());
    }

    #[test]
    fn the_bell_cut_at_one_half_is_the_ellipse_that_scores_are_compared_with() {
        for size in [(40, 20), (7, 31), (64, 64)] {
            let (width, height) = size;
            let map = bell(Size { width, height });
            let foreground = map.iter().map(|&value| value >= 0.5).collect();
            let truth = Mask { width, height, foreground, ignored: None };
            let trivial = Trivial::of(&truth, EmptyRule::default()).unwrap();
            assert_eq!(trivial.centre_ellipse.f1_foreground, Some(100.0), "{size:?}");
        }
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
