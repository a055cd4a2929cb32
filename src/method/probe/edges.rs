//! A map snapped to the edges of its image, on a grid of a cell every 4 pixels.
//!
//! Features have large receptive fields, so that a map ends some way beyond its object. Colours
//! change where the object ends: around each cell the map p is fitted by a linear function of the
//! colours I (He, Sun and Tang, *Guided image filtering*, 2013),
//!
//! ```text
//! a = (cov(I) + ε)⁻¹ cov(I, p),   b = mean p − a·mean I,   q = mean a · I + mean b
//! ```
//!
//! with means over small squares. ε is a share of the variance of the colours in the whole image,
//! so that brightness and contrast change nothing. Where colours are constant p is only smoothed.

use std::ops::Range;

use nalgebra::{Matrix3, Vector3};
use rayon::prelude::*;

use super::features::StageMap;

/// Pixels of input per cell.
pub(crate) const STRIDE: usize = 4;
/// Cells from the middle of a square to its border.
pub(crate) const RADIUS: usize = 3;
/// ε as a share of the mean variance of the colours.
pub(crate) const FLATNESS: f32 = 0.01;
/// How often the filter is applied.
pub(crate) const ROUNDS: usize = 8;
/// Rows that are computed together, so that a large image needs little memory beside its map.
const BAND: usize = 64;
/// The image counts as one colour if ε is not above this.
pub(crate) const ONE_COLOUR: f32 = 1e-6;
/// Probabilities are never closer to 0 and 1, so that their odds are finite.
pub(crate) const MIN_PROBABILITY: f32 = 1e-4;

/// The colours of an image, cell by cell.
#[derive(Debug)]
pub(super) struct Colours {
    grid: [usize; 2],
    /// `[rows, columns, 3]`
    values: Vec<f32>,
}

impl Colours {
    /// Black, for an image of height and width `size` whose pixels are yet to be
    /// [added](Self::add).
    pub(super) fn new(size: [usize; 2]) -> Self {
        let grid = size.map(|side| side.div_ceil(STRIDE));
        Self { grid, values: vec![0.0; grid[0] * grid[1] * 3] }
    }

    /// Adds the pixels of a window `[3, height, width]` that lies at `corner` of the image; of its
    /// rows and columns only those in `inner`, which must start at borders of cells.
    pub(super) fn add(
        &mut self,
        window: &[f32],
        [height, width]: [usize; 2],
        corner: [usize; 2],
        inner: [Range<usize>; 2],
    ) {
        let [rows, columns] = inner;
        for top in rows.clone().step_by(STRIDE) {
            for left in columns.clone().step_by(STRIDE) {
                let (bottom, right) = ((top + STRIDE).min(height), (left + STRIDE).min(width));
                let cell = (corner[0] + top) / STRIDE * self.grid[1] + (corner[1] + left) / STRIDE;
                let count = ((bottom - top) * (right - left)) as f32;
                for (channel, pixels) in window.chunks_exact(height * width).enumerate() {
                    let lines = (top..bottom).flat_map(|row| &pixels[row * width..][left..right]);
                    self.values[3 * cell + channel] = lines.sum::<f32>() / count;
                }
            }
        }
    }

    /// Resizes a map of probabilities to the grid of the colours, and snaps it to their edges.
    pub(super) fn snap(&self, map: &StageMap) -> StageMap {
        let mut map = map.resized(self.grid);
        let flatness = FLATNESS * self.variance();
        if flatness > ONE_COLOUR {
            let around = self.local_colours(flatness);
            for _ in 0..ROUNDS {
                map.values = self.guided(&around, &map.values);
            }
        }
        map
    }

    /// The variance of each channel, averaged over the channels.
    fn variance(&self) -> f32 {
        let count = (self.values.len() / 3).max(1) as f64;
        let (mut sums, mut squares) = ([0.0_f64; 3], [0.0_f64; 3]);
        for colour in self.values.chunks_exact(3) {
            for channel in 0..3 {
                let value = f64::from(colour[channel]);
                sums[channel] += value;
                squares[channel] += value * value;
            }
        }
        let variance = |channel: usize| squares[channel] / count - (sums[channel] / count).powi(2);
        ((0..3).map(variance).sum::<f64>() / 3.0) as f32
    }

    fn local_colours(&self, flatness: f32) -> Vec<LocalColours> {
        self.by_bands(RADIUS, |cells, grid| local_colours(self.colours_of(&cells), grid, flatness))
    }

    /// Applies the filter once.
    fn guided(&self, around: &[LocalColours], map: &[f32]) -> Vec<f32> {
        // Means of means reach two radii beyond a band.
        self.by_bands(2 * RADIUS, |cells, grid| {
            guided(self.colours_of(&cells), &around[cells.clone()], &map[cells], grid)
        })
    }

    fn colours_of(&self, cells: &Range<usize>) -> &[f32] {
        &self.values[3 * cells.start..3 * cells.end]
    }

    /// Computes the cells of all rows in bands, in parallel; `compute` is given each band with a
    /// `margin` of rows on both sides, whose results are dropped.
    fn by_bands<T: Send>(
        &self,
        margin: usize,
        compute: impl Fn(Range<usize>, [usize; 2]) -> Vec<T> + Sync,
    ) -> Vec<T> {
        let [rows, columns] = self.grid;
        let bands: Vec<usize> = (0..rows).step_by(BAND).collect();
        let computed = bands.into_par_iter().flat_map_iter(|from| {
            let to = (from + BAND).min(rows);
            let seen = from.saturating_sub(margin)..(to + margin).min(rows);
            let cells = seen.start * columns..seen.end * columns;
            let first = (from - seen.start) * columns;
            compute(cells, [seen.len(), columns])
                .into_iter()
                .skip(first)
                .take((to - from) * columns)
        });
        computed.collect()
    }
}

/// Statistics of the colours around a cell, which are the same in every round.
#[derive(Debug, Clone, Copy, PartialEq)]
struct LocalColours {
    /// mean I
    mean: Vector3<f32>,
    /// (cov(I) + ε)⁻¹
    inverse: Matrix3<f32>,
}

fn local_colours(colours: &[f32], grid: [usize; 2], flatness: f32) -> Vec<LocalColours> {
    let moments = |colour: &[f32]| {
        let [r, g, b] = [colour[0], colour[1], colour[2]];
        [r, g, b, r * r, r * g, r * b, g * g, g * b, b * b]
    };
    let moments: Vec<[f32; 9]> = colours.chunks_exact(3).map(moments).collect();
    let of_means = |[r, g, b, rr, rg, rb, gg, gb, bb]: [f32; 9]| {
        let mean = Vector3::new(r, g, b);
        let square = Matrix3::new(rr, rg, rb, rg, gg, gb, rb, gb, bb);
        let within = square - mean * mean.transpose() + Matrix3::identity() * flatness;
        // ε makes the matrix positive definite; only rounding errors above it could leave no
        // inverse.
        LocalColours { mean, inverse: within.try_inverse().unwrap_or_else(Matrix3::zeros) }
    };
    square_means(&moments, grid).into_iter().map(of_means).collect()
}

/// Applies the filter once to some rows.
fn guided(colours: &[f32], around: &[LocalColours], map: &[f32], grid: [usize; 2]) -> Vec<f32> {
    let colours = || colours.chunks_exact(3).map(|colour| [colour[0], colour[1], colour[2]]);
    let products = |([r, g, b], &p): ([f32; 3], &f32)| [r * p, g * p, b * p, p];
    let products: Vec<[f32; 4]> = colours().zip(map).map(products).collect();
    let linear = |([rp, gp, bp, p], LocalColours { mean, inverse }): ([f32; 4], &_)| {
        let slope = inverse * (Vector3::new(rp, gp, bp) - mean * p);
        [slope.x, slope.y, slope.z, p - slope.dot(mean)]
    };
    let coefficients: Vec<[f32; 4]> =
        square_means(&products, grid).into_iter().zip(around).map(linear).collect();
    let means = square_means(&coefficients, grid);
    let snapped = colours().zip(&means).map(|([r, g, b], [by_r, by_g, by_b, constant])| {
        (by_r * r + by_g * g + by_b * b + constant).clamp(0.0, 1.0)
    });
    snapped.collect()
}

/// The mean over the square around each cell, cut off at the borders of the grid.
fn square_means<const N: usize>(values: &[[f32; N]], [rows, columns]: [usize; 2]) -> Vec<[f32; N]> {
    let around = |place: usize, length: usize| {
        place.saturating_sub(RADIUS)..(place + RADIUS + 1).min(length)
    };
    let along_rows: Vec<[f32; N]> = values
        .chunks_exact(columns)
        .flat_map(|row| (0..columns).map(move |at| mean(row[around(at, columns)].iter())))
        .collect();
    let mut means = Vec::with_capacity(values.len());
    for row in 0..rows {
        let seen = around(row, rows);
        means.extend((0..columns).map(|column| {
            let lines = &along_rows[seen.start * columns + column..];
            mean(lines.iter().step_by(columns).take(seen.len()))
        }));
    }
    means
}

fn mean<'a, const N: usize>(values: impl ExactSizeIterator<Item = &'a [f32; N]>) -> [f32; N] {
    let share = 1.0 / values.len() as f32;
    let sum = values.fold([0.0; N], |sum, value| std::array::from_fn(|i| sum[i] + value[i]));
    sum.map(|sum| sum * share)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// An image whose right half is brighter by `contrast`, from column 18 on.
    fn half(size: [usize; 2], contrast: f32) -> Vec<f32> {
        let [height, width] = size;
        let pixel = |at: usize| if at % width < 18 { 0.3 } else { 0.3 + contrast };
        (0..3 * height * width).map(pixel).collect()
    }

    fn colours(image: &[f32], size: [usize; 2]) -> Colours {
        let mut colours = Colours::new(size);
        colours.add(image, size, [0, 0], [0..size[0], 0..size[1]]);
        colours
    }

    /// The map snapped to the edges of the colours, on their grid.
    fn snapped(colours: &Colours, values: Vec<f32>, grid: [usize; 2]) -> Vec<f32> {
        let found = colours.snap(&StageMap { grid, channels: 1, values });
        assert_eq!(found.grid, colours.grid);
        found.values
    }

    #[test]
    fn a_cell_has_the_mean_colour_of_its_pixels() {
        let size = [5, 6];
        let image: Vec<f32> = (0..90).map(|at| at as f32).collect();
        let colours = colours(&image, size);
        assert_eq!(colours.grid, [2, 2]);
        // Rows 0 to 3 and columns 0 to 3 of the first channel: (0 + 3)/2 + 6·(0 + 3)/2.
        assert_eq!(colours.values[0], 10.5);
        // The last row, columns 4 and 5, of the third channel: 60 + 24 + 4.5.
        assert_eq!(colours.values[3 * 3 + 2], 88.5);
    }

    #[test]
    fn windows_give_the_colours_of_the_whole() {
        let size = [8, 24];
        let image: Vec<f32> = (0..3 * 8 * 24).map(|at| ((at * 37) % 101) as f32).collect();
        let mut parts = Colours::new(size);
        for (left, inner) in [(0, 0..12), (8, 4..16)] {
            let rows = image.chunks_exact(24).flat_map(|row| &row[left..left + 16]);
            let window: Vec<f32> = rows.copied().collect();
            parts.add(&window, [8, 16], [0, left], [0..8, inner]);
        }
        assert_eq!(parts.values, colours(&image, size).values);
    }

    #[test]
    fn a_map_that_ends_beyond_its_object_ends_at_the_edge() {
        // The object begins at column 32 of pixels, cell 8 of the colours.
        let size = [32, 64];
        let pixel = |at: usize| if at % 64 < 32 { 0.2 } else { 0.8 };
        let image: Vec<f32> = (0..3 * 32 * 64).map(pixel).collect();
        let map: Vec<f32> =
            (0..4 * 8).map(|at| [0.0, 0.1, 0.3, 0.55, 0.8, 1.0, 1.0, 1.0][at % 8]).collect();
        let found = snapped(&colours(&image, size), map, [4, 8]);
        let row = &found[4 * 16..5 * 16];
        // Without the image the map is above one half from cell 6 or 7 on.
        assert!(row[7] < 0.5 && row[8] > 0.5, "{row:?}");
    }

    #[test]
    fn one_colour_leaves_the_map() {
        let image = vec![0.5; 3 * 16 * 16];
        let found = snapped(&colours(&image, [16, 16]), vec![0.25; 4], [2, 2]);
        assert_eq!(found, [0.25; 16]);
    }

    #[test]
    fn two_cells_are_fitted_by_hand() {
        // All channels are −1 and 1: cov(I) = 11ᵀ, cov(I, p) = ½·1, and with ε = 1 a = ⅛·1.
        let colours = [-1.0, -1.0, -1.0, 1.0, 1.0, 1.0];
        let around = local_colours(&colours, [1, 2], 1.0);
        // b = ½: half of it ± three channels of ⅛.
        let found = guided(&colours, &around, &[0.0, 1.0], [1, 2]);
        assert!((found[0] - 0.125).abs() < 1e-6 && (found[1] - 0.875).abs() < 1e-6, "{found:?}");
    }

    #[test]
    fn bands_join_without_a_seam() {
        let size = [4 * (BAND + 9), 16];
        let image: Vec<f32> =
            (0..3 * size[0] * size[1]).map(|at| ((at * 31) % 97) as f32).collect();
        let colours = colours(&image, size);
        let map: Vec<f32> = (0..(BAND + 9) * 4).map(|at| ((at * 7) % 11) as f32 / 10.0).collect();
        let around = local_colours(&colours.values, colours.grid, 3.0);
        assert_eq!(colours.local_colours(3.0), around);
        let whole = guided(&colours.values, &around, &map, colours.grid);
        assert_eq!(colours.guided(&around, &map), whole);
    }

    proptest! {
        #[test]
        fn brightness_and_contrast_change_nothing(gain in 0.2_f32..4.0, offset in -2.0_f32..2.0) {
            let size = [24, 40];
            let map: Vec<f32> = (0..15).map(|at| ((at * 7) % 11) as f32 / 10.0).collect();
            let image = half(size, 0.4);
            let other: Vec<f32> = image.iter().map(|value| gain * value + offset).collect();
            let one = snapped(&colours(&image, size), map.clone(), [3, 5]);
            let two = snapped(&colours(&other, size), map, [3, 5]);
            prop_assert!(one.iter().zip(&two).all(|(a, b)| (a - b).abs() < 2e-2));
        }

        #[test]
        fn the_opposite_map_snaps_to_the_opposite(seed in 0_usize..50) {
            let size = [24, 40];
            let map: Vec<f32> = (0..15).map(|at| ((at * 7 + seed) % 11) as f32 / 10.0).collect();
            let opposite: Vec<f32> = map.iter().map(|value| 1.0 - value).collect();
            let colours = colours(&half(size, 0.4), size);
            let one = snapped(&colours, map, [3, 5]);
            let two = snapped(&colours, opposite, [3, 5]);
            prop_assert!(one.iter().zip(&two).all(|(a, b)| (a + b - 1.0).abs() < 1e-3));
        }
    }
}
