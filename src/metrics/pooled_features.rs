//! Features of an image averaged over the foreground and the background of its score map.

use super::ScoreMap;

/// Features of an image: a vector for each cell of a grid laid evenly over it.
#[derive(Debug, Clone, PartialEq)]
pub struct FeatureGrid {
    /// Length of a vector.
    pub features: usize,
    /// Cells in a row.
    pub width: usize,
    /// Cells in a column.
    pub height: usize,
    /// `[features, height, width]`.
    pub values: Vec<f32>,
}

/// The averages of an image's features over foreground and background.
#[derive(Debug, Clone, PartialEq)]
pub struct PooledFeatures {
    /// `Σ R·f / Σ R` with the map's mean R over each cell.
    pub foreground: Vec<f32>,
    /// The same with 1 − R.
    pub background: Vec<f32>,
}

impl PooledFeatures {
    /// Averages features over the foreground and the background of a map.
    ///
    /// The features of an empty side are zeros.
    pub fn of(map: &ScoreMap<'_>, grid: &FeatureGrid) -> Self {
        let inside = cell_means(map, grid.width, grid.height);
        let outside: Vec<f64> = inside.iter().map(|share| 1.0 - share).collect();
        Self { foreground: average(grid, &inside), background: average(grid, &outside) }
    }
}

fn average(grid: &FeatureGrid, weights: &[f64]) -> Vec<f32> {
    let total: f64 = weights.iter().sum();
    // Rounding may leave a tiny weight on an empty side.
    if total <= 1e-6 * weights.len() as f64 {
        return vec![0.0; grid.features];
    }
    let mean = |values: &[f32]| {
        let sum: f64 = values.iter().zip(weights).map(|(&v, weight)| f64::from(v) * weight).sum();
        (sum / total) as f32
    };
    grid.values.chunks_exact(weights.len()).map(mean).collect()
}

/// The mean score within each cell; a cell has the pixels whose centre lies in it, and where
/// there are fewer pixels than cells the one pixel that its centre lies in.
fn cell_means(map: &ScoreMap<'_>, width: usize, height: usize) -> Vec<f64> {
    let (columns, rows) = (spans(map.width(), width), spans(map.height(), height));
    let mean = |(top, bottom): (usize, usize), (left, right): (usize, usize)| {
        let lines = map.scores()[top * map.width()..bottom * map.width()].chunks(map.width());
        let sum: f64 = lines.flat_map(|line| &line[left..right]).map(|&s| f64::from(s)).sum();
        sum / ((bottom - top) * (right - left)) as f64
    };
    rows.iter().flat_map(|&row| columns.iter().map(move |&column| mean(row, column))).collect()
}

/// The pixels of each cell along one side, from the first to the one after the last.
fn spans(pixels: usize, cells: usize) -> Vec<(usize, usize)> {
    // Pixel p has its centre in cell c where c ≤ (p + ½)·cells / pixels < c + 1.
    let first = |cell: usize| (2 * cell * pixels).saturating_sub(cells).div_ceil(2 * cells);
    let span = |cell| {
        let (start, end) = (first(cell), first(cell + 1).min(pixels));
        let middle = ((2 * cell + 1) * pixels / (2 * cells)).min(pixels - 1);
        if start < end { (start, end) } else { (middle, middle + 1) }
    };
    (0..cells).map(span).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn features_are_averaged_under_the_map_and_beside_it() {
        // Cells of two pixels: R is 1, ½ and 0.
        let scores = [1.0, 1.0, 1.0, 0.0, 0.0, 0.0];
        let map = ScoreMap::new(6, 1, &scores).unwrap();
        let values = vec![1.0, 2.0, 4.0, 0.0, 3.0, 0.0];
        let pooled =
            PooledFeatures::of(&map, &FeatureGrid { features: 2, width: 3, height: 1, values });
        // (1 + 1) / 1.5 and 1.5 / 1.5; (1 + 4) / 1.5 and 1.5 / 1.5.
        assert_eq!(pooled.foreground, [4.0 / 3.0, 1.0]);
        assert_eq!(pooled.background, [10.0 / 3.0, 1.0]);
    }

    #[test]
    fn a_side_that_is_not_there_is_zero() {
        let map = ScoreMap::new(2, 2, &[1.0; 4]).unwrap();
        let grid = FeatureGrid { features: 1, width: 2, height: 2, values: vec![3.0; 4] };
        let pooled = PooledFeatures::of(&map, &grid);
        assert_eq!((pooled.foreground, pooled.background), (vec![3.0], vec![0.0]));
    }

    #[test]
    fn every_pixel_is_in_one_cell_and_every_cell_has_one() {
        assert_eq!(spans(5, 2), [(0, 2), (2, 5)]);
        assert_eq!(spans(2, 3), [(0, 1), (1, 2), (1, 2)]);
        assert_eq!(spans(1, 2), [(0, 1), (0, 1)]);
    }

    proptest! {
        #[test]
        fn spans_follow_each_other(cells in 1_usize..40, more in 0_usize..200) {
            let spans = spans(cells + more, cells);
            prop_assert_eq!(spans[0].0, 0);
            prop_assert_eq!(spans[cells - 1].1, cells + more);
            prop_assert!(spans.windows(2).all(|pair| pair[0].1 == pair[1].0));
            prop_assert!(spans.iter().all(|span| span.0 < span.1));
        }

        #[test]
        fn the_complement_swaps_the_sides(scores in proptest::collection::vec(0.0_f32..=1.0, 12)) {
            let grid = FeatureGrid { features: 1, width: 2, height: 3, values: vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0] };
            let turned: Vec<f32> = scores.iter().map(|score| 1.0 - score).collect();
            let one = PooledFeatures::of(&ScoreMap::new(4, 3, &scores).unwrap(), &grid);
            let two = PooledFeatures::of(&ScoreMap::new(4, 3, &turned).unwrap(), &grid);
            prop_assert!((one.foreground[0] - two.background[0]).abs() < 1e-4);
            prop_assert!((one.background[0] - two.foreground[0]).abs() < 1e-4);
        }
    }
}
