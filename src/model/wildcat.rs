//! Class maps and their pooling into scores.
//!
//! Durand et al., *WILDCAT: weakly supervised learning of deep convnets for image
//! classification, pointwise localization and segmentation*, 2017. A 1×1
//! convolution gives several maps per class; their mean is the class map. The
//! score of a class is the mean of its highest cells, optionally joined by its
//! lowest ones as evidence against it.

use std::iter;

use burn::{
    module::{Module, Param},
    tensor::{Device, Tensor},
};

use super::layers::{tensor, values};
use crate::config::PoolConfig;

/// From features to class maps.
#[derive(Module, Debug)]
pub struct Head {
    /// `[classes · maps_per_class, features, 1, 1]`; a class's maps are neighbours.
    pub weight: Param<Tensor<4>>,
    /// `[classes · maps_per_class]`
    pub bias: Param<Tensor<1>>,
    #[module(skip)]
    classes: usize,
}

impl Head {
    /// A head whose weights are yet to be drawn or loaded.
    pub fn new(features: usize, classes: usize, maps_per_class: usize, device: &Device) -> Self {
        let maps = classes * maps_per_class;
        Self {
            weight: Param::from_tensor(Tensor::zeros([maps, features, 1, 1], device)),
            bias: Param::from_tensor(Tensor::zeros([maps], device)),
            classes,
        }
    }

    /// Shapes: `[B, features, h, w]` → `[B, classes, h, w]`.
    pub fn maps(&self, features: Tensor<4>) -> Tensor<4> {
        let [batch, channels, height, width] = features.dims();
        // Features come as a view of `[B, h, w, features]`: these rows are read where they are.
        let pixels = features.permute([0, 2, 3, 1]).reshape([batch * height * width, channels]);
        // The mean of a class's maps is the map of its mean weights.
        let mean = |weights: Tensor<2>| {
            let [all, length] = weights.dims();
            let by_class = weights.reshape([self.classes, all / self.classes, length]);
            by_class.mean_dim(1).reshape([self.classes, length])
        };
        let weight = mean(self.weight.val().reshape([-1, channels as i32]));
        let bias = mean(self.bias.val().unsqueeze_dim(1));
        let maps = pixels.matmul(weight.transpose()) + bias.transpose();
        maps.reshape([batch, height, width, self.classes]).permute([0, 3, 1, 2])
    }
}

/// The score of each class: a weighted sum of its map.
///
/// Which cells count is a matter of sorting, through which no gradient flows;
/// so the weights are found in plain floats by `weights`, and the tensors only
/// see a product. `keep` is what dropout leaves of each sorted cell, `[B, C, n]`.
///
/// Shapes: `[B, C, h, w]` → `[B, C]`.
pub fn pool(maps: Tensor<4>, rule: &Pooling<'_>, keep: Option<&[f32]>) -> Tensor<2> {
    let [batch, classes, height, width] = maps.dims();
    let cells = height * width;
    let weights = weights(&values(maps.clone().inner()), cells, rule, keep);
    let weights = tensor(weights, [batch, classes, cells], &maps.device());
    (maps.flatten::<3>(2, 3) * weights).sum_dim(2).squeeze_dim(2)
}

/// Which cells of a map make the score.
#[derive(Debug, Clone, Copy)]
pub struct Pooling<'a> {
    /// How many cells, and what the lowest ones weigh.
    pub config: &'a PoolConfig,
    /// Whether the lowest cells count at all; the published code drops them.
    pub counts_evidence_against: bool,
}

/// The weight of each cell in its map's score.
///
/// ```text
/// score = 1/k⁺ Σ_top A                           without evidence against
/// score = ½ (1/k⁺ Σ_top A + α/k⁻ Σ_bottom A)     with weight α ≠ 0
/// ```
///
/// Shapes: `maps` and the result `[rows, cells]`, `keep` likewise but sorted.
fn weights(maps: &[f32], cells: usize, rule: &Pooling<'_>, keep: Option<&[f32]>) -> Vec<f32> {
    let PoolConfig { top, bottom, bottom_weight, .. } = *rule.config;
    let (top, bottom) = (top.of(cells), bottom.of(cells));
    let both = rule.counts_evidence_against && bottom_weight != 0.0;
    let share = if both { 0.5 } else { 1.0 };

    let mut weights = vec![0.0; maps.len()];
    let mut order: Vec<usize> = Vec::with_capacity(cells);
    for (row, map) in maps.chunks_exact(cells).enumerate() {
        order.clear();
        order.extend(0..cells);
        // Stable: equal cells keep their place, so that the result has one definition.
        order.sort_by(|&a, &b| map[b].total_cmp(&map[a]));
        let start = row * cells;
        let kept = |slot: usize| keep.map_or(1.0, |keep| keep[start + slot]);
        let lowest = both.then(|| (cells - bottom..cells, share * bottom_weight as f32));
        for (slots, share) in iter::once((0..top, share)).chain(lowest) {
            let count = slots.len() as f32;
            slots.for_each(|slot| weights[start + order[slot]] += share * kept(slot) / count);
        }
    }
    weights
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Cells;

    const MAP: [f32; 5] = [3.0, -1.0, 8.0, 2.0, -4.0];

    fn score(config: PoolConfig, reference: bool, keep: Option<&[f32]>) -> f32 {
        let rule = Pooling { config: &config, counts_evidence_against: !reference };
        let weights = weights(&MAP, MAP.len(), &rule, keep);
        weights.iter().zip(MAP).map(|(weight, cell)| weight * cell).sum()
    }

    fn two(bottom_weight: f64) -> PoolConfig {
        let (top, bottom) = (Cells::Count(2), Cells::Count(2));
        PoolConfig { top, bottom, bottom_weight, ..PoolConfig::default() }
    }

    #[test]
    fn the_score_is_the_mean_of_the_highest_cells() {
        assert_eq!(score(two(0.0), false, None), (8.0 + 3.0) / 2.0);
    }

    #[test]
    fn evidence_against_joins_with_its_weight_and_halves_the_sum() {
        let expected = (5.5 + 0.6 * (-4.0 - 1.0) / 2.0) / 2.0;
        assert!((score(two(0.6), false, None) - expected).abs() < 1e-6);
    }

    #[test]
    fn the_published_code_drops_the_evidence_against() {
        assert_eq!(score(two(0.6), true, None), 5.5);
    }

    #[test]
    fn dropout_acts_on_the_sorted_cells() {
        let keep = [0.0, 4.0, 4.0, 0.0, 0.0];
        assert_eq!(score(two(0.0), false, Some(&keep)), (0.0 * 8.0 + 4.0 * 3.0) / 2.0);
    }

    #[test]
    fn pooling_all_cells_is_their_mean_and_pooling_one_their_maximum() {
        let top = |top| PoolConfig { top, ..two(0.0) };
        assert!((score(top(Cells::Fraction(1.0)), false, None) - 1.6).abs() < 1e-6);
        assert_eq!(score(top(Cells::Count(1)), false, None), 8.0);
    }
}
