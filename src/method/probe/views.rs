//! Several views of an image, whose features are averaged.

use super::features::StageMap;
use crate::config::{ProbeConfig, Stage, Views};

/// Sides of a resized image are multiples of this, so that the cells of all stages are whole.
const MULTIPLE: f64 = 32.0;

/// A view: the image resized, then mirrored left and right or not, then rotated by quarter turns.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct View {
    scale: f64,
    mirrored: bool,
    /// Quarter turns, clockwise.
    turns: u8,
}

/// The views that settings ask for, at least one.
pub(super) fn views(config: &ProbeConfig) -> Vec<View> {
    let (mirrors, turns): (&[bool], u8) = match config.views {
        Views::One => (&[false], 1),
        Views::Mirrored => (&[false, true], 1),
        Views::Turned => (&[false, true], 4),
    };
    let mut views = Vec::new();
    for &scale in &config.scales {
        for &mirrored in mirrors {
            views.extend((0..turns).map(|turns| View { scale, mirrored, turns }));
        }
    }
    views
}

impl View {
    /// The view of an image `[3, height, width]`, and its height and width.
    pub(super) fn apply(self, input: Vec<f32>, size: [usize; 2]) -> (Vec<f32>, [usize; 2]) {
        if self == (Self { scale: 1.0, mirrored: false, turns: 0 }) {
            return (input, size);
        }
        let planes = input.chunks_exact(size[0] * size[1]);
        let mut turned = size;
        let values = planes
            .flat_map(|plane| {
                let mut map = StageMap { grid: size, channels: 1, values: plane.to_vec() };
                if self.scale != 1.0 {
                    map = map.resized(size.map(|side| self.scaled(side)));
                }
                if self.mirrored {
                    map = map.mirrored();
                }
                (0..self.turns).for_each(|_| map = map.turned());
                turned = map.grid;
                map.values
            })
            .collect();
        (values, turned)
    }

    fn scaled(self, side: usize) -> usize {
        ((side as f64 * self.scale / MULTIPLE).round().max(1.0) * MULTIPLE) as usize
    }

    /// Brings the map of a stage for this view back to the orientation and grid of the image, which
    /// has this `size`.
    pub(super) fn undo(self, mut map: StageMap, stage: Stage, size: [usize; 2]) -> StageMap {
        (0..(4 - self.turns) % 4).for_each(|_| map = map.turned());
        if self.mirrored {
            map = map.mirrored();
        }
        if self.scale == 1.0 {
            return map;
        }
        map.resized(size.map(|side| side.div_ceil(4 << stage.index())))
    }
}

impl StageMap {
    /// Left and right swapped.
    fn mirrored(&self) -> Self {
        let [rows, columns] = self.grid;
        self.rearranged([rows, columns], |row, column| (row, columns - 1 - column))
    }

    /// Turned by a quarter, clockwise.
    fn turned(&self) -> Self {
        let [rows, columns] = self.grid;
        self.rearranged([columns, rows], |row, column| (rows - 1 - column, row))
    }

    fn rearranged(&self, grid: [usize; 2], from: impl Fn(usize, usize) -> (usize, usize)) -> Self {
        let mut values = Vec::with_capacity(self.values.len());
        for row in 0..grid[0] {
            for column in 0..grid[1] {
                let (row, column) = from(row, column);
                let start = (row * self.grid[1] + column) * self.channels;
                values.extend_from_slice(&self.values[start..][..self.channels]);
            }
        }
        Self { grid, channels: self.channels, values }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(views: Views, scales: &[f64]) -> Vec<View> {
        super::views(&ProbeConfig { views, scales: scales.to_vec(), ..ProbeConfig::default() })
    }

    #[test]
    fn every_view_can_be_turned_back() {
        let map =
            StageMap { grid: [2, 3], channels: 2, values: (0..12).map(|i| i as f32).collect() };
        let views = of(Views::Turned, &[1.0]);
        assert_eq!((of(Views::One, &[1.0]).len(), views.len()), (1, 8));
        assert_eq!(of(Views::Mirrored, &[1.0, 1.5]).len(), 4);
        let mut seen = Vec::new();
        for view in views {
            let mut turned = if view.mirrored { map.mirrored() } else { map.clone() };
            (0..view.turns).for_each(|_| turned = turned.turned());
            assert_eq!(view.undo(turned.clone(), Stage::Layer3, [32, 48]), map);
            assert!(!seen.contains(&turned), "no view comes twice");
            seen.push(turned);
        }
    }

    #[test]
    fn a_quarter_turn_is_clockwise() {
        let view = View { scale: 1.0, mirrored: false, turns: 1 };
        let plane = vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
        let (turned, size) = view.apply([plane.clone(), plane.clone(), plane].concat(), [2, 3]);
        assert_eq!((&turned[..6], size), (&[4.0, 1.0, 5.0, 2.0, 6.0, 3.0][..], [3, 2]));
    }

    #[test]
    fn a_resized_view_is_brought_back_to_the_cells_of_the_image() {
        let view = View { scale: 1.5, mirrored: false, turns: 0 };
        let (input, size) = view.apply(vec![0.25; 3 * 64 * 96], [64, 96]);
        assert_eq!((size, input.len()), ([96, 160], 3 * 96 * 160));
        assert!(input.iter().all(|&value| (value - 0.25).abs() < 1e-6));
        let map = StageMap { grid: [6, 10], channels: 1, values: vec![2.0; 60] };
        let back = view.undo(map, Stage::Layer3, [64, 96]);
        assert_eq!((back.grid, back.values), ([4, 6], vec![2.0; 24]));
    }
}
