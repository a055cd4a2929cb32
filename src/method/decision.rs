//! From maps to the soft mask of a baseline.

use burn::tensor::{Tensor, activation::sigmoid};

use crate::{
    config::{Evidence, MaskConfig},
    model::mask::{MaskEquation, enlarge, soft_mask},
};

/// Where the highest class map is the one of `class`.
///
/// The published decision is `argmax_j A_j = class` for each pixel; as a soft mask
///
/// ```text
/// R = sigmoid(A_class − max_{j ≠ class} A_j)
/// ```
///
/// which is at least ½ exactly there, and the per-pixel softmax if there are two
/// classes. Shapes: `maps [1, C, h, w]` → `[1, 1, H, W]`.
pub fn argmax(
    maps: &Tensor<4>,
    class: usize,
    size: [usize; 2],
    stride: usize,
    config: &MaskConfig,
) -> Tensor<4> {
    let [_, classes, _, _] = maps.dims();
    // One class at a time: 200 of them at the size of an image would fill the memory.
    let map = |class| enlarge(maps.clone().slice_dim(1, class..class + 1), size, stride, config);
    let others = (0..classes).filter(|&other| other != class).map(map);
    match others.reduce(Tensor::max_pair) {
        Some(others) => sigmoid(map(class) - others),
        None => Tensor::ones([1, 1, size[0], size[1]], &maps.device()),
    }
}

/// Where a single map is above the threshold, once it is brought to `[0, 1]`.
///
/// As a soft mask it is what our method makes of its evidence, §3 of `docs/method.md`.
/// Shapes: `[1, 1, h, w]` → `[1, 1, H, W]`.
pub fn min_max(map: Tensor<4>, size: [usize; 2], stride: usize, config: &MaskConfig) -> Tensor<4> {
    let certain = Tensor::zeros([1, 1], &map.device());
    let rule = MaskEquation { config, evidence: Evidence::Weighted, stride, batch_wide: false };
    soft_mask(certain, map, size, &rule)
}

/// What [`min_max`] does, in words.
pub fn min_max_rule(config: &MaskConfig) -> String {
    format!("map of the class, brought to [0, 1], cut at {}", config.threshold)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        config::Alignment,
        device,
        model::layers::{tensor, values},
    };

    fn maps(classes: usize, cells: &[f32]) -> Tensor<4> {
        let width = cells.len() / classes;
        tensor(cells.to_vec(), [1, classes, 1, width], &device::cpu())
    }

    fn foreground(mask: Tensor<4>) -> Vec<bool> {
        values(mask).iter().map(|&value| value >= 0.5).collect()
    }

    #[test]
    fn a_pixel_is_foreground_exactly_where_its_class_has_the_highest_map() {
        let maps = maps(3, &[1.0, 0.0, 2.0, 0.0, 3.0, 2.0, -1.0, -1.0, 9.0]);
        let mask = |class| foreground(argmax(&maps, class, [1, 3], 1, &MaskConfig::default()));
        assert_eq!(mask(0), [true, false, false]);
        assert_eq!(mask(1), [false, true, false]);
        assert_eq!(mask(2), [false, false, true]);
    }

    #[test]
    fn with_two_classes_the_mask_is_the_softmax_of_each_pixel() {
        let maps = maps(2, &[1.0, -2.0, 0.5, 1.0]);
        let mask = values(argmax(&maps, 0, [1, 2], 1, &MaskConfig::default()));
        let softmax = |a: f32, b: f32| a.exp() / (a.exp() + b.exp());
        assert!((mask[0] - softmax(1.0, 0.5)).abs() < 1e-6);
        assert!((mask[1] - softmax(-2.0, 1.0)).abs() < 1e-6);
    }

    #[test]
    fn a_single_map_is_cut_at_the_threshold_of_its_range() {
        let config = MaskConfig { threshold: 0.25, ..MaskConfig::default() };
        let mask = min_max(maps(1, &[2.0, 3.1, 2.9, 6.0]), [1, 4], 1, &config);
        assert_eq!(foreground(mask), [false, true, false, true]);
    }

    #[test]
    fn centres_put_each_cell_at_its_pixel_and_repeat_the_last_up_to_the_border() {
        let config = MaskConfig { alignment: Alignment::Centres, ..MaskConfig::default() };
        let placed = values(enlarge(maps(1, &[0.0, 2.0, 4.0]), [2, 7], 2, &config));
        assert_eq!(placed, [[0.0, 1.0, 2.0, 3.0, 4.0, 4.0, 4.0]; 2].concat());
    }
}
