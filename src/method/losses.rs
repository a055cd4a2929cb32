//! Losses of scores: cross-entropy against the label, and against the uniform distribution.

use burn::tensor::{Int, Tensor, TensorData, activation::log_softmax};

use super::most_probable;
use crate::model::layers::values;

/// The prediction for one sample, compared with its label.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SamplePrediction {
    /// Whether the most probable class is the label.
    pub correct: bool,
    /// Probability of the most probable class.
    pub confidence: f32,
    /// Cross-entropy of the prediction against the label.
    pub loss: f32,
}

/// Cross-entropy of the prediction against the label, which is its negative log-likelihood.
///
/// Equations 3 and 7 of the paper, for each sample:
///
/// ```text
/// H(p, p̂) = −log p̂(y)
/// ```
///
/// It is zero exactly when the label has all the probability.
/// Shapes: `scores [B, C]` → `[B]`.
pub fn cross_entropy(scores: Tensor<2>, labels: &[usize]) -> Tensor<1> {
    let batch = labels.len();
    let labels: Vec<i64> = labels.iter().map(|&label| label as i64).collect();
    let labels: Tensor<2, Int> =
        Tensor::from_data(TensorData::new(labels, [batch, 1]), &scores.device());
    -log_softmax(scores, 1).gather(1, labels).reshape([batch])
}

/// Cross-entropy of the prediction against the uniform distribution q over `C` classes.
///
/// Equation 5 of the paper, for each sample:
///
/// ```text
/// H(q, p̂) = −(1/C) Σ_k log p̂(k)
/// ```
///
/// It is smallest, `ln C`, exactly when every class is equally likely.
/// Shapes: `scores [B, C]` → `[B]`.
pub fn cross_entropy_to_uniform(scores: Tensor<2>) -> Tensor<1> {
    let [batch, _] = scores.dims();
    -log_softmax(scores, 1).mean_dim(1).reshape([batch])
}

/// The prediction for each sample, compared with its label.
///
/// Shapes: `scores [B, C]`.
pub fn sample_predictions(scores: Tensor<2>, labels: &[usize]) -> Vec<SamplePrediction> {
    let [_, classes] = scores.dims();
    let log_probabilities = values(log_softmax(scores.inner(), 1));
    let predict = |(row, &label): (&[f32], &usize)| {
        let best = most_probable(row);
        SamplePrediction { correct: best == label, confidence: row[best].exp(), loss: -row[label] }
    };
    log_probabilities.chunks_exact(classes).zip(labels).map(predict).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{device, model::layers::tensor};

    fn scores(rows: &[f32], classes: usize) -> Tensor<2> {
        tensor(rows.to_vec(), [rows.len() / classes, classes], &device::cpu())
    }

    #[test]
    fn cross_entropy_is_minus_the_logarithm_of_the_label_s_probability() {
        // exp(scores) are 1, 3 and 4, 4: the labels have probabilities ¾ and ½.
        let scores = scores(&[0.0, 3.0_f32.ln(), 4.0_f32.ln(), 4.0_f32.ln()], 2);
        let losses = values(cross_entropy(scores, &[1, 0]));
        assert!((losses[0] + 0.75_f32.ln()).abs() < 1e-6, "{losses:?}");
        assert!((losses[1] - 2.0_f32.ln()).abs() < 1e-6, "{losses:?}");
    }

    #[test]
    fn cross_entropy_to_uniform_of_a_certain_classifier_is_large() {
        // Probabilities ¼ and ¾: ½ (ln 4 + ln 4/3).
        let loss = values(cross_entropy_to_uniform(scores(&[0.0, 3.0_f32.ln()], 2)))[0];
        assert!((loss - 0.5 * (4.0_f32.ln() + (4.0_f32 / 3.0).ln())).abs() < 1e-6, "{loss}");
    }

    #[test]
    fn sample_predictions_name_the_best_class_its_probability_and_the_label_s_loss() {
        let found = sample_predictions(scores(&[0.0, 3.0_f32.ln(), 3.0_f32.ln(), 0.0], 2), &[1, 1]);
        assert!(found[0].correct && !found[1].correct);
        assert!((found[1].confidence - 0.75).abs() < 1e-6);
        assert!((found[1].loss - 4.0_f32.ln()).abs() < 1e-6);
    }

    proptest! {
        #[test]
        fn cross_entropy_to_uniform_is_at_least_the_logarithm_of_the_number_of_classes(
            row in prop::collection::vec(-30.0_f32..30.0, 2..8),
        ) {
            let classes = row.len();
            let floor = (classes as f32).ln();
            prop_assert!(values(cross_entropy_to_uniform(scores(&row, classes)))[0] >= floor - 1e-5);
            let even = vec![row[0]; classes];
            prop_assert!((values(cross_entropy_to_uniform(scores(&even, classes)))[0] - floor).abs() < 1e-5);
        }
    }
}
