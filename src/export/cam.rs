//! Class maps as masks.

use super::{
    Outputs, Weights, backbone,
    graph::{Attribute, FLOAT, Graph, Value},
    mask, pooling,
};
use crate::{
    config::{Config, Decision},
    error::Result,
    method::cam::Cam,
    model::{Branch, Rules, wildcat::Pooling},
};

pub(super) fn graph(
    graph: &mut Graph,
    images: &Value,
    cam: Cam,
    config: &Config,
    weights: &Weights<'_>,
) -> Result<Outputs> {
    let size = graph.size(images);
    let localizer = ("localizer", Branch::Whole);
    let (maps, classes) = backbone::class_maps(graph, images, localizer, config, weights)?;
    let scores = match cam {
        Cam::Average => pooling::mean(graph, &maps),
        Cam::Max => pooling::max(graph, &maps),
        Cam::LogSumExp => pooling::log_sum_exp(graph, &maps, config.pool.sharpness),
        Cam::Wildcat => {
            let rule = Pooling { config: &config.pool, counts_evidence_against: true };
            pooling::wildcat(graph, &maps, &rule)
        }
    };
    let probabilities = graph.softmax(&scores);
    let chosen = chosen(graph, &scores, classes);
    let rule = Rules::new(config).mask();
    let mask = match config.mask.rule {
        Decision::Method if classes == 1 => everywhere(graph, images),
        Decision::Method => {
            let placed = mask::place(graph, &maps, &size, &rule);
            highest(graph, &placed, &chosen)
        }
        Decision::MinMax => {
            let belief = graph.cast(&chosen, FLOAT);
            let evidence = mask::evidence(graph, &belief, &maps, rule.evidence, classes);
            mask::soft_mask(graph, &evidence, &size, &rule)
        }
    };
    Ok(Outputs { mask, probabilities, localizer: None })
}

/// Which class has the highest score, as true and false `[1, C]`.
fn chosen(graph: &mut Graph, scores: &Value, classes: usize) -> Value {
    let best = ("axis", Attribute::Int(1));
    let best = graph.op("ArgMax", &[scores], &[best, ("keepdims", Attribute::Int(1))]);
    let all: Vec<i64> = (0..classes as i64).collect();
    let all = graph.ints(&all);
    graph.op("Equal", &[&best, &all], &[])
}

/// `sigmoid(A_class − max of the others)`
fn highest(graph: &mut Graph, maps: &Value, chosen: &Value) -> Value {
    let chosen = graph.reshape(chosen, &[1, -1, 1, 1]);
    let nothing = graph.float(f64::NEG_INFINITY);
    let own = graph.op("Where", &[&chosen, maps, &nothing], &[]);
    let own = graph.reduce("ReduceMax", &own, &[1]);
    let others = graph.op("Where", &[&chosen, &nothing, maps], &[]);
    let others = graph.reduce("ReduceMax", &others, &[1]);
    let apart = graph.sub(&own, &others);
    graph.op("Sigmoid", &[&apart], &[])
}

/// A mask of ones.
fn everywhere(graph: &mut Graph, images: &Value) -> Value {
    let highest = graph.reduce("ReduceMax", images, &[1]);
    let nothing = graph.sub(&highest, &highest);
    let one = graph.float(1.0);
    graph.add(&nothing, &one)
}
