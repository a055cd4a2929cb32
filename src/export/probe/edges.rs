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
    let mut snapped = start.clone();
    for _ in 0..ROUNDS {
        snapped = guided(graph, &colours, &snapped, &flatness);
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

/// One round: around each cell the map is a linear function of the colours.
fn guided(graph: &mut Graph, colours: &Value, map: &Value, flatness: &Value) -> Value {
    let [r, g, b] = [0, 1, 2].map(|channel| part(graph, colours, channel));
    let p = map.clone();
    let pairs = [(&r, &r), (&r, &g), (&r, &b), (&g, &g), (&g, &b), (&b, &b)];
    let with_map = [(&r, &p), (&g, &p), (&b, &p)];
    let products: Vec<Value> =
        pairs.into_iter().chain(with_map).map(|(a, b)| graph.mul(a, b)).collect();
    let all: Vec<&Value> = [colours, &p].into_iter().chain(&products).collect();
    let moments = graph.op("Concat", &all, &[("axis", Attribute::Int(1))]);
    let means = square_mean(graph, &moments);
    let means = graph.cast(&means, DOUBLE);
    let mean: Vec<Value> = (0..13).map(|index| part(graph, &means, index)).collect();

    // Covariances of the colours, with ε on the diagonal, and with the map.
    let mut covariance = |product: usize, a: usize, b: usize| {
        let explained = graph.mul(&mean[a], &mean[b]);
        graph.sub(&mean[product], &explained)
    };
    let [rr, rg, rb, gg, gb, bb] =
        [(4, 0, 0), (5, 0, 1), (6, 0, 2), (7, 1, 1), (8, 1, 2), (9, 2, 2)]
            .map(|(product, a, b)| covariance(product, a, b));
    let along = [(10, 0), (11, 1), (12, 2)].map(|(product, a)| covariance(product, a, 3));
    let [rr, gg, bb] = [rr, gg, bb].map(|variance| graph.add(&variance, flatness));
    let slope = solve(graph, [&rr, &rg, &rb, &gg, &gb, &bb], &along);
    let mut constant = mean[3].clone();
    for (slope, mean) in slope.iter().zip(&mean) {
        let share = graph.mul(slope, mean);
        constant = graph.sub(&constant, &share);
    }
    let all = [&slope[0], &slope[1], &slope[2], &constant];
    let coefficients = graph.op("Concat", &all, &[("axis", Attribute::Int(1))]);
    let coefficients = graph.cast(&coefficients, FLOAT);
    let coefficients = square_mean(graph, &coefficients);
    let mut snapped = part(graph, &coefficients, 3);
    for (channel, colour) in [&r, &g, &b].into_iter().enumerate() {
        let slope = part(graph, &coefficients, channel as i64);
        let share = graph.mul(&slope, colour);
        snapped = graph.add(&snapped, &share);
    }
    let (zero, one) = (graph.float(0.0), graph.float(1.0));
    graph.clip(&snapped, &zero, &one)
}

/// `A⁻¹ y` of a symmetric matrix `[aa, ab, ac, bb, bc, cc]`, by its cofactors.
fn solve(
    graph: &mut Graph,
    [aa, ab, ac, bb, bc, cc]: [&Value; 6],
    right: &[Value; 3],
) -> [Value; 3] {
    let mut minor = |a: &Value, b: &Value, c: &Value, d: &Value| {
        let (ad, bc) = (graph.mul(a, d), graph.mul(b, c));
        graph.sub(&ad, &bc)
    };
    // Of the symmetric matrix of cofactors, the upper half.
    let (c00, c01, c02) = (minor(bb, bc, bc, cc), minor(ac, ab, cc, bc), minor(ab, ac, bb, bc));
    let (c11, c12, c22) = (minor(aa, ac, ac, cc), minor(ab, aa, bc, ac), minor(aa, ab, ab, bb));
    let mut dot = |row: [&Value; 3], column: [&Value; 3]| {
        let terms: Vec<Value> = row.iter().zip(column).map(|(a, b)| graph.mul(a, b)).collect();
        graph.op("Sum", &terms.iter().collect::<Vec<_>>(), &[])
    };
    let determinant = dot([aa, ab, ac], [&c00, &c01, &c02]);
    let right = right.each_ref();
    let rows = [[&c00, &c01, &c02], [&c01, &c11, &c12], [&c02, &c12, &c22]];
    let products = rows.map(|row| dot(row, right));
    products.map(|product| graph.div(&product, &determinant))
}

/// One channel of `[1, C, h, w]`.
fn part(graph: &mut Graph, values: &Value, channel: i64) -> Value {
    let (from, to) = (graph.ints(&[channel]), graph.ints(&[channel + 1]));
    graph.slice(values, &from, &to, &[1])
}

/// The mean of the square around each cell, as far as it lies on the grid.
fn square_mean(graph: &mut Graph, values: &Value) -> Value {
    let window = [
        ("kernel_shape", Attribute::Ints(vec![2 * RADIUS as i64 + 1; 2])),
        ("pads", Attribute::Ints(vec![RADIUS as i64; 4])),
    ];
    graph.op("AveragePool", &[values], &window)
}
