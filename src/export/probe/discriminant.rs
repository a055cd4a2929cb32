//! The linear discriminant of an image's own cells.

use super::super::graph::{Attribute, BOOL, DOUBLE, FLOAT, Graph, INT, Side, Value};
use crate::method::probe::RIDGE;

/// Share of the first residual, squared, at which the solution is exact but for rounding.
const EXACT: f64 = 1e-26;

/// The discriminant of a guessed foreground: cells `[1, D, h, w]` and guess `[1, 1, h, w]` to
/// `[1, 1, h, w]`, in double precision.
pub(super) fn log_odds(
    graph: &mut Graph,
    cells: &Value,
    guess: &Value,
    dimensions: usize,
) -> Value {
    let shape = graph.op("Shape", &[guess], &[]);
    let cells = graph.cast(cells, DOUBLE);
    let cells = graph.reshape(&cells, &[dimensions as i64, -1]);
    let by_cell = graph.op("Transpose", &[&cells], &[]);
    let guess = graph.cast(guess, DOUBLE);
    let inside = graph.reshape(&guess, &[-1, 1]);
    let one = graph.double(1.0);
    let outside = graph.sub(&one, &inside);
    // Means and weights of both sides: what the two means explain of Σ f fᵀ is not spread.
    let mut within = graph.matmul(&cells, &by_cell);
    let mut means = Vec::new();
    let mut count = graph.doubles(&[1, 1], &[0.0]);
    for side in [&inside, &outside] {
        let weight = graph.reduce("ReduceSum", side, &[0, 1]);
        let sum = graph.matmul(&cells, side);
        let mean = graph.div(&sum, &weight);
        let row = graph.op("Transpose", &[&mean], &[]);
        let product = graph.matmul(&mean, &row);
        let explained = graph.mul(&product, &weight);
        within = graph.sub(&within, &explained);
        count = graph.add(&count, &weight);
        means.push(mean);
    }
    let within = graph.div(&within, &count);
    let identity: Vec<f64> = (0..dimensions * dimensions)
        .map(|i| if i % (dimensions + 1) == 0 { f64::from(RIDGE) } else { 0.0 })
        .collect();
    let ridge = graph.doubles(&[dimensions, dimensions], &identity);
    let within = graph.add(&within, &ridge);
    let apart = graph.sub(&means[0], &means[1]);
    let direction = solve(graph, &within, &apart, dimensions);
    let products = graph.matmul(&by_cell, &direction);
    let middle = graph.add(&means[0], &means[1]);
    let middle = graph.mul(&middle, &direction);
    let middle = graph.reduce("ReduceSum", &middle, &[0, 1]);
    let half = graph.double(0.5);
    let middle = graph.mul(&middle, &half);
    let found = graph.sub(&products, &middle);
    let found = graph.cast(&found, FLOAT);
    graph.op("Reshape", &[&found, &shape], &[])
}

/// Solves `A x = b` by conjugate gradients: A is symmetric and positive, and small.
///
/// Exact after as many rounds as there are dimensions, up to rounding, and usually long before.
fn solve(graph: &mut Graph, matrix: &Value, right: &Value, dimensions: usize) -> Value {
    let square = graph.mul(right, right);
    let square = graph.reduce("ReduceSum", &square, &[0, 1]);
    let share = graph.double(EXACT);
    let enough = graph.mul(&square, &share);
    let goes_on = graph.op("Greater", &[&square, &enough], &[]);
    let goes_on = graph.reshape(&goes_on, &[]);
    let rounds = graph.ints(&[2 * dimensions as i64]);
    let rounds = graph.reshape(&rounds, &[]);
    let start = graph.sub(right, right);

    let mut round = Graph::inner("solve_");
    let vector = [dimensions, 1].map(Side::Fixed);
    let number = [Side::Fixed(1); 2];
    round.input("solve_round", INT, &[]);
    round.input("solve_before", BOOL, &[]);
    let x = round.input("solve_x", DOUBLE, &vector);
    let residual = round.input("solve_residual", DOUBLE, &vector);
    let along = round.input("solve_along", DOUBLE, &vector);
    let before = round.input("solve_square", DOUBLE, &number);
    let moved = round.matmul(matrix, &along);
    let energy = round.mul(&along, &moved);
    let energy = round.reduce("ReduceSum", &energy, &[0, 1]);
    let step = round.div(&before, &energy);
    let change = round.mul(&along, &step);
    let x = round.add(&x, &change);
    let change = round.mul(&moved, &step);
    let residual = round.sub(&residual, &change);
    let after = round.mul(&residual, &residual);
    let after = round.reduce("ReduceSum", &after, &[0, 1]);
    let ratio = round.div(&after, &before);
    let kept = round.mul(&along, &ratio);
    let along = round.add(&residual, &kept);
    let more = round.op("Greater", &[&after, &enough], &[]);
    let more = round.reshape(&more, &[]);
    round.output("solve_more", &more, BOOL, &[]);
    round.output("solve_next_x", &x, DOUBLE, &vector);
    round.output("solve_next_residual", &residual, DOUBLE, &vector);
    round.output("solve_next_along", &along, DOUBLE, &vector);
    round.output("solve_next_square", &after, DOUBLE, &number);

    let body = ("body", Attribute::Graph(round.encode("solve")));
    let [x, _, _, _] =
        graph.ops("Loop", &[&rounds, &goes_on, &start, right, right, &square], &[body]);
    x
}
