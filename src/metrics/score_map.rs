//! A checked score map, which all pixel metrics take.

use crate::data::mask::Mask;

/// A score in `[0, 1]` for each pixel, row by row; higher is more likely foreground.
#[derive(Debug, Clone, Copy)]
pub struct ScoreMap<'a> {
    width: usize,
    height: usize,
    scores: &'a [f32],
}

/// Why numbers are not a usable score map.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "each variant's message says what its fields are")]
pub enum ScoreMapError {
    /// There is not one number per pixel.
    #[error("score map has {found} values for {width}×{height} pixels")]
    Length { width: usize, height: usize, found: usize },

    /// There is nothing to score.
    #[error("score map has no pixels")]
    Empty,

    /// A number that is not in `[0, 1]`, or not finite.
    #[error("score map has the value {value} at column {x}, row {y}\nhint: {remedy}")]
    Value { value: f32, x: usize, y: usize, remedy: &'static str },

    /// The ground truth has another size.
    #[error(
        "score map is {}×{} pixels but the truth is {}×{}\n\
         hint: save score maps at the size of their image",
        .map.0, .map.1, .truth.0, .truth.1
    )]
    Size { map: (usize, usize), truth: (usize, usize) },
}

impl<'a> ScoreMap<'a> {
    /// Accepts `scores` if there is one per pixel and each is in `[0, 1]`.
    pub fn new(width: usize, height: usize, scores: &'a [f32]) -> Result<Self, ScoreMapError> {
        if width.checked_mul(height) != Some(scores.len()) {
            return Err(ScoreMapError::Length { width, height, found: scores.len() });
        }
        if scores.is_empty() {
            return Err(ScoreMapError::Empty);
        }
        // NaN is in no range, so this finds it too.
        let Some(at) = scores.iter().position(|score| !(0.0..=1.0).contains(score)) else {
            return Ok(Self { width, height, scores });
        };
        let remedy = match scores[at].is_finite() {
            true => "rescale the map to [0, 1]",
            false => "scores must be finite",
        };
        Err(ScoreMapError::Value { value: scores[at], x: at % width, y: at / width, remedy })
    }

    /// Width in pixels.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Height in pixels.
    pub fn height(&self) -> usize {
        self.height
    }

    /// The scores, row by row.
    pub fn scores(&self) -> &'a [f32] {
        self.scores
    }

    /// Rejects a truth that belongs to an image of another size.
    pub(super) fn check_truth(&self, truth: &Mask) -> Result<(), ScoreMapError> {
        let map = (self.width, self.height);
        let size = (truth.width as usize, truth.height as usize);
        if map == size { Ok(()) } else { Err(ScoreMapError::Size { map, truth: size }) }
    }

    /// Score and truth of every pixel whose truth is not to be ignored.
    pub(super) fn scored(&self, truth: &'a Mask) -> impl Iterator<Item = (f32, bool)> + 'a {
        let pairs = self.scores.iter().copied().zip(truth.foreground.iter().copied());
        pairs.enumerate().filter(|(at, _)| !truth.is_ignored(*at)).map(|(_, pair)| pair)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_score_must_be_a_number_from_zero_to_one() {
        assert!(ScoreMap::new(3, 1, &[0.0, -0.0, 1.0]).is_ok());
        let problem = |bad| ScoreMap::new(2, 2, &[0.5, 0.5, 0.5, bad]).unwrap_err().to_string();
        assert_eq!(
            problem(1.5),
            "score map has the value 1.5 at column 1, row 1\nhint: rescale the map to [0, 1]"
        );
        assert!(problem(-0.1).contains("[0, 1]"));
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            assert!(problem(bad).contains("finite"));
        }
    }

    #[test]
    fn there_must_be_one_score_per_pixel() {
        let short = ScoreMap::new(2, 2, &[0.5; 3]).unwrap_err();
        assert_eq!(short, ScoreMapError::Length { width: 2, height: 2, found: 3 });
        assert_eq!(ScoreMap::new(0, 5, &[]).unwrap_err(), ScoreMapError::Empty);
        assert!(ScoreMap::new(usize::MAX, 2, &[0.5]).is_err());
    }
}
