//! Min-max entropy: the localizer gives the mask, the classifier names what it shows.

use super::{
    Outputs, Weights, backbone,
    graph::{DOUBLE, Graph, INT, Value},
    mask, pooling,
};
use crate::{
    config::Config,
    error::Result,
    model::{Branch, Rules},
};

pub(super) fn graph(
    graph: &mut Graph,
    images: &Value,
    config: &Config,
    weights: &Weights<'_>,
) -> Result<Outputs> {
    let rules = Rules::new(config);
    let size = graph.size(images);
    let head = ("localizer", Branch::Whole);
    let (localizer, classes) = backbone::class_maps(graph, images, head, config, weights)?;
    let scores = pooling::wildcat(graph, &localizer, &rules.pooling());
    let belief = graph.softmax(&scores);
    let rule = rules.mask();
    let evidence = mask::evidence(graph, &belief, &localizer, rule.evidence, classes);
    let mask = mask::soft_mask(graph, &evidence, &size, &rule);

    let foreground = graph.mul(images, &mask);
    let smaller = classifier_size(graph, &size, config.model.classifier_scale);
    let seen = graph.resize(&foreground, &smaller, "align_corners");
    let head = ("classifier", Branch::Foreground);
    let (classifier, _) = backbone::class_maps(graph, &seen, head, config, weights)?;
    let scores = pooling::wildcat(graph, &classifier, &rules.pooling());
    let probabilities = graph.softmax(&scores);
    Ok(Outputs { mask, probabilities, localizer: Some(belief) })
}

/// The size of the classifier's input, rounded down and at least 1.
fn classifier_size(graph: &mut Graph, size: &Value, scale: f64) -> Value {
    let exact = graph.cast(size, DOUBLE);
    let scale = graph.double(scale);
    let scaled = graph.mul(&exact, &scale);
    let whole = graph.cast(&scaled, INT);
    let one = graph.ints(&[1]);
    graph.op("Max", &[&whole, &one], &[])
}
