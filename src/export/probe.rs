//! The probe: heads on frozen features.

mod cut;
mod discriminant;
mod edges;

use self::{cut::cut, discriminant::log_odds};
use super::{
    Outputs, Weights, backbone,
    graph::{Attribute, Graph, Value},
};
use crate::{
    config::{Config, Refinement, Stage},
    error::Result,
    method::probe::{ALPHA, BETA, DOUBT, HIGHEST, MASKED, STRIDE, backbone as undilated, kernel},
    model::Branch,
    stats::CutRule,
};

pub(super) fn graph(
    graph: &mut Graph,
    images: &Value,
    config: &Config,
    weights: &Weights<'_>,
) -> Result<Outputs> {
    let settings = &config.probe;
    let size = graph.size(images);
    let grid = rounded_up(graph, &size, STRIDE);
    let given = backbone::stages(graph, images, &undilated(&config.model), weights, Branch::Whole)?;
    let of = |stages: &[Stage]| -> Vec<(Stage, &Value)> {
        Stage::ALL.into_iter().zip(&given).filter(|(stage, _)| stages.contains(stage)).collect()
    };
    let cells = projected(graph, &of(&settings.mask_stages), &grid, weights)?;
    let logits = students(graph, &cells, weights)?;
    let logits = smooth(graph, &logits, settings.smoothing);

    // What the image itself makes of the students' guess.
    let guess = graph.op("Sigmoid", &[&logits], &[]);
    let (low, high) = (graph.float(DOUBT.into()), graph.float(f64::from(1.0 - DOUBT)));
    let guess = graph.clip(&guess, &low, &high);
    let own = log_odds(graph, &cells, &guess, dimensions(weights)?);
    let own = smooth(graph, &own, settings.smoothing);
    let share = settings.own_image as f32;
    let (own_share, rest) = (graph.float(share.into()), graph.float(f64::from(1.0 - share)));
    let (own, logits) = (graph.mul(&own, &own_share), graph.mul(&logits, &rest));
    let scores = graph.add(&logits, &own);

    let beta = weights.get(&format!("probe.{BETA}"))?.values[0].into();
    let rule = match weights.arrays.get(&format!("probe.{ALPHA}")) {
        Some(alpha) => CutRule { beta, alpha: alpha.values[0].into() },
        None => CutRule::halfway(beta),
    };
    let middle = cut(graph, &scores, rule);
    let mut above = graph.sub(&scores, &middle);
    let shown = graph.op("Sigmoid", &[&above], &[]);
    if settings.refine == Refinement::Edges {
        above = edges::snap(graph, images, &shown);
    }
    let placed = graph.resize(&above, &size, "half_pixel");
    let mask = graph.op("Sigmoid", &[&placed], &[]);

    let masked = weights.arrays.get(&format!("probe.{MASKED}"));
    let shown = masked.is_some_and(|masked| masked.values[0] > 0.5).then_some(&shown);
    let descriptor = descriptor(graph, &of(&settings.class_stages), &grid, shown);
    let (weight, [classes, width]) = weights.shaped("probe.classifier.weight")?;
    let by_feature: Vec<f32> = (0..width)
        .flat_map(|feature| (0..classes).map(move |class| class * width + feature))
        .map(|index| weight.values[index])
        .collect();
    let weight = graph.floats(&[width, classes], &by_feature);
    let bias = graph.floats(&[classes], &weights.get("probe.classifier.bias")?.values);
    let products = graph.matmul(&descriptor, &weight);
    let class_scores = graph.add(&products, &bias);
    let probabilities = graph.softmax(&class_scores);
    Ok(Outputs { mask, probabilities, localizer: None })
}

/// Length of a projected vector.
fn dimensions(weights: &Weights<'_>) -> Result<usize> {
    let (_, [dimensions, _]) = weights.shaped("probe.projection.weight")?;
    Ok(dimensions)
}

/// `⌈a / n⌉` of integers.
fn rounded_up(graph: &mut Graph, a: &Value, n: usize) -> Value {
    let (n, less) = (graph.ints(&[n as i64]), graph.ints(&[n as i64 - 1]));
    let more = graph.add(a, &less);
    graph.div(&more, &n)
}

/// Projected vectors on the common grid, `[1, D, h, w]`: each stage projected at its own
/// resolution, then interpolated.
fn projected(
    graph: &mut Graph,
    stages: &[(Stage, &Value)],
    grid: &Value,
    weights: &Weights<'_>,
) -> Result<Value> {
    let (matrix, [dimensions, width]) = weights.shaped("probe.projection.weight")?;
    let offset = weights.get("probe.projection.bias")?;
    let mut sum = graph.floats(&[1, dimensions, 1, 1], &offset.values);
    let mut from = 0;
    for (stage, map) in stages {
        let channels = channels(*stage, weights)?;
        let part: Vec<f32> = matrix
            .values
            .chunks_exact(width)
            .flat_map(|row| row[from..from + channels].iter().copied())
            .collect();
        from += channels;
        let weight = graph.floats(&[dimensions, channels, 1, 1], &part);
        let projected = graph.conv(map, &weight, None, 1, [1, 1]);
        let placed = graph.resize(&projected, grid, "half_pixel");
        sum = graph.add(&sum, &placed);
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
fn students(graph: &mut Graph, cells: &Value, weights: &Weights<'_>) -> Result<Value> {
    let mut logits: Vec<Value> = Vec::new();
    loop {
        let name = |part: &str| format!("probe.student.{}.{part}", logits.len());
        if !logits.is_empty() && !weights.arrays.contains_key(&name("hidden.weight")) {
            break;
        }
        let mut x = cells.clone();
        for layer in ["hidden", "output"] {
            let (weight, [outputs, inputs]) = weights.shaped(&name(&format!("{layer}.weight")))?;
            let bias = weights.get(&name(&format!("{layer}.bias")))?;
            let weight = graph.floats(&[outputs, inputs, 1, 1], &weight.values);
            let bias = graph.floats(&[outputs], &bias.values);
            x = graph.conv(&x, &weight, Some(&bias), 1, [1, 1]);
            if layer == "hidden" {
                x = graph.op("Relu", &[&x], &[]);
            }
        }
        logits.push(x);
    }
    Ok(graph.op("Mean", &logits.iter().collect::<Vec<_>>(), &[]))
}

/// A map smoothed by a Gaussian, along rows and then columns; borders mirror the map.
fn smooth(graph: &mut Graph, map: &Value, sigma: f64) -> Value {
    let half = kernel(sigma);
    let reach = half.len() - 1;
    if reach == 0 {
        return map.clone();
    }
    let whole: Vec<f32> = half.iter().rev().chain(&half[1..]).copied().collect();
    let mut smoothed = map.clone();
    for (axis, shape) in [(3, [1, 1, 1, whole.len()]), (2, [1, 1, whole.len(), 1])] {
        let length = graph.op(
            "Shape",
            &[&smoothed],
            &[("start", Attribute::Int(axis)), ("end", Attribute::Int(axis + 1))],
        );
        // … c b a | a b c d | d c b …, as often as the kernel reaches over.
        let length = graph.reshape(&length, &[]);
        let reach = graph.ints(&[reach as i64]);
        let reach = graph.reshape(&reach, &[]);
        let before = graph.op("Neg", &[&reach], &[]);
        let after = graph.add(&length, &reach);
        let one = graph.ints(&[1]);
        let one = graph.reshape(&one, &[]);
        let places = graph.op("Range", &[&before, &after, &one], &[]);
        let twice = graph.add(&length, &length);
        let folded = graph.op("Mod", &[&places, &twice], &[]);
        let last = graph.sub(&twice, &one);
        let mirrored = graph.sub(&last, &folded);
        let places = graph.op("Min", &[&folded, &mirrored], &[]);
        let longer = graph.op("Gather", &[&smoothed, &places], &[("axis", Attribute::Int(axis))]);
        let kernel = graph.floats(&shape, &whole);
        smoothed = graph.op("Conv", &[&longer, &kernel], &[]);
    }
    smoothed
}

/// The mean of each channel and of its highest twentieth, stage by stage, `[1, features]`; of what
/// a mask `[1, 1, h, w]` shows, if there is one.
fn descriptor(
    graph: &mut Graph,
    stages: &[(Stage, &Value)],
    grid: &Value,
    mask: Option<&Value>,
) -> Value {
    let mut parts = Vec::new();
    for (stage, map) in stages {
        let mut flat = graph.flat(map);
        let mut shown = None;
        if let Some(mask) = mask {
            let size = graph.size(map);
            let mask = graph.resize(mask, &size, "half_pixel");
            let mask = graph.flat(&mask);
            flat = graph.mul(&flat, &mask);
            shown = Some(graph.reduce("ReduceMean", &mask, &[2]));
        }
        let stride = graph.ints(&[STRIDE as i64]);
        let pixels = graph.mul(grid, &stride);
        let sides = rounded_up(graph, &pixels, 4 << stage.index());
        let cells = graph.reduce("ReduceProd", &sides, &[0]);
        let (share, one) = (graph.ints(&[HIGHEST as i64]), graph.ints(&[1]));
        let most = graph.div(&cells, &share);
        let most = graph.op("Max", &[&most, &one], &[]);
        let highest = graph.top(&flat, &most, true);
        let mut mean = graph.reduce("ReduceMean", &flat, &[2]);
        if let Some(shown) = shown {
            mean = graph.div(&mean, &shown);
        }
        let highest = graph.reduce("ReduceMean", &highest, &[2]);
        for part in [mean, highest] {
            parts.push(graph.reshape(&part, &[1, -1]));
        }
    }
    let parts: Vec<&Value> = parts.iter().collect();
    graph.op("Concat", &parts, &[("axis", Attribute::Int(1))])
}
