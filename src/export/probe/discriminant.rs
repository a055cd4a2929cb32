//! The linear discriminant of an image's own cells.

use super::super::graph::{Attribute, Graph, Kind, Side, Value};
use crate::method::probe::RIDGE;

/// Share of the first residual, squared, at which the solution is exact but for rounding.
const EXACT: f64 = 1e-26;

/// The discriminant of a guessed foreground: cells `[1, D, h, w]` and guess `[1, 1, h, w]` to
/// `[1, 1, h, w]`, in double precision.
pub(super) fn log_odds<'g>(cells: Value<'g>, guess: Value<'g>, dimensions: usize) -> Value<'g> {
    let graph = cells.graph();
    let shape = guess.shape();
    let cells = cells.cast(Kind::Double).reshape(&[dimensions as i64, -1]);
    let by_cell = cells.transpose();
    let inside = guess.cast(Kind::Double).reshape(&[-1, 1]);
    // Means and weights of both sides: what the two means explain of Σ f fᵀ is not spread.
    let [foreground, background] = [inside, 1.0 - inside].map(|side| {
        let weight = sum(side);
        let mean = cells.matmul(side) / weight;
        (mean, weight, mean.matmul(mean.transpose()) * weight)
    });
    let within = cells.matmul(by_cell) - foreground.2 - background.2;
    let identity: Vec<f64> = (0..dimensions * dimensions)
        .map(|i| if i % (dimensions + 1) == 0 { f64::from(RIDGE) } else { 0.0 })
        .collect();
    let ridge = graph.constant(&[dimensions, dimensions], &identity);
    let within = within / (foreground.1 + background.1) + ridge;
    let direction = solve(within, foreground.0 - background.0, dimensions);
    let middle = sum((foreground.0 + background.0) * direction) * 0.5;
    let found = (by_cell.matmul(direction) - middle).cast(Kind::Float);
    found.op("Reshape", &[shape], &[])
}

/// The sum of a matrix, `[1, 1]`.
fn sum(matrix: Value<'_>) -> Value<'_> {
    matrix.reduce("ReduceSum", &[0, 1])
}

/// Solves `A x = b` by conjugate gradients: A is symmetric and positive, and small.
///
/// Exact after as many rounds as there are dimensions, up to rounding, and usually long before.
fn solve<'g>(matrix: Value<'g>, right: Value<'g>, dimensions: usize) -> Value<'g> {
    let graph = right.graph();
    let square = sum(right * right);
    let enough = square * EXACT;
    let goes_on = square.greater(enough).reshape(&[]);
    let rounds = graph.constant(&[], &[2 * dimensions as i64]);

    let round = Graph::inner("solve_");
    let vector = [dimensions, 1].map(Side::Fixed);
    let number = [Side::Fixed(1); 2];
    round.input("solve_round", Kind::Int, &[]);
    round.input("solve_before", Kind::Bool, &[]);
    let x = round.input("solve_x", Kind::Double, &vector);
    let residual = round.input("solve_residual", Kind::Double, &vector);
    let along = round.input("solve_along", Kind::Double, &vector);
    let before = round.input("solve_square", Kind::Double, &number);
    let moved = round.outer(matrix).matmul(along);
    let step = before / sum(along * moved);
    let x = x + along * step;
    let residual = residual - moved * step;
    let after = sum(residual * residual);
    let along = residual + along * (after / before);
    let more = after.greater(round.outer(enough)).reshape(&[]);
    round.output("solve_more", more, &[]);
    round.output("solve_next_x", x, &vector);
    round.output("solve_next_residual", residual, &vector);
    round.output("solve_next_along", along, &vector);
    round.output("solve_next_square", after, &number);

    let body = ("body", Attribute::Graph(round.encode("solve")));
    let start = [rounds, goes_on, right.zeros(), right, right, square];
    let [x, _, _, _] = graph.ops("Loop", &start, &[body]);
    x
}
