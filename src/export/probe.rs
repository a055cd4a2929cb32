//! The probe: heads on frozen features.

mod cut;
mod discriminant;
mod edges;

use self::{cut::cut, discriminant::log_odds};
use super::{
    Outputs, Weights, backbone,
    graph::{Attribute, Value},
};
use crate::{
    config::{Config, Refinement, Stage},
    error::Result,
    method::probe::{
        ALPHA, BETA, GUESS_MARGIN, HIGHEST, MASKED, STRIDE, backbone as undilated, kernel,
    },
    model::Branch,
    stats::CutRule,
};

pub(super) fn graph<'g>(
    images: Value<'g>,
    config: &Config,
    weights: &Weights<'_>,
) -> Result<Outputs<'g>> {
    let settings = &config.probe;
    let size = images.size();
    let grid = rounded_up(size, STRIDE);
    let given = backbone::stages(images, &undilated(&config.model), weights, Branch::Whole)?;
    let of = |stages: &[Stage]| -> Vec<(Stage, Value<'g>)> {
        let given = Stage::ALL.into_iter().zip(given.iter().copied());
        given.filter(|(stage, _)| stages.contains(stage)).collect()
    };
    let cells = projected(&of(&settings.mask_stages), grid, weights)?;
    let logits = smooth(students(cells, weights)?, settings.smoothing);

    // The image's own discriminant, fitted to the students' guess.
    let guess = logits.sigmoid().clip(GUESS_MARGIN, 1.0 - GUESS_MARGIN);
    let own = smooth(log_odds(cells, guess, dimensions(weights)?), settings.smoothing);
    let share = settings.own_image as f32;
    let scores = logits * (1.0 - share) + own * share;

    let beta = weights.get(&format!("probe.{BETA}"))?.values[0].into();
    let rule = match weights.arrays.get(&format!("probe.{ALPHA}")) {
        Some(alpha) => CutRule { beta, alpha: alpha.values[0].into() },
        None => CutRule::halfway(beta),
    };
    let mut above = scores - cut(scores, rule);
    let shown = above.sigmoid();
    if settings.refine == Refinement::Edges {
        above = edges::snap(images, shown);
    }
    let mask = above.resize(size, "half_pixel").sigmoid();

    let masked = weights.arrays.get(&format!("probe.{MASKED}"));
    let shown = masked.is_some_and(|masked| masked.values[0] > 0.5).then_some(shown);
    let descriptor = descriptor(&of(&settings.class_stages), grid, shown);
    let (weight, [classes, width]) = weights.shaped("probe.classifier.weight")?;
    let bias = &weights.get("probe.classifier.bias")?.values;
    let weight = images.graph().constant(&[classes, width], &weight.values).transpose();
    let bias = images.graph().constant(&[classes], bias);
    let probabilities = (descriptor.matmul(weight) + bias).softmax();
    Ok(Outputs { mask, probabilities, localizer: None })
}

/// Length of a projected vector.
fn dimensions(weights: &Weights<'_>) -> Result<usize> {
    let (_, [dimensions, _]) = weights.shaped("probe.projection.weight")?;
    Ok(dimensions)
}

/// `⌈a / n⌉` of integers.
fn rounded_up(a: Value<'_>, n: usize) -> Value<'_> {
    (a + (n as i64 - 1)) / n as i64
}

/// Projected vectors on the common grid, `[1, D, h, w]`: each stage projected at its own
/// resolution, then interpolated.
fn projected<'g>(
    stages: &[(Stage, Value<'g>)],
    grid: Value<'g>,
    weights: &Weights<'_>,
) -> Result<Value<'g>> {
    let graph = grid.graph();
    let (matrix, [dimensions, width]) = weights.shaped("probe.projection.weight")?;
    let offset = weights.get("probe.projection.bias")?;
    let mut sum = graph.constant(&[1, dimensions, 1, 1], &offset.values);
    let mut from = 0;
    for &(stage, map) in stages {
        let channels = channels(stage, weights)?;
        let rows = matrix.values.chunks_exact(width);
        let part: Vec<f32> = rows.flat_map(|row| &row[from..from + channels]).copied().collect();
        from += channels;
        let weight = graph.constant(&[dimensions, channels, 1, 1], &part);
        sum = sum + map.conv(weight, None, 1, [1, 1]).resize(grid, "half_pixel");
    }
    Ok(sum)
}

/// Channels of what a stage gives: those of the last norm of its first block.
fn channels(stage: Stage, weights: &Weights<'_>) -> Result<usize> {
    let block = format!("layer{}.0", stage.index() + 1);
    let third = weights.arrays.get(&format!("{block}.bn3.weight"));
    let last = third.map_or_else(|| weights.get(&format!("{block}.bn2.weight")), Ok)?;
    Ok(last.values.len())
}

/// The mean logit of all students, `[1, D, h, w]` → `[1, 1, h, w]`.
fn students<'g>(cells: Value<'g>, weights: &Weights<'_>) -> Result<Value<'g>> {
    let student = |index: usize| {
        let layer = |x: Value<'g>, layer: &str| {
            let name = |part: &str| format!("probe.student.{index}.{layer}.{part}");
            let (weight, [outputs, inputs]) = weights.shaped(&name("weight"))?;
            let bias = weights.get(&name("bias"))?;
            let weight = x.graph().constant(&[outputs, inputs, 1, 1], &weight.values);
            let bias = x.graph().constant(&[outputs], &bias.values);
            Ok(x.conv(weight, Some(bias), 1, [1, 1]))
        };
        layer(layer(cells, "hidden")?.relu(), "output")
    };
    let first = student(0)?;
    let others = (1..)
        .take_while(|i| weights.arrays.contains_key(&format!("probe.student.{i}.hidden.weight")));
    let others: Vec<Value<'g>> = others.map(student).collect::<Result<_>>()?;
    Ok(first.op("Mean", &others, &[]))
}

/// A map smoothed by a Gaussian, along rows and then columns; borders mirror the map.
fn smooth(map: Value<'_>, sigma: f64) -> Value<'_> {
    let half = kernel(sigma);
    let reach = half.len() as i64 - 1;
    if reach == 0 {
        return map;
    }
    let graph = map.graph();
    let whole: Vec<f32> = half.iter().rev().chain(&half[1..]).copied().collect();
    let mut smoothed = map;
    for (axis, shape) in [(3, [1, 1, 1, whole.len()]), (2, [1, 1, whole.len(), 1])] {
        let length = smoothed.sides(axis, axis + 1).reshape(&[]);
        // … c b a | a b c d | d c b …, as often as the kernel reaches over.
        let (before, one) = (graph.constant(&[], &[-reach]), graph.constant(&[], &[1_i64]));
        let twice = length + length;
        let folded = before.op("Range", &[length + reach, one], &[]).modulo(twice);
        let places = folded.min(twice - one - folded);
        let longer = smoothed.op("Gather", &[places], &[("axis", Attribute::Int(axis))]);
        smoothed = longer.op("Conv", &[graph.constant(&shape, &whole)], &[]);
    }
    smoothed
}

/// The mean of each channel and of its highest twentieth, stage by stage, `[1, features]`; of what
/// a mask `[1, 1, h, w]` shows, if there is one.
fn descriptor<'g>(
    stages: &[(Stage, Value<'g>)],
    grid: Value<'g>,
    mask: Option<Value<'g>>,
) -> Value<'g> {
    let parts = stages.iter().flat_map(|&(stage, map)| {
        let mask = mask.map(|mask| mask.resize(map.size(), "half_pixel").flat());
        let flat = mask.map_or(map.flat(), |mask| map.flat() * mask);
        let sides = rounded_up(grid * STRIDE as i64, 4 << stage.index());
        let cells = sides.reduce("ReduceProd", &[0]);
        let highest = flat.top((cells / HIGHEST as i64).max(1_i64), true);
        let mean = flat.reduce("ReduceMean", &[2]);
        let mean = mask.map_or(mean, |mask| mean / mask.reduce("ReduceMean", &[2]));
        [mean, highest.reduce("ReduceMean", &[2])].map(|part| part.reshape(&[1, -1]))
    });
    let parts: Vec<Value<'g>> = parts.collect();
    grid.graph().op("Concat", &parts, &[("axis", Attribute::Int(1))])
}
