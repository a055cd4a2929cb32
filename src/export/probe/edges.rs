//! A map snapped to the edges of its image by a guided filter.

use super::super::graph::{Attribute, DOUBLE, FLOAT, Graph, Value};
use crate::method::probe::edges::{CERTAIN, FLATNESS, ONE_COLOUR, RADIUS, ROUNDS, STRIDE};

/// Probabilities `[1, 1, h, w]` snapped to the edges of `[1, 3, H, W]`, as logarithms of odds on
/// the grid of the colours.
pub(super) fn snap(graph: &mut Graph, images: &Value, map: &Value) -> Value {
    let whole = |n: usize, count: usize| Attribute::Ints(vec![n as i64; count]);
    let cells = [
        ("kernel_shape", whole(STRIDE, 2)),
        ("strides", whole(STRIDE, 2)),
        ("ceil_mode", Attribute::Int(1)),
    ];
    let colours = graph.op("AveragePool", &[images], &cells);
    let grid = graph.size(&colours);
    let start = graph.resize(map, &grid, "half_pixel");
    let flatness = flatness(graph, &colours);
    let around = Surroundings::of(graph, &colours, &flatness);
    let mut snapped = start.clone();
    for _ in 0..ROUNDS {
        snapped = guided(graph, &around, &snapped);
    }
    // An image of one colour has no edges.
    let least = graph.double(ONE_COLOUR.into());
    let varies = graph.op("Greater", &[&flatness, &least], &[]);
    let snapped = graph.op("Where", &[&varies, &snapped, &start], &[]);
    let (low, high) = (graph.float(CERTAIN.into()), graph.float((1.0 - CERTAIN).into()));
    let probability = graph.clip(&snapped, &low, &high);
    let one = graph.float(1.0);
    let against = graph.sub(&one, &probability);
    let odds = graph.div(&probability, &against);
    graph.op("Log", &[&odds], &[])
}

/// ε: a share of the mean variance of the channels, `[1, 1, 1, 1]`.
fn flatness(graph: &mut Graph, colours: &Value) -> Value {
    let colours = graph.cast(colours, DOUBLE);
    let mean = graph.reduce("ReduceMean", &colours, &[2, 3]);
    let square = graph.mul(&colours, &colours);
    let square = graph.reduce("ReduceMean", &square, &[2, 3]);
    let explained = graph.mul(&mean, &mean);
    let variance = graph.sub(&square, &explained);
    let variance = graph.reduce("ReduceMean", &variance, &[1]);
    let share = graph.double(FLATNESS.into());
    graph.mul(&variance, &share)
}

/// The colours around each cell, which are the same in every round.
struct Surroundings {
    /// I
    colours: [Value; 3],
    /// mean I
    means: [Value; 3],
    /// (cov(I) + ε)⁻¹
    inverse: [[Value; 3]; 3],
}

impl Surroundings {
    fn of(graph: &mut Graph, colours: &Value, flatness: &Value) -> Self {
        let colours = [0, 1, 2].map(|channel| part(graph, colours, channel));
        let [r, g, b] = &colours;
        let pairs = [(r, r), (r, g), (r, b), (g, g), (g, b), (b, b)];
        let products = pairs.map(|(one, other)| graph.mul(one, other));
        let moments: Vec<&Value> = colours.iter().chain(&products).collect();
        let [r, g, b, rr, rg, rb, gg, gb, bb] = square_means(graph, &moments);
        // The covariances, with ε on the diagonal.
        let pairs =
            [(rr, &r, &r), (rg, &r, &g), (rb, &r, &b), (gg, &g, &g), (gb, &g, &b), (bb, &b, &b)];
        let [rr, rg, rb, gg, gb, bb] = pairs.map(|(product, one, other)| {
            let explained = graph.mul(one, other);
            graph.sub(&product, &explained)
        });
        let [rr, gg, bb] = [rr, gg, bb].map(|variance| graph.add(&variance, flatness));
        let inverse = inverse(graph, [&rr, &rg, &rb, &gg, &gb, &bb]);
        Self { colours, means: [r, g, b], inverse }
    }
}

/// One round: around each cell the map is a linear function of the colours.
fn guided(graph: &mut Graph, around: &Surroundings, map: &Value) -> Value {
    let Surroundings { colours, means, inverse } = around;
    let products = colours.each_ref().map(|colour| graph.mul(colour, map));
    let moments: Vec<&Value> = products.iter().chain([map]).collect();
    let [products @ .., mean]: [Value; 4] = square_means(graph, &moments);
    let along: [Value; 3] = std::array::from_fn(|channel| {
        let explained = graph.mul(&means[channel], &mean);
        graph.sub(&products[channel], &explained)
    });
    let slopes = inverse.each_ref().map(|row| dot(graph, row, &along));
    let explained = dot(graph, &slopes, means);
    let constant = graph.sub(&mean, &explained);
    let coefficients = [&slopes[0], &slopes[1], &slopes[2], &constant];
    let coefficients = coefficients.map(|values| graph.cast(values, FLOAT));
    let [slopes @ .., constant]: [Value; 4] =
        square_means(graph, &coefficients.iter().collect::<Vec<_>>());
    let colours = colours.each_ref().map(|colour| graph.cast(colour, DOUBLE));
    let along = dot(graph, &slopes, &colours);
    let snapped = graph.add(&along, &constant);
    let snapped = graph.cast(&snapped, FLOAT);
    let (zero, one) = (graph.float(0.0), graph.float(1.0));
    graph.clip(&snapped, &zero, &one)
}

/// The inverse of a symmetric matrix `[aa, ab, ac, bb, bc, cc]`, by its cofactors.
fn inverse(graph: &mut Graph, [aa, ab, ac, bb, bc, cc]: [&Value; 6]) -> [[Value; 3]; 3] {
    let mut minor = |a: &Value, b: &Value, c: &Value, d: &Value| {
        let (ad, bc) = (graph.mul(a, d), graph.mul(b, c));
        graph.sub(&ad, &bc)
    };
    let first = [minor(bb, bc, bc, cc), minor(ac, ab, cc, bc), minor(ab, ac, bb, bc)];
    let (c11, c12, c22) = (minor(aa, ac, ac, cc), minor(ab, aa, bc, ac), minor(aa, ab, ab, bb));
    let row = [aa, ab, ac].map(Value::clone);
    let determinant = dot(graph, &row, &first);
    let [c00, c01, c02] = first;
    let rows = [[&c00, &c01, &c02], [&c01, &c11, &c12], [&c02, &c12, &c22]];
    rows.map(|row| row.map(|cofactor| graph.div(cofactor, &determinant)))
}

fn dot(graph: &mut Graph, row: &[Value; 3], column: &[Value; 3]) -> Value {
    let terms: Vec<Value> = row.iter().zip(column).map(|(a, b)| graph.mul(a, b)).collect();
    graph.op("Sum", &terms.iter().collect::<Vec<_>>(), &[])
}

/// One channel of `[1, C, h, w]`.
fn part(graph: &mut Graph, values: &Value, channel: i64) -> Value {
    let (from, to) = (graph.ints(&[channel]), graph.ints(&[channel + 1]));
    graph.slice(values, &from, &to, &[1])
}

/// The mean of the square around each cell, as far as it lies on the grid, in double precision.
fn square_means<const N: usize>(graph: &mut Graph, values: &[&Value]) -> [Value; N] {
    let values = graph.op("Concat", values, &[("axis", Attribute::Int(1))]);
    let window = [
        ("kernel_shape", Attribute::Ints(vec![2 * RADIUS as i64 + 1; 2])),
        ("pads", Attribute::Ints(vec![RADIUS as i64; 4])),
    ];
    let means = graph.op("AveragePool", &[&values], &window);
    let means = graph.cast(&means, DOUBLE);
    std::array::from_fn(|channel| part(graph, &means, channel as i64))
}
