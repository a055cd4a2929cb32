//! From class maps to a soft mask, and from a mask to two images.
//!
//! ```text
//! T  = Σ_k p_k A_k                  the maps, weighted by the class probabilities (or another
//!                                   kind of evidence)
//! T  ↑ size of the image            bilinear, corners (or centres) aligned
//! T̄  = (T − min T) / (max T − min T)
//! R⁺ = sigmoid(ω (T̄ − σ′))          Eq. 9 of the paper; in (0, 1), 1 is foreground
//! ```
//!
//! Without a gradient on the processor this is computed by `soft_mask.rs`; otherwise by tensors,
//! here.

use super::{
    fused,
    layers::{tensor, values},
    soft_mask::SoftMask,
};
use crate::{
    bilinear::{Tap, aligned, read_planes, spaced},
    config::{Alignment, Evidence, MaskConfig},
};
use burn::tensor::{
    Device, Tensor,
    activation::{sigmoid, softmax},
};

/// Variance over classes below which maps count as equal: the root of 0 has no gradient.
pub(crate) const EQUAL: f32 = 1e-24;

/// How raw maps are brought to a common scale before the sigmoid.
#[derive(Debug, Clone, Copy)]
pub struct MaskEquation<'a> {
    /// Threshold, steepness and percentiles.
    pub config: &'a MaskConfig,
    /// How the evidence T is computed from the class maps.
    pub evidence: Evidence,
    /// Pixels of the image per cell of a map.
    pub stride: usize,
    /// Whether smallest and largest value are sought in the whole batch, as the published code does.
    pub batch_wide: bool,
}

/// The soft mask of class maps and scores.
///
/// Shapes: `scores [B, C]`, `maps [B, C, h, w]` → `[B, 1, H, W]`.
pub fn soft_mask(
    scores: Tensor<2>,
    maps: Tensor<4>,
    size: [usize; 2],
    rule: &MaskEquation<'_>,
) -> Tensor<4> {
    let evidence = evidence(softmax(scores, 1), maps, rule.evidence);
    if is_plain(&evidence) {
        let [batch, _, h, w] = evidence.dims();
        let device = evidence.device();
        let mut pixels = vec![0.0; batch * size[0] * size[1]];
        let masks = SoftMask::batch(values(evidence), [h, w], size, rule);
        let images = pixels.chunks_exact_mut(size[0] * size[1]);
        masks.iter().zip(images).for_each(|(mask, image)| mask.fill_all(image));
        return tensor(pixels, [batch, 1, size[0], size[1]], &device);
    }
    let normalized = normalize(enlarge(evidence, size, rule.stride, rule.config), rule);
    sigmoid((normalized - rule.config.threshold) * rule.config.steepness)
}

/// The evidence T of each cell, from the maps of all classes.
///
/// `belief` is the probability of each class, which the spread over classes does not use.
/// Shapes: `belief [B, C]`, `maps [B, C, h, w]` → `[B, 1, h, w]`.
pub fn evidence(belief: Tensor<2>, maps: Tensor<4>, kind: Evidence) -> Tensor<4> {
    let [batch, classes, _, _] = maps.dims();
    let kind = kind.of(classes);
    if kind == Evidence::Spread {
        let deviation = maps.clone() - maps.mean_dim(1);
        return (deviation.clone() * deviation).mean_dim(1).clamp_min(EQUAL).sqrt();
    }
    let weights = (belief - kind.common(classes)).reshape([batch, classes, 1, 1]);
    (maps * weights).sum_dim(1)
}

/// X⁺ = X ⊙ R⁺: the foreground of images. Shapes: `images [B, 3, H, W]`, `mask [B, 1, H, W]`.
pub fn foreground(images: Tensor<4>, mask: Tensor<4>) -> Tensor<4> {
    images * mask
}

/// X⁻ = X ⊙ (1 − R⁺): the background of images.
pub fn background(images: Tensor<4>, mask: Tensor<4>) -> Tensor<4> {
    images * (-mask + 1.0)
}

/// Resizes by bilinear interpolation with aligned corners.
///
/// Shapes: `[B, C, h, w]` → `[B, C, H, W]`.
pub fn resize(images: Tensor<4>, size: [usize; 2]) -> Tensor<4> {
    let [_, _, h, w] = images.dims();
    interpolate(images, [aligned(size[0], h), aligned(size[1], w)])
}

/// T↑: stretches maps over the image, `stride` pixels of which are behind each cell.
///
/// Shapes: `[B, C, h, w]` → `[B, C, H, W]`.
pub fn enlarge(maps: Tensor<4>, size: [usize; 2], stride: usize, config: &MaskConfig) -> Tensor<4> {
    let [_, _, h, w] = maps.dims();
    interpolate(maps, taps(config.alignment, stride, size, [h, w]))
}

/// How each row and each column of an image is interpolated in the `grid` of a map.
pub(super) fn taps(
    alignment: Alignment,
    stride: usize,
    size: [usize; 2],
    grid: [usize; 2],
) -> [Vec<Tap>; 2] {
    [0, 1].map(|axis| match alignment {
        Alignment::Corners => aligned(size[axis], grid[axis]),
        Alignment::Centres => spaced(size[axis], grid[axis], 1.0 / stride as f64),
    })
}

fn interpolate(images: Tensor<4>, [rows, columns]: [Vec<Tap>; 2]) -> Tensor<4> {
    let [batch, channels, h, w] = images.dims();
    let device = images.device();
    if is_plain(&images) {
        let read = read_planes(&values(images), [h, w], &rows, &columns);
        return tensor(read, [batch, channels, rows.len(), columns.len()], &device);
    }
    // A matrix product has an exact and deterministic gradient.
    let rows = matrix(&rows, h, &device).unsqueeze::<4>();
    let columns = matrix(&columns, w, &device).transpose().unsqueeze::<4>();
    rows.matmul(images).matmul(columns)
}

/// Whether values are in host memory and nobody asks for their gradient.
fn is_plain(images: &Tensor<4>) -> bool {
    fused::reaches(images) && !images.is_autodiff()
}

/// The matrix `[out, in]` that interpolates `input` samples.
fn matrix(taps: &[Tap], input: usize, device: &Device) -> Tensor<2> {
    let mut matrix = vec![0.0; taps.len() * input];
    for (tap, row) in taps.iter().zip(matrix.chunks_exact_mut(input)) {
        let [near, far] = tap.weights();
        row[tap.near] += near;
        row[tap.far] += far;
    }
    tensor(matrix, [taps.len(), input], device)
}

/// Normalizes each map to `[0, 1]`; a constant map becomes the threshold, as it has no range.
fn normalize(evidence: Tensor<4>, rule: &MaskEquation<'_>) -> Tensor<4> {
    let [batch, _, height, width] = evidence.dims();
    let groups = if rule.batch_wide { 1 } else { batch };
    let flat: Tensor<2> = evidence.reshape([groups, batch / groups * height * width]);
    let MaskConfig { low_percentile, high_percentile, threshold, .. } = *rule.config;
    let whole_range = low_percentile == 0.0 && high_percentile == 100.0;
    let (low, high) = if whole_range {
        (flat.clone().min_dim(1), flat.clone().max_dim(1))
    } else {
        percentiles(flat.clone(), [low_percentile, high_percentile])
    };
    let range = high - low.clone();
    let constant = range.clone().lower_equal_elem(0.0).float();
    let scaled = (flat - low) / (range + constant.clone());
    let scaled = if whole_range { scaled } else { scaled.clamp(0.0, 1.0) };
    let normalized = scaled * (-constant.clone() + 1.0) + constant * threshold;
    normalized.reshape([batch, 1, height, width])
}

/// Two percentiles of each row, by the nearest rank; constants to the gradient.
fn percentiles(rows: Tensor<2>, percents: [f64; 2]) -> (Tensor<2>, Tensor<2>) {
    let [count, length] = rows.dims();
    let device = rows.device();
    let mut all = values(rows.inner());
    let [low, high] = percents.map(|percent| {
        let rank = (percent / 100.0 * (length - 1) as f64).round() as usize;
        let ranked = all.chunks_exact_mut(length);
        let found = ranked.map(|row| *row.select_nth_unstable_by(rank, f32::total_cmp).1);
        tensor(found.collect(), [count, 1], &device)
    });
    (low, high)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::device;

    fn mask_of(
        maps: Vec<f32>,
        shape: [usize; 4],
        config: &MaskConfig,
        batch_wide: bool,
    ) -> Vec<f32> {
        let device = device::cpu();
        let [batch, classes, height, width] = shape;
        let scores = Tensor::zeros([batch, classes], &device);
        let rule = MaskEquation { config, evidence: config.evidence, stride: 1, batch_wide };
        values(soft_mask(scores, tensor(maps, shape, &device), [height, width], &rule))
    }

    #[test]
    fn the_mask_runs_from_sigmoid_of_minus_four_to_sigmoid_of_four() {
        let mask = mask_of(vec![-7.0, 1.0, 9.0, 9.0], [1, 1, 2, 2], &MaskConfig::default(), false);
        let expected = [0.017_986_2, 0.5, 0.982_013_8, 0.982_013_8];
        for (found, expected) in mask.iter().zip(expected) {
            assert!((found - expected).abs() < 1e-6, "{mask:?}");
        }
    }

    #[test]
    fn scores_weigh_the_maps() {
        let device = device::cpu();
        let scores = tensor(vec![0.0, 3.0_f32.ln()], [1, 2], &device);
        let maps = tensor(vec![4.0, 0.0, 0.0, 0.0, 0.0, 4.0, 0.0, 2.0], [1, 2, 2, 2], &device);
        let config = &MaskConfig::default();
        let evidence = Evidence::Weighted;
        let rule = MaskEquation { config, evidence, stride: 1, batch_wide: false };
        let mask = values(soft_mask(scores, maps, [2, 2], &rule));
        // Beliefs ¼ and ¾ make the evidence 1, 3, 0, 1.5: normalized ⅓, 1, 0, ½.
        let expected =
            [1.0 / 3.0, 1.0, 0.0, 0.5].map(|t: f32| 1.0 / (1.0 + (-8.0 * (t - 0.5)).exp()));
        for (found, expected) in mask.iter().zip(expected) {
            assert!((found - expected).abs() < 1e-6, "{mask:?}");
        }
    }

    fn evidence_of(belief: &[f32], maps: &[f32], kind: Evidence) -> Vec<f32> {
        let (device, classes) = (device::cpu(), belief.len());
        let maps = tensor(maps.to_vec(), [1, classes, 1, maps.len() / classes], &device);
        values(evidence(tensor(belief.to_vec(), [1, classes], &device), maps, kind))
    }

    #[test]
    fn centred_evidence_leaves_out_the_mean_of_the_maps() {
        // Means 2 and 1: ½ (3 − 2) + ¼ (1 − 2) + ¼ (2 − 2) = ¼, ½ (0 − 1) + ¼ (0 − 1) + ¼ (3 − 1) = −¼.
        let maps = [3.0, 0.0, 1.0, 0.0, 2.0, 3.0];
        let found = evidence_of(&[0.5, 0.25, 0.25], &maps, Evidence::Centred);
        assert!((found[0] - 0.25).abs() < 1e-6 && (found[1] + 0.25).abs() < 1e-6, "{found:?}");
        // Two classes: (p − ½) (A₁ − A₂).
        let found = evidence_of(&[0.75, 0.25], &[3.0, 0.0, 1.0, 4.0], Evidence::Centred);
        assert!((found[0] - 0.5).abs() < 1e-6 && (found[1] + 1.0).abs() < 1e-6, "{found:?}");
    }

    #[test]
    fn spread_is_the_standard_deviation_over_the_classes() {
        // Of 1, 3, 5: √((4 + 0 + 4)/3); of three equals: nothing.
        let found =
            evidence_of(&[1.0, 0.0, 0.0], &[1.0, 7.0, 3.0, 7.0, 5.0, 7.0], Evidence::Spread);
        assert!((found[0] - (8.0_f32 / 3.0).sqrt()).abs() < 1e-6 && found[1] < 1e-6, "{found:?}");
        // Two classes: half their distance.
        let found = evidence_of(&[0.5, 0.5], &[3.0, 0.0, 1.0, 4.0], Evidence::Spread);
        assert!((found[0] - 1.0).abs() < 1e-6 && (found[1] - 2.0).abs() < 1e-6, "{found:?}");
    }

    #[test]
    fn a_single_class_has_nothing_in_common_with_others() {
        for kind in [Evidence::Weighted, Evidence::Centred, Evidence::Spread, Evidence::Auto] {
            assert_eq!(evidence_of(&[1.0], &[2.0, -3.0], kind), [2.0, -3.0], "{kind:?}");
        }
    }

    #[test]
    fn by_default_two_classes_are_centred_and_more_are_spread() {
        let maps = [3.0, 0.0, 1.0, 4.0, 2.0, 7.0];
        let of = |belief: &[f32], kind| evidence_of(belief, &maps[..2 * belief.len()], kind);
        let (two, three) = ([0.75, 0.25], [0.5, 0.25, 0.25]);
        assert_eq!(of(&two, Evidence::Auto), of(&two, Evidence::Centred));
        assert_eq!(of(&three, Evidence::Auto), of(&three, Evidence::Spread));
        assert_eq!(MaskConfig::default().evidence, Evidence::Auto);
    }

    #[test]
    fn where_all_maps_agree_the_spread_still_has_a_gradient() {
        let device = device::cpu();
        let maps =
            tensor(vec![1.0, 2.0, 1.0, 5.0], [1, 2, 1, 2], &device).autodiff().require_grad();
        let spread =
            evidence(Tensor::zeros([1, 2], &device).autodiff(), maps.clone(), Evidence::Spread);
        let gradient = values(maps.grad(&spread.sum().backward()).unwrap());
        assert_eq!(gradient, [0.0, -0.5, 0.0, 0.5]);
    }

    #[test]
    fn a_constant_map_gives_one_half_everywhere() {
        assert_eq!(mask_of(vec![3.0; 4], [1, 1, 2, 2], &MaskConfig::default(), false), [0.5; 4]);
    }

    #[test]
    fn each_sample_has_its_own_range_unless_the_reference_is_asked_for() {
        let maps = vec![0.0, 1.0, 0.0, 10.0];
        let own = mask_of(maps.clone(), [2, 1, 1, 2], &MaskConfig::default(), false);
        assert_eq!(own[1], own[3]);
        let shared = mask_of(maps, [2, 1, 1, 2], &MaskConfig::default(), true);
        assert!(shared[1] < 0.1 && shared[3] > 0.9, "{shared:?}");
    }

    #[test]
    fn percentiles_keep_one_peak_from_ruling_the_mask() {
        let mut maps: Vec<f32> = (0..100).map(|cell| cell as f32 / 100.0).collect();
        maps[99] = 1000.0;
        let config = MaskConfig { high_percentile: 98.0, ..MaskConfig::default() };
        let peaked = mask_of(maps.clone(), [1, 1, 10, 10], &MaskConfig::default(), false);
        let robust = mask_of(maps, [1, 1, 10, 10], &config, false);
        assert!(peaked[90] < 0.02 && robust[90] > 0.9, "{} {}", peaked[90], robust[90]);
    }

    #[test]
    fn resizing_aligns_the_corners() {
        let image = tensor(vec![0.0, 1.0, 2.0, 3.0], [1, 1, 2, 2], &device::cpu());
        let resized = values(resize(image, [3, 3]));
        assert_eq!(resized, [0.0, 0.5, 1.0, 1.0, 1.5, 2.0, 2.0, 2.5, 3.0]);
    }

    #[test]
    fn resizing_is_the_same_with_and_without_a_gradient() {
        let pixels: Vec<f32> = (0..2 * 3 * 7 * 10).map(|i| (i as f32 * 0.7).sin()).collect();
        let images = tensor(pixels, [2, 3, 7, 10], &device::cpu());
        for size in [[7, 10], [3, 5], [20, 31], [1, 1], [7, 4]] {
            let plain = values(resize(images.clone(), size));
            let recorded = values(resize(images.clone().autodiff(), size).inner());
            for (plain, recorded) in plain.iter().zip(recorded) {
                assert!((plain - recorded).abs() < 1e-6, "{size:?}: {plain} {recorded}");
            }
        }
    }

    #[test]
    fn centres_put_each_cell_where_it_looks() {
        let device = device::cpu();
        let config = MaskConfig { alignment: Alignment::Centres, ..MaskConfig::default() };
        let evidence = Evidence::Weighted;
        let rule = MaskEquation { config: &config, evidence, stride: 4, batch_wide: false };
        let maps = tensor(vec![0.0, 1.0, 0.0], [1, 1, 1, 3], &device);
        let mask = values(soft_mask(Tensor::zeros([1, 1], &device), maps, [1, 12], &rule));
        let peak = (0..12).max_by(|&a, &b| mask[a].total_cmp(&mask[b])).unwrap();
        assert_eq!(peak, 4, "{mask:?}");
        // Symmetric about the cell, and the last cell goes on to the border.
        assert_eq!((mask[2], mask[0]), (mask[6], mask[11]));
    }

    proptest! {
        #[test]
        fn the_two_images_add_up_to_the_whole(
            pixels in prop::collection::vec(-1.0_f32..1.0, 12),
            mask in prop::collection::vec(0.0_f32..1.0, 4),
        ) {
            let device = device::cpu();
            let images = tensor(pixels.clone(), [1, 3, 2, 2], &device);
            let mask = tensor(mask, [1, 1, 2, 2], &device);
            let whole = foreground(images.clone(), mask.clone()) + background(images, mask);
            for (sum, pixel) in values(whole).iter().zip(pixels) {
                prop_assert!((sum - pixel).abs() < 1e-6);
            }
        }

        #[test]
        fn a_map_common_to_all_classes_changes_neither_centred_mask_nor_spread(
            scores in prop::collection::vec(-3.0_f32..3.0, 3),
            maps in prop::collection::vec(-5.0_f32..5.0, 3 * 6),
            common in prop::collection::vec(-5.0_f32..5.0, 6),
        ) {
            let device = device::cpu();
            let belief = values(softmax(tensor(scores.clone(), [1, 3], &device), 1));
            // A belief in nothing in particular leaves centred evidence nothing but rounding.
            prop_assume!(belief.iter().any(|p| *p > 0.4));
            let shifted: Vec<f32> =
                maps.iter().zip(common.iter().cycle()).map(|(cell, common)| cell + common).collect();
            for evidence in [Evidence::Centred, Evidence::Spread] {
                let config = MaskConfig { evidence, ..MaskConfig::default() };
                let rule = MaskEquation { config: &config, evidence, stride: 1, batch_wide: false };
                let mask = |maps: &[f32]| {
                    let scores = tensor(scores.clone(), [1, 3], &device);
                    values(soft_mask(scores, tensor(maps.to_vec(), [1, 3, 2, 3], &device), [4, 9], &rule))
                };
                let raw = evidence_of(&belief, &maps, evidence);
                let range = raw.iter().copied().fold(f32::MIN, f32::max)
                    - raw.iter().copied().fold(f32::MAX, f32::min);
                prop_assume!(range > 0.05);
                for (before, after) in mask(&maps).iter().zip(mask(&shifted)) {
                    prop_assert!((before - after).abs() < 1e-3, "{before} {after}");
                }
            }
        }

        #[test]
        fn masks_are_between_zero_and_one_and_use_the_whole_range(
            maps in prop::collection::vec(-50.0_f32..50.0, 12),
        ) {
            let mask = mask_of(maps, [1, 1, 3, 4], &MaskConfig::default(), false);
            prop_assert!(mask.iter().all(|value| (0.0..=1.0).contains(value)));
            let largest = mask.iter().copied().fold(0.0, f32::max);
            prop_assert!((largest - 0.982_013_8).abs() < 1e-5 || largest == 0.5);
        }
    }
}
