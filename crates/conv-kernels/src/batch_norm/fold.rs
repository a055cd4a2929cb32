//! Batch norm of evaluation, folded into the convolution before it.

use super::BatchNorm;

/// Weights `[out_channels, …]` and bias of the one convolution that equals convolution + norm.
pub fn fold(norm: &BatchNorm<'_>, weights: &[f32]) -> (Vec<f32>, Vec<f32>) {
    let channels = norm.channels();
    assert_eq!(weights.len() % channels, 0, "weights do not match the batch norm");
    let scales = norm.scales();
    let per_output = weights.len() / channels;
    let scaled = weights
        .chunks_exact(per_output.max(1))
        .zip(&scales)
        .flat_map(|(weights, scale)| weights.iter().map(move |weight| weight * scale));
    let bias = (0..channels).map(|c| norm.beta[c] - norm.mean[c] * scales[c]);
    (scaled.collect(), bias.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folding_by_hand() {
        let norm = BatchNorm {
            mean: &[1.0, -1.0],
            variance: &[3.0, 15.0],
            gamma: &[2.0, 1.0],
            beta: &[0.5, 0.0],
            epsilon: 1.0,
        };
        let (weights, bias) = fold(&norm, &[1.0, 2.0, 4.0, 8.0]);
        assert_eq!(weights, [1.0, 2.0, 1.0, 2.0]);
        assert_eq!(bias, [-0.5, 0.25]);
    }
}
