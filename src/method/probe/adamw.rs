//! Adam with decoupled weight decay, for heads of a few thousand weights.
//!
//! Loshchilov and Hutter, *Decoupled weight decay regularization*, 2019.

const BETA1: f32 = 0.9;
const BETA2: f32 = 0.999;
const EPSILON: f32 = 1e-8;

#[derive(Debug, Clone)]
pub(super) struct AdamW {
    learning_rate: f32,
    weight_decay: f32,
    steps: i32,
    /// Running mean of the gradient, and of its square, for each weight.
    moments: Vec<[f32; 2]>,
}

impl AdamW {
    pub(super) fn new(weights: usize, learning_rate: f32, weight_decay: f32) -> Self {
        Self { learning_rate, weight_decay, steps: 0, moments: vec![[0.0; 2]; weights] }
    }

    pub(super) fn update(&mut self, weights: &mut [f32], gradient: &[f32]) {
        self.steps += 1;
        let correction = |beta: f32| 1.0 - beta.powi(self.steps);
        let (first, second) = (correction(BETA1), correction(BETA2).sqrt());
        for ((weight, gradient), [mean, square]) in
            weights.iter_mut().zip(gradient).zip(&mut self.moments)
        {
            *mean = BETA1 * *mean + (1.0 - BETA1) * gradient;
            *square = BETA2 * *square + (1.0 - BETA2) * gradient * gradient;
            *weight -= self.learning_rate * self.weight_decay * *weight;
            *weight -= self.learning_rate / first * *mean / (square.sqrt() / second + EPSILON);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_step_is_the_rate_along_the_sign_and_decay_comes_on_top() {
        let mut weights = [1.0, -1.0];
        AdamW::new(2, 0.1, 0.5).update(&mut weights, &[3.0, -0.2]);
        // 1 − 0.1·0.5·1 − 0.1, and its mirror image.
        assert!(
            (weights[0] - 0.85).abs() < 1e-6 && (weights[1] + 0.85).abs() < 1e-6,
            "{weights:?}"
        );
    }

    #[test]
    fn a_bowl_is_descended_to_its_bottom() {
        let mut weights = [4.0];
        let mut optimizer = AdamW::new(1, 0.05, 0.0);
        for _ in 0..500 {
            let gradient = 2.0 * (weights[0] - 1.5);
            optimizer.update(&mut weights, &[gradient]);
        }
        assert!((weights[0] - 1.5).abs() < 1e-2, "{weights:?}");
    }
}
