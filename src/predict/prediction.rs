//! The prediction of one image.

use crate::{
    data::preprocess::Size,
    metrics::{Component, ScoreMap, boxes_at},
};

/// Class, pixel scores and mask of one image, refined, cut and with the name of the class.
///
/// Evaluation does not use it, but the [`ModelOutput`](crate::method::ModelOutput) that it is made
/// of, since it refines and cuts on other threads and at many thresholds.
#[derive(Debug, Clone, PartialEq)]
pub struct Prediction {
    /// Width and height of the image.
    pub size: Size,
    /// The index of the most probable class among the run's classes; `None` for a method that does
    /// not classify.
    pub class: Option<usize>,
    /// Its name.
    pub class_name: Option<String>,
    /// Probability of each class, by the classifier.
    pub probabilities: Option<Vec<f32>>,
    /// Probability of each class, by the localizer, if that is another network.
    pub localizer_probabilities: Option<Vec<f32>>,
    /// The score of each pixel, in `[0, 1]`, 1 is foreground: row by row, at the size of the image,
    /// after the CRF if one was asked for.
    pub scores: Vec<f32>,
    /// The threshold that the scores were cut at.
    pub threshold: f32,
    /// Which pixels are foreground: `score >= threshold`, row by row.
    pub mask: Vec<bool>,
}

impl Prediction {
    /// Probability of the most probable class.
    pub fn probability(&self) -> Option<f32> {
        self.probabilities.as_ref().zip(self.class).map(|(found, class)| found[class])
    }

    /// Share of the pixels that are foreground, from 0 to 1.
    pub fn foreground(&self) -> f64 {
        self.mask.iter().filter(|&&inside| inside).count() as f64 / self.mask.len() as f64
    }

    /// The connected regions of the mask, the largest first: box, area and mean score of each.
    pub fn regions(&self) -> Vec<Component> {
        let [height, width] = self.size.rows_columns();
        let scores = ScoreMap::new(width, height, &self.scores);
        scores.map(|scores| boxes_at(&scores, self.threshold)).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regions_and_foreground_are_those_of_the_mask() {
        let scores = vec![0.9, 0.1, 0.6, 0.7, 0.2, 0.8];
        let prediction = Prediction {
            size: Size { width: 3, height: 2 },
            class: Some(1),
            class_name: Some("cat".to_owned()),
            probabilities: Some(vec![0.25, 0.75]),
            localizer_probabilities: None,
            mask: scores.iter().map(|&score| score >= 0.5).collect(),
            scores,
            threshold: 0.5,
        };
        assert_eq!(prediction.probability(), Some(0.75));
        assert!((prediction.foreground() - 4.0 / 6.0).abs() < 1e-12);
        let regions = prediction.regions();
        let means: Vec<(u64, f64)> = regions.iter().map(|r| (r.pixels, r.score)).collect();
        // The left column, then the right one: two pixels each, the one further up and left first.
        assert_eq!(means.len(), 2);
        assert!((means[0].1 - 0.8).abs() < 1e-6 && (means[1].1 - 0.7).abs() < 1e-6, "{means:?}");
    }
}
