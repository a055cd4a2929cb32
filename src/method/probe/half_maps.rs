//! What the stages give for a training image, in half precision.

use half::{f16, slice::HalfFloatSliceExt as _};

use super::{
    descriptor::{descriptor, masks},
    features::{StageMap, StageMaps},
};
use crate::config::Stage;

/// Maps that wait for the mask of their image, through which the class head sees them.
#[derive(Debug, Clone, PartialEq)]
pub struct HalfMaps {
    /// Rows and columns of the common grid.
    pub grid: [usize; 2],
    /// In the order of the network.
    pub stages: Vec<(Stage, HalfMap)>,
}

/// What one stage gives, as [`StageMap`].
#[derive(Debug, Clone, PartialEq)]
pub struct HalfMap {
    /// Rows and columns.
    pub grid: [usize; 2],
    /// Length of a cell's vector.
    pub channels: usize,
    /// `[rows, columns, channels]`
    pub values: Vec<f16>,
}

impl HalfMaps {
    /// Keeps some stages.
    pub fn of(maps: &StageMaps, stages: &[Stage]) -> Self {
        let kept = maps.of_stages(stages).map(|(stage, map)| {
            let mut values = vec![f16::ZERO; map.values.len()];
            values.convert_from_f32_slice(&map.values);
            (stage, HalfMap { grid: map.grid, channels: map.channels, values })
        });
        Self { grid: maps.grid, stages: kept.collect() }
    }

    /// Memory that they take, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.stages.iter().map(|(_, map)| size_of_val(&map.values[..])).sum()
    }

    /// The descriptor of what a mask shows, which may be on any grid.
    pub fn descriptor(&self, mask: &StageMap) -> Vec<f32> {
        let whole = |(stage, map): &(Stage, HalfMap)| {
            let HalfMap { grid, channels, values } = map;
            (*stage, StageMap { grid: *grid, channels: *channels, values: values.to_f32_vec() })
        };
        let maps = StageMaps { grid: self.grid, stages: self.stages.iter().map(whole).collect() };
        let stages: Vec<Stage> = self.stages.iter().map(|(stage, _)| *stage).collect();
        let masks = masks(mask, maps.grids(&stages));
        descriptor(&maps, &stages, Some(&masks))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_descriptor_is_that_of_the_maps_up_to_half_precision() {
        let values: Vec<f32> = (0..4 * 6 * 2).map(|i| ((i * 37) % 101) as f32 / 7.0).collect();
        let map = StageMap { grid: [4, 6], channels: 2, values };
        let maps = StageMaps { grid: [8, 12], stages: vec![(Stage::Layer3, map)] };
        let mask =
            StageMap { grid: [2, 3], channels: 1, values: vec![0.1, 0.9, 0.4, 0.0, 1.0, 0.5] };
        let found = HalfMaps::of(&maps, &[Stage::Layer3]).descriptor(&mask);
        let masks = masks(&mask, maps.grids(&[Stage::Layer3]));
        let exact = descriptor(&maps, &[Stage::Layer3], Some(&masks));
        assert_eq!(found.len(), 4);
        assert!(found.iter().zip(&exact).all(|(a, b)| (a - b).abs() < 0.01), "{found:?} {exact:?}");
    }
}
