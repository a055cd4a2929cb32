//! The mask head: a mask through which a classifier predicts the class.
//!
//! ```text
//! p⁺ = softmax(C a⁺ + c)
//! loss = −ln p⁺_y − 2s [π ln S + (1 − π) ln(1 − S)]
//! ```
//!
//! The classifier is given the image through the mask only, so that the mask moves to where the
//! class is visible.

use super::{
    adamw::AdamW,
    cells::LabelledCells,
    pooled::{LinearMask, MaskTraining, PooledGradient, size_term},
    vector::{add_scaled, dot, softmax},
};
use crate::rng::{Purpose, Stream};

/// A linear classifier of the pooled foreground.
#[derive(Debug, Clone)]
struct Classifier {
    /// `[classes, dimensions]`, and then one bias per class.
    weights: Vec<f32>,
    dimensions: usize,
}

impl Classifier {
    fn random(dimensions: usize, classes: usize, stream: &mut Stream) -> Self {
        let bound = 1.0 / (dimensions as f64).sqrt();
        let weights =
            (0..classes * (dimensions + 1)).map(|_| stream.between(-bound, bound) as f32).collect();
        Self { weights, dimensions }
    }

    fn probabilities(&self, features: &[f32]) -> Vec<f32> {
        let classes = self.weights.len() / (self.dimensions + 1);
        let (rows, biases) = self.weights.split_at(classes * self.dimensions);
        let rows = rows.chunks_exact(self.dimensions);
        let mut scores: Vec<f32> =
            rows.zip(biases).map(|(row, bias)| dot(row, features) + bias).collect();
        softmax(&mut scores);
        scores
    }

    /// Adds the gradient of `scale · −ln p_label` by the weights to `sum`; gives that by the
    /// features.
    fn backward(
        &self,
        features: &[f32],
        mut probabilities: Vec<f32>,
        label: usize,
        scale: f32,
        sum: &mut [f32],
    ) -> Vec<f32> {
        let classes = probabilities.len();
        probabilities[label] -= 1.0;
        let (row_sums, bias_sums) = sum.split_at_mut(classes * self.dimensions);
        let mut by_features = vec![0.0; self.dimensions];
        for (class, by_score) in probabilities.iter().map(|slope| scale * slope).enumerate() {
            let row = class * self.dimensions..(class + 1) * self.dimensions;
            add_scaled(&mut row_sums[row.clone()], by_score, features);
            add_scaled(&mut by_features, by_score, &self.weights[row]);
            bias_sums[class] += by_score;
        }
        by_features
    }
}

pub(super) fn train(
    data: &LabelledCells,
    training: &MaskTraining,
    seed: u64,
    index: u64,
) -> LinearMask {
    let mut stream = Stream::new(seed, Purpose::Init, 0, index);
    let mask = LinearMask::random(data.dimensions, 0.01, &mut stream);
    let mut classifier = Classifier::random(data.dimensions, data.classes, &mut stream);
    let mut optimizer =
        AdamW::new(classifier.weights.len(), training.learning_rate, training.weight_decay);
    mask.trained(data, training, stream, |pooled, labels| {
        let scale = 1.0 / pooled.len() as f32;
        let mut by_classifier = vec![0.0; classifier.weights.len()];
        let slopes = pooled.iter().zip(labels).map(|(pooled, &label)| {
            let seen = &pooled.foreground;
            let probabilities = classifier.probabilities(seen);
            let foreground =
                classifier.backward(seen, probabilities, label, scale, &mut by_classifier);
            let (_, slope) = size_term(pooled.area(), training.expected_area, training.size_weight);
            let background = vec![0.0; data.dimensions];
            PooledGradient { foreground, background, area: scale * slope }
        });
        let slopes = slopes.collect();
        optimizer.update(&mut classifier.weights, &by_classifier);
        slopes
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::method::probe::cells::tests::half_and_half;

    #[test]
    fn the_mask_turns_to_where_the_class_is() {
        let data = half_and_half(3, 8, 6);
        let training = MaskTraining {
            steps: 200,
            images: 12,
            cells: 30,
            learning_rate: 5e-3,
            weight_decay: 1e-2,
            size_weight: 0.2,
            expected_area: 0.5,
        };
        let head = train(&data, &training, 1, 0);
        let scores = head.scores(&data.read(0));
        let mean = |half: &[f32]| half.iter().sum::<f32>() / half.len() as f32;
        assert!(mean(&scores[..20]) > mean(&scores[20..]) + 0.5, "{scores:?}");
        assert_eq!(train(&data, &training, 1, 0), head, "the same seed gives the same head");
    }

    #[test]
    fn the_classifier_s_gradient_is_that_of_finite_differences() {
        let mut stream = Stream::new(4, Purpose::Init, 0, 0);
        let classifier = Classifier::random(3, 4, &mut stream);
        let features = [0.3, -0.7, 1.2];
        let loss =
            |classifier: &Classifier, features: &[f32]| -classifier.probabilities(features)[2].ln();
        let mut by_weights = vec![0.0; classifier.weights.len()];
        let probabilities = classifier.probabilities(&features);
        let by_features = classifier.backward(&features, probabilities, 2, 1.0, &mut by_weights);
        let step = 1e-2;
        for (index, found) in by_weights.iter().enumerate() {
            let moved = |by: f32| {
                let mut moved = classifier.clone();
                moved.weights[index] += by;
                loss(&moved, &features)
            };
            let expected = (moved(step) - moved(-step)) / (2.0 * step);
            assert!((found - expected).abs() < 1e-3, "{index}: {found} {expected}");
        }
        for (index, found) in by_features.iter().enumerate() {
            let moved = |by: f32| {
                let mut moved = features;
                moved[index] += by;
                loss(&classifier, &moved)
            };
            let expected = (moved(step) - moved(-step)) / (2.0 * step);
            assert!((found - expected).abs() < 1e-3, "{index}: {found} {expected}");
        }
    }
}
