//! Trivial rules that need no training, to compare scores with.

use super::Inference;
use crate::{data::preprocess::Size, method::ModelOutput, metrics::from_centre};

/// The methods that need no training, as `--method` names them.
pub const UNTRAINED: &[&str] = &["all-ones", "centre-gaussian"];

/// The method of that name, if it is one of [`UNTRAINED`].
pub(super) fn untrained(name: &str) -> Option<Box<dyn Inference>> {
    Some(Box::new(match name {
        "all-ones" => Untrained {
            scores: |size| vec![1.0; size.area()],
            mask_rule: "every pixel is foreground",
        },
        "centre-gaussian" => Untrained {
            scores: bell,
            mask_rule: "ellipse about the centre, half as wide and as high as the image",
        },
        _ => return None,
    }))
}

/// A rule that depends on the size of an image only.
struct Untrained {
    scores: fn(Size) -> Vec<f32>,
    mask_rule: &'static str,
}

impl Inference for Untrained {
    fn run(&self, _: Vec<f32>, size: Size, _: Option<usize>) -> ModelOutput {
        ModelOutput { classifier: None, localizer: None, scores: (self.scores)(size) }
    }

    fn mask_rule(&self) -> String {
        self.mask_rule.to_owned()
    }
}

/// A Gaussian about the centre, its spread a quarter of each side, as
///
/// ```text
/// R = exp(−ln 2 · ((x/w)² + (y/h)²)),   w, h = ¼ of width and height
/// ```
///
/// so that the cut at one half is an ellipse that spans half of the image each way.
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
