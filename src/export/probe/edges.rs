//! A map snapped to the edges of its image by a guided filter.

use super::super::graph::{Attribute, Kind, Value};
use crate::method::probe::edges::{FLATNESS, MIN_PROBABILITY, ONE_COLOUR, RADIUS, ROUNDS, STRIDE};

/// Probabilities `[1, 1, h, w]` snapped to the edges of `[1, 3, H, W]`, as logarithms of odds on
/// the grid of the colours.
pub(super) fn snap<'g>(images: Value<'g>, map: Value<'g>) -> Value<'g> {
    let side = || Attribute::Ints(vec![STRIDE as i64; 2]);
    let cells = [("kernel_shape", side()), ("strides", side()), ("ceil_mode", Attribute::Int(1))];
    let colours = images.op("AveragePool", &[], &cells);
    let start = map.resize(colours.size(), "half_pixel");
    let flatness = flatness(colours);
    let around = LocalColours::of(colours, flatness);
    let snapped = (0..ROUNDS).fold(start, |map, _| guided(&around, map));
    // An image of one colour has no edges.
    let snapped = snapped.kept(flatness.greater(ONE_COLOUR), start);
    let probability = snapped.clip(MIN_PROBABILITY, 1.0 - MIN_PROBABILITY);
    (probability / (1.0 - probability)).log()
}

/// ε: a share of the mean variance of the channels, `[1, 1, 1, 1]`.
fn flatness(colours: Value<'_>) -> Value<'_> {
    let colours = colours.cast(Kind::Double);
    let mean = colours.reduce("ReduceMean", &[2, 3]);
    let variance = (colours * colours).reduce("ReduceMean", &[2, 3]) - mean * mean;
    variance.reduce("ReduceMean", &[1]) * FLATNESS
}

/// Statistics of the colours around each cell, which are the same in every round.
struct LocalColours<'g> {
    /// I
    colours: [Value<'g>; 3],
    /// mean I
    means: [Value<'g>; 3],
    /// (cov(I) + ε)⁻¹
    inverse: [[Value<'g>; 3]; 3],
}

impl<'g> LocalColours<'g> {
    fn of(colours: Value<'g>, flatness: Value<'g>) -> Self {
        let colours = [0, 1, 2].map(|channel| part(colours, channel));
        let [r, g, b] = colours;
        let moments = [r, g, b, r * r, r * g, r * b, g * g, g * b, b * b];
        let [r, g, b, rr, rg, rb, gg, gb, bb] = square_means(&moments);
        // The covariances, with ε on the diagonal.
        let inverse = inverse([
            rr - r * r + flatness,
            rg - r * g,
            rb - r * b,
            gg - g * g + flatness,
            gb - g * b,
            bb - b * b + flatness,
        ]);
        Self { colours, means: [r, g, b], inverse }
    }
}

/// One round: around each cell the map is a linear function of the colours.
fn guided<'g>(around: &LocalColours<'g>, map: Value<'g>) -> Value<'g> {
    let LocalColours { colours: [r, g, b], means, inverse } = *around;
    let [products @ .., mean]: [Value<'g>; 4] = square_means(&[r * map, g * map, b * map, map]);
    let along: [Value<'g>; 3] =
        std::array::from_fn(|channel| products[channel] - means[channel] * mean);
    let slopes = inverse.map(|row| dot(row, along));
    let [r_slope, g_slope, b_slope] = slopes;
    let coefficients = [r_slope, g_slope, b_slope, mean - dot(slopes, means)];
    let coefficients = coefficients.map(|values| values.cast(Kind::Float));
    let [slopes @ .., constant]: [Value<'g>; 4] = square_means(&coefficients);
    let colours = [r, g, b].map(|colour| colour.cast(Kind::Double));
    (dot(slopes, colours) + constant).cast(Kind::Float).clip(0.0, 1.0)
}

/// The inverse of a symmetric matrix `[aa, ab, ac, bb, bc, cc]`, by its cofactors.
fn inverse([aa, ab, ac, bb, bc, cc]: [Value<'_>; 6]) -> [[Value<'_>; 3]; 3] {
    let (c00, c01, c02) = (bb * cc - bc * bc, ac * bc - ab * cc, ab * bc - ac * bb);
    let (c11, c12, c22) = (aa * cc - ac * ac, ab * ac - aa * bc, aa * bb - ab * ab);
    let determinant = dot([aa, ab, ac], [c00, c01, c02]);
    let rows = [[c00, c01, c02], [c01, c11, c12], [c02, c12, c22]];
    rows.map(|row| row.map(|cofactor| cofactor / determinant))
}

fn dot<'g>(row: [Value<'g>; 3], column: [Value<'g>; 3]) -> Value<'g> {
    let [first, others @ ..]: [Value<'g>; 3] = std::array::from_fn(|i| row[i] * column[i]);
    first.op("Sum", &others, &[])
}

/// One channel of `[1, C, h, w]`.
fn part(values: Value<'_>, channel: i64) -> Value<'_> {
    let graph = values.graph();
    values.slice(graph.line(&[channel]), graph.line(&[channel + 1]), &[1])
}

/// The mean of the square around each cell, as far as it lies on the grid, in double precision.
fn square_means<'g, const N: usize>(values: &[Value<'g>; N]) -> [Value<'g>; N] {
    let (first, others) = values.split_first().expect("there are values");
    let window = [
        ("kernel_shape", Attribute::Ints(vec![2 * RADIUS as i64 + 1; 2])),
        ("pads", Attribute::Ints(vec![RADIUS as i64; 4])),
    ];
    let values = first.op("Concat", others, &[("axis", Attribute::Int(1))]);
    let means = values.op("AveragePool", &[], &window).cast(Kind::Double);
    std::array::from_fn(|channel| part(means, channel as i64))
}
