//! Min-max entropy: the localizer gives the mask, the classifier the class of the foreground.

use super::{
    Outputs, Weights, backbone,
    graph::{Kind, Value},
    mask, pooling,
};
use crate::{
    config::Config,
    error::Result,
    model::{Branch, Rules},
};

pub(super) fn graph<'g>(
    images: Value<'g>,
    config: &Config,
    weights: &Weights<'_>,
) -> Result<Outputs<'g>> {
    let rules = Rules::new(config);
    let (size, rule) = (images.size(), rules.mask());
    let head = ("localizer", Branch::Whole);
    let (maps, classes) = backbone::class_maps(images, head, config, weights)?;
    let belief = pooling::wildcat(maps, &rules.pooling()).softmax();
    let evidence = mask::evidence(belief, maps, rule.evidence, classes);
    let mask = mask::soft_mask(evidence, size, &rule);

    let shown = (images * mask).resize(smaller(size, config), "align_corners");
    let head = ("classifier", Branch::Foreground);
    let (maps, _) = backbone::class_maps(shown, head, config, weights)?;
    let probabilities = pooling::wildcat(maps, &rules.pooling()).softmax();
    Ok(Outputs { mask, probabilities, localizer: Some(belief) })
}

/// The size of the classifier's input, rounded down and at least 1.
fn smaller<'g>(size: Value<'g>, config: &Config) -> Value<'g> {
    (size.cast(Kind::Double) * config.model.classifier_scale).cast(Kind::Int).max(1.0)
}
