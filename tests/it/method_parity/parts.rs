//! Head, pooling, mask and losses, each on its own.

use burn::tensor::Tensor;
use pinpoint::{
    config::{Cells, Evidence, MaskConfig, PoolConfig},
    device,
    method::losses::{cross_entropy, cross_entropy_to_uniform},
    model::{
        mask::{MaskEquation, soft_mask},
        params,
        wildcat::{Head, Pooling, pool},
    },
};

use super::{
    fixture::{Fixture, values},
    formula::{keep, parameter, tensor, uniform},
};

/// Absolute, for values up to 5 that come from a few dozen operations each.
const TOLERANCE: f32 = 5e-6;

#[test]
fn class_maps_agree() {
    Fixture::load().assert_close("head/maps", &values(class_maps()), TOLERANCE);
}

#[test]
fn pooled_scores_agree_with_and_without_dropout_and_evidence_against() {
    let top = PoolConfig::default();
    let count = PoolConfig { top: Cells::Count(4), ..PoolConfig::default() };
    let both = PoolConfig {
        top: Cells::Fraction(0.2),
        bottom: Cells::Fraction(0.1),
        bottom_weight: 0.6,
        ..PoolConfig::default()
    };
    let fixture = Fixture::load();
    let keep = keep("keep.head", 2 * 3 * 35);
    for (name, config, keep) in [
        ("pool/top", &top, None),
        ("pool/count", &count, None),
        ("pool/both", &both, None),
        ("pool/dropped", &top, Some(&keep[..])),
        ("pool/both-dropped", &both, Some(&keep[..])),
    ] {
        let rule = Pooling { config, counts_evidence_against: true };
        fixture.assert_close(name, &values(pool(class_maps(), &rule, keep)), TOLERANCE);
    }
}

#[test]
fn soft_masks_agree_per_sample_over_the_batch_and_between_percentiles() {
    let device = device::cpu();
    let (score, map) = (uniform("mask.scores"), uniform("mask.maps"));
    let scores: Tensor<2> = tensor([3, 3], &device, |index| 4.0 * score(index));
    let maps: Tensor<4> = tensor([3, 3, 4, 5], &device, |index| {
        // The second sample has the wider range.
        let scale = if index / (3 * 4 * 5) == 1 { 3.0 } else { 1.0 };
        f64::from((2.0 * map(index) - 1.0) as f32) * scale
    });
    let whole = MaskConfig::default();
    let inner = MaskConfig { low_percentile: 5.0, high_percentile: 90.0, ..whole.clone() };
    let fixture = Fixture::load();
    for (name, config, batch_wide, size) in [
        ("mask/sample", &whole, false, [13, 17]),
        ("mask/batch", &whole, true, [13, 17]),
        ("mask/percentiles", &inner, false, [13, 17]),
        ("mask/smaller", &whole, false, [3, 2]),
    ] {
        let evidence = Evidence::Weighted;
        let rule = MaskEquation { config, evidence, stride: 32, batch_wide };
        let mask = soft_mask(scores.clone(), maps.clone(), size, &rule);
        fixture.assert_close(name, &values(mask), TOLERANCE);
    }
}

#[test]
fn losses_agree() {
    let score = uniform("loss.scores");
    let scores: Tensor<2> = tensor([5, 4], &device::cpu(), |index| 6.0 * score(index) - 3.0);
    let fixture = Fixture::load();
    let found = values(cross_entropy(scores.clone(), &[0, 1, 2, 3, 1]));
    fixture.assert_close("loss/cross_entropy", &found, TOLERANCE);
    fixture.assert_close("loss/ignorance", &values(cross_entropy_to_uniform(scores)), TOLERANCE);
}

/// Two maps for each of three classes, averaged, of 16 features on 5 × 7 cells.
fn class_maps() -> Tensor<4> {
    let device = device::cpu();
    let head = params::map(Head::new(16, 3, 2, &device), |name, shape, old| {
        let name = format!("localizer.{name}");
        tensor([shape.iter().product()], &old.device(), parameter(0, &name, shape))
    });
    head.maps(tensor([2, 16, 5, 7], &device, uniform("features")))
}
