//! Score maps snapped to the edges of their image, by the fully connected CRF.

use dense_crf::{Params, refine_mask};
use image::RgbImage;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// Published parameters of the CRF, named after the images they were tuned for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Preset {
    /// Stained tissue.
    Glas,
    /// Photographs: birds and flowers.
    Natural,
}

impl Preset {
    /// The parameters of the preset.
    pub fn params(self) -> Params {
        match self {
            Self::Glas => Params::glas(),
            Self::Natural => Params::natural(),
        }
    }

    /// The name of the preset in settings and flags.
    pub fn name(self) -> &'static str {
        match self {
            Self::Glas => "glas",
            Self::Natural => "natural",
        }
    }
}

/// Refines a map of foreground probabilities, row by row and in `[0, 1]`; the result has the same
/// form.
///
/// The CRF has two labels, foreground and background. Fails if the map has not the size of the
/// image, or values outside of `[0, 1]`.
pub fn refine(image: &RgbImage, map: &[f32], preset: Preset) -> Result<Vec<f32>> {
    refine_with(image, map, &preset.params())
}

/// The same with any parameters.
pub fn refine_with(image: &RgbImage, map: &[f32], params: &Params) -> Result<Vec<f32>> {
    let (width, height) = (image.width() as usize, image.height() as usize);
    let mut refined =
        refine_mask(image.as_raw(), width, height, map, params).map_err(Error::Refine)?;
    // Rounding may leave a probability slightly out of range.
    refined.iter_mut().for_each(|score| *score = score.clamp(0.0, 1.0));
    Ok(refined)
}

#[cfg(test)]
mod tests {
    use image::Rgb;

    use super::*;

    /// Dark on the left, bright on the right.
    fn halves() -> RgbImage {
        RgbImage::from_fn(8, 4, |x, _| Rgb(if x < 4 { [20; 3] } else { [230; 3] }))
    }

    #[test]
    fn a_doubtful_pixel_joins_its_own_side_with_either_preset() {
        let mut map: Vec<f32> = (0..32).map(|i| if i % 8 < 4 { 0.2 } else { 0.8 }).collect();
        map[6] = 0.4;
        for preset in [Preset::Glas, Preset::Natural] {
            let refined = refine(&halves(), &map, preset).unwrap();
            assert_eq!(refined.len(), 32);
            assert!(refined[6] > 0.5 && refined[1] < 0.2, "{preset:?}: {refined:?}");
        }
    }

    #[test]
    fn a_map_of_another_size_or_without_numbers_is_refused() {
        for map in [vec![0.5; 31], vec![f32::NAN; 32], vec![1.5; 32]] {
            let error = refine(&halves(), &map, Preset::Glas).unwrap_err();
            assert!(matches!(error, Error::Refine(_)), "{error}");
        }
    }

    #[test]
    fn presets_are_written_down_by_the_name_they_are_asked_for() {
        for preset in [Preset::Glas, Preset::Natural] {
            assert_eq!(serde_json::to_value(preset).unwrap(), preset.name());
        }
    }
}
