//! Batch norm, with the residual and the ReLU that follow it, forward and backward.
//!
//! Images are rows of channels: `[batch · height · width, channels]`. Every sum over rows runs in
//! blocks that depend on the shape alone, and blocks are added in their order.

mod backward;
mod fold;
mod moments;
mod normalize;

pub use self::{
    backward::{Activation, Sums, backward},
    fold::fold,
    moments::Moments,
    normalize::normalize,
};
pub(crate) use moments::SUMS;

/// A batch norm: `gamma · (x − mean) / √(variance + epsilon) + beta` for each channel.
///
/// `mean` and `variance` are those of the batch in training, running averages in evaluation.
#[derive(Debug, Clone, Copy)]
pub struct BatchNorm<'a> {
    /// Centre of each channel.
    pub mean: &'a [f32],
    /// Biased variance of each channel.
    pub variance: &'a [f32],
    /// Learnt scale.
    pub gamma: &'a [f32],
    /// Learnt offset.
    pub beta: &'a [f32],
    /// Added to the variance.
    pub epsilon: f32,
}

impl BatchNorm<'_> {
    /// Number of channels.
    pub fn channels(&self) -> usize {
        let channels = self.mean.len();
        let others = [self.variance.len(), self.gamma.len(), self.beta.len()];
        assert_eq!(others, [channels; 3], "parameters of a batch norm differ in length");
        assert_ne!(channels, 0, "a batch norm has no channels");
        channels
    }

    fn inverse_deviations(&self) -> Vec<f32> {
        let epsilon = f64::from(self.epsilon);
        let inverse = |&variance: &f32| (1.0 / (f64::from(variance) + epsilon).sqrt()) as f32;
        self.variance.iter().map(inverse).collect()
    }

    /// `gamma / √(variance + epsilon)`.
    fn scales(&self) -> Vec<f32> {
        let inverse = self.inverse_deviations();
        self.gamma.iter().zip(inverse).map(|(gamma, inverse)| gamma * inverse).collect()
    }

    /// `beta − mean · scale`.
    fn shifts(&self) -> Vec<f32> {
        let (&Self { mean, beta, .. }, scales) = (self, self.scales());
        let shift = |c: usize| f64::from(beta[c]) - f64::from(mean[c]) * f64::from(scales[c]);
        (0..scales.len()).map(|c| shift(c) as f32).collect()
    }
}

/// Floats of a block of rows: a fraction of a second-level cache.
const BLOCK_FLOATS: usize = 16 * 1024;

/// Floats of a block; asserts that `len` is whole rows.
fn block_len(len: usize, channels: usize) -> usize {
    assert_eq!(len % channels, 0, "values are not whole rows of channels");
    (BLOCK_FLOATS / channels).max(1) * channels
}
