//! Batch norm of evaluation, folded into the convolution before it.

use rayon::prelude::*;

use super::BatchNorm;

/// Weights `[out_channels, …]` and bias of the one convolution that equals convolution + norm.
pub fn fold(norm: &BatchNorm<'_>, weights: &[f32]) -> (Vec<f32>, Vec<f32>) {
    let channels = norm.channels();
    assert_eq!(weights.len() % channels, 0, "weights do not match the batch norm");
    let scales = norm.scales();
    let per_output = (weights.len() / channels).max(1);
    let mut scaled = vec![0.0; weights.len()];
    let outputs = scaled.par_chunks_exact_mut(per_output).zip(weights.par_chunks_exact(per_output));
    outputs.zip(&scales).for_each(|((scaled, weights), scale)| {
        scaled.iter_mut().zip(weights).for_each(|(scaled, weight)| *scaled = weight * scale);
    });
    let bias = (0..channels).map(|c| norm.beta[c] - norm.mean[c] * scales[c]);
    (scaled, bias.collect())
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
