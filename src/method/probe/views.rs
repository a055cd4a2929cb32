//! Several views of an image, whose features are averaged.

use super::features::StageMap;
use crate::config::Views;

/// A view: the image mirrored left and right or not, then turned by quarters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct View {
    mirrored: bool,
    /// Quarter turns, clockwise.
    turns: u8,
}

impl Views {
    /// The views, the image as it is first.
    pub(super) fn list(self) -> Vec<View> {
        let (mirrors, turns): (&[bool], u8) = match self {
            Self::One => (&[false], 1),
            Self::Mirrored => (&[false, true], 1),
            Self::Turned => (&[false, true], 4),
        };
        let of = |&mirrored: &bool| (0..turns).map(move |turns| View { mirrored, turns });
        mirrors.iter().flat_map(of).collect()
    }
}

impl View {
    /// The view of an image `[3, height, width]`, and its height and width.
    pub(super) fn apply(self, input: Vec<f32>, size: [usize; 2]) -> (Vec<f32>, [usize; 2]) {
        if self == (Self { mirrored: false, turns: 0 }) {
            return (input, size);
        }
        let planes = input.chunks_exact(size[0] * size[1]);
        let mut turned = size;
        let values = planes
            .flat_map(|plane| {
                let mut map = StageMap { grid: size, channels: 1, values: plane.to_vec() };
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

    /// Turns what a stage gives for the view back to where it lies in the image.
    pub(super) fn undo(self, mut map: StageMap) -> StageMap {
        (0..(4 - self.turns) % 4).for_each(|_| map = map.turned());
        if self.mirrored { map.mirrored() } else { map }
    }
}

impl StageMap {
    /// Left and right swapped.
    fn mirrored(&self) -> Self {
        let [rows, columns] = self.grid;
        self.gathered([rows, columns], |row, column| (row, columns - 1 - column))
    }

    /// Turned by a quarter, clockwise.
    fn turned(&self) -> Self {
        let [rows, columns] = self.grid;
        self.gathered([columns, rows], |row, column| (rows - 1 - column, row))
    }

    fn gathered(&self, grid: [usize; 2], from: impl Fn(usize, usize) -> (usize, usize)) -> Self {
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

    #[test]
    fn every_view_can_be_turned_back() {
        let map =
            StageMap { grid: [2, 3], channels: 2, values: (0..12).map(|i| i as f32).collect() };
        let views = Views::Turned.list();
        assert_eq!((Views::One.list().len(), Views::Mirrored.list().len(), views.len()), (1, 2, 8));
        let mut seen = Vec::new();
        for view in views {
            let mut turned = if view.mirrored { map.mirrored() } else { map.clone() };
            (0..view.turns).for_each(|_| turned = turned.turned());
            assert_eq!(view.undo(turned.clone()), map);
            assert!(!seen.contains(&turned), "no view comes twice");
            seen.push(turned);
        }
    }

    #[test]
    fn a_quarter_turn_is_clockwise() {
        let view = View { mirrored: false, turns: 1 };
        let plane = vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
        let (turned, size) = view.apply([plane.clone(), plane.clone(), plane].concat(), [2, 3]);
        assert_eq!((&turned[..6], size), (&[4.0, 1.0, 5.0, 2.0, 6.0, 3.0][..], [3, 2]));
    }
}
