//! Class maps as masks.

use super::{
    Outputs, Weights, backbone,
    graph::{Attribute, Kind, Value},
    mask, pooling,
};
use crate::{
    config::{Config, Decision},
    error::Result,
    method::cam::Cam,
    model::{Branch, Rules, wildcat::Pooling},
};

pub(super) fn graph<'g>(
    images: Value<'g>,
    cam: Cam,
    config: &Config,
    weights: &Weights<'_>,
) -> Result<Outputs<'g>> {
    let size = images.size();
    let localizer = ("localizer", Branch::Whole);
    let (maps, classes) = backbone::class_maps(images, localizer, config, weights)?;
    let scores = match cam {
        Cam::Average => pooling::reduced(maps, "ReduceMean"),
        Cam::Max => pooling::reduced(maps, "ReduceMax"),
        Cam::LogSumExp => pooling::log_sum_exp(maps, config.pool.sharpness),
        Cam::Wildcat => {
            let rule = Pooling { config: &config.pool, counts_evidence_against: true };
            pooling::wildcat(maps, &rule)
        }
    };
    let probabilities = scores.softmax();
    let chosen = chosen(scores, classes);
    let rule = Rules::new(config).mask();
    let mask = match config.mask.rule {
        Decision::Method if classes == 1 => everywhere(images),
        Decision::Method => highest(mask::place(maps, size, &rule), chosen),
        Decision::MinMax => {
            let belief = chosen.cast(Kind::Float);
            mask::soft_mask(mask::evidence(belief, maps, rule.evidence, classes), size, &rule)
        }
    };
    Ok(Outputs { mask, probabilities, localizer: None })
}

/// Which class has the highest score, as true and false `[1, C]`.
fn chosen(scores: Value<'_>, classes: usize) -> Value<'_> {
    let along = [("axis", Attribute::Int(1)), ("keepdims", Attribute::Int(1))];
    let all: Vec<i64> = (0..classes as i64).collect();
    scores.op("ArgMax", &[], &along).op("Equal", &[scores.graph().line(&all)], &[])
}

/// `sigmoid(A_class − max of the others)`
fn highest<'g>(maps: Value<'g>, chosen: Value<'g>) -> Value<'g> {
    let chosen = chosen.reshape(&[1, -1, 1, 1]);
    let nothing = maps.graph().constant(&[], &[f32::NEG_INFINITY]);
    let own = maps.kept(chosen, nothing);
    let others = nothing.kept(chosen, maps);
    (own.reduce("ReduceMax", &[1]) - others.reduce("ReduceMax", &[1])).sigmoid()
}

/// A mask of ones.
fn everywhere(images: Value<'_>) -> Value<'_> {
    images.reduce("ReduceMax", &[1]).zeros() + 1.0
}
