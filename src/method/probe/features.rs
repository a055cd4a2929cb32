//! Features of a frozen backbone: the outputs of its stages, on a common grid of a cell every 8
//! pixels.

use std::{iter::repeat_n, ops::Range};

use burn::tensor::{Device, Tensor};
use half::{f16, slice::HalfFloatSliceExt as _};
use nalgebra::{DMatrix, DMatrixView};

use super::{
    cells::{ImageCells, spacing},
    descriptor::{descriptor, masks},
    projection::Projection,
    vector::{add_scaled, widened},
    views::{View, views},
};
use crate::{
    bilinear::{Tap, half_pixel},
    config::{ProbeConfig, Stage},
    model::{
        Branch, Pass,
        layers::{reuse, tensor, values},
        resnet::Resnet,
    },
};

/// Pixels of input per cell of the common grid.
pub(crate) const STRIDE: usize = 8;

/// The output of one stage for an image or a part of it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct StageMap<T = f32> {
    /// Rows and columns.
    pub(crate) grid: [usize; 2],
    /// Length of a cell's vector.
    pub(crate) channels: usize,
    /// `[rows, columns, channels]`
    pub(crate) values: Vec<T>,
}

/// The outputs of some stages for an image, and the grid that they are interpolated to.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct StageMaps<T = f32> {
    /// Rows and columns of the common grid.
    pub(crate) grid: [usize; 2],
    /// In the order of the network.
    pub(crate) stages: Vec<(Stage, StageMap<T>)>,
}

impl StageMaps {
    /// Passes an image `[3, height, width]` through the frozen backbone, once for each view.
    ///
    /// The maps of the views are turned back and averaged.
    pub(crate) fn of(
        backbone: &Resnet,
        input: Vec<f32>,
        size: [usize; 2],
        config: &ProbeConfig,
        device: &Device,
    ) -> Self {
        let ProbeConfig { mask_stages, class_stages, .. } = config;
        let is_used = |stage: &Stage| mask_stages.contains(stage) || class_stages.contains(stage);
        let used = Stage::ALL.iter().rposition(is_used).map_or(0, |last| last + 1);
        let views = views(config);
        let see = |(view, input): (&View, Vec<f32>)| {
            let (input, [height, width]) = view.apply(input, size);
            let images = tensor(input, [1, 3, height, width], device);
            let given = backbone.first_stages(images, Pass::Evaluate(Branch::Whole), used);
            let wanted = Stage::ALL.into_iter().zip(given).filter(|(stage, _)| is_used(stage));
            let back =
                |(stage, maps): (Stage, Tensor<4>)| (stage, view.undo(maps.into(), stage, size));
            wanted.map(back).collect::<Vec<_>>()
        };
        // The last view takes the image itself, so that a single view needs no copy.
        let seen = views.iter().zip(repeat_n(input, views.len())).map(see);
        let sum = seen.reduce(|mut sum, more| {
            for ((_, sum), (_, more)) in sum.iter_mut().zip(more) {
                add_scaled(&mut sum.values, 1.0, &more.values);
            }
            sum
        });
        let mut maps = sum.unwrap_or_default();
        if views.len() > 1 {
            let share = 1.0 / views.len() as f32;
            let values = maps.iter_mut().flat_map(|(_, map)| &mut map.values);
            values.for_each(|value| *value *= share);
        }
        Self { grid: size.map(|side| side.div_ceil(STRIDE)), stages: maps }
    }

    /// The part of each stage that lies within rows and columns of pixels.
    pub(super) fn crop(&self, inner: [Range<usize>; 2]) -> Self {
        let cut = |(stage, map): &(Stage, StageMap)| {
            let pixels = 4 << stage.index();
            let cells = inner.clone().map(|side| side.start / pixels..side.end.div_ceil(pixels));
            let [rows, columns] = cells.clone();
            let lines = rows.flat_map(|row| {
                let from = (row * map.grid[1] + columns.start) * map.channels;
                &map.values[from..][..columns.len() * map.channels]
            });
            let grid = cells.clone().map(|side| side.len());
            (*stage, StageMap { grid, channels: map.channels, values: lines.copied().collect() })
        };
        let grid = inner.clone().map(|side| side.len().div_ceil(STRIDE));
        Self { grid, stages: self.stages.iter().map(cut).collect() }
    }

    /// Raw vectors of evenly spaced cells, at most `limit` of them: the stages' channels one
    /// after the other, in half precision.
    pub(crate) fn sample(&self, stages: &[Stage], limit: usize) -> ImageCells {
        let step = spacing(self.grid, limit);
        // In the middle of each square of `step` cells, as far as the grid reaches.
        let line = |length: usize| -> Vec<usize> {
            (0..length.div_ceil(step)).map(|i| (i * step + step / 2).min(length - 1)).collect()
        };
        let (rows, columns) = (line(self.grid[0]), line(self.grid[1]));
        let channels: usize = self.of_stages(stages).map(|(_, map)| map.channels).sum();
        let mut values = vec![f16::ZERO; rows.len() * columns.len() * channels];
        let mut from = 0;
        for (_, map) in self.of_stages(stages) {
            let [down, across] = map.taps(self.grid);
            let places =
                rows.iter().flat_map(|row| columns.iter().map(move |column| (row, column)));
            for (cell, (&row, &column)) in values.chunks_exact_mut(channels).zip(places) {
                let between = map.interpolated(down[row], across[column]);
                cell[from..].iter_mut().zip(between).for_each(|(kept, value)| {
                    *kept = f16::from_f32(value);
                });
            }
            from += map.channels;
        }
        let map = StageMap { grid: [rows.len(), columns.len()], channels, values };
        ImageCells { map, spacing: step }
    }

    /// Projected vectors of every cell, `[cells, dimensions]`.
    ///
    /// Each stage is projected at its own resolution and then interpolated, which gives the same as
    /// the other way round at a fraction of the cost.
    pub(crate) fn project(&self, stages: &[Stage], projection: &Projection) -> Vec<f32> {
        let dimensions = projection.dimensions();
        let cells = self.grid[0] * self.grid[1];
        let mut sum: Vec<f32> =
            projection.offset.iter().copied().cycle().take(cells * dimensions).collect();
        let mut from = 0;
        for (_, map) in self.of_stages(stages) {
            let part = projection.matrix.columns(from, map.channels);
            let projected: DMatrix<f32> = part * map.matrix();
            from += map.channels;
            let map =
                StageMap { grid: map.grid, channels: dimensions, values: projected.data.into() };
            map.add_to(self.grid, &mut sum);
        }
        sum
    }

    /// The maps of some stages, in half precision.
    pub(crate) fn in_half_precision(&self, stages: &[Stage]) -> StageMaps<f16> {
        let halved = self.of_stages(stages).map(|(stage, map)| {
            let mut values = vec![f16::ZERO; map.values.len()];
            values.convert_from_f32_slice(&map.values);
            (stage, StageMap { grid: map.grid, channels: map.channels, values })
        });
        StageMaps { grid: self.grid, stages: halved.collect() }
    }

    /// Gives the memory of the maps back to the layers, which need as much for the next image.
    pub(crate) fn reuse(self) {
        self.stages.into_iter().for_each(|(_, map)| reuse(map.values));
    }

    /// Height and width in pixels, rounded up to whole cells.
    pub(super) fn size(&self) -> [usize; 2] {
        self.grid.map(|cells| cells * STRIDE)
    }

    /// Rows and columns of some stages.
    pub(super) fn grids(&self, stages: &[Stage]) -> impl Iterator<Item = (Stage, [usize; 2])> {
        self.of_stages(stages).map(|(stage, map)| (stage, map.grid))
    }

    pub(super) fn of_stages(&self, stages: &[Stage]) -> impl Iterator<Item = (Stage, &StageMap)> {
        let wanted = self.stages.iter().filter(|(stage, _)| stages.contains(stage));
        wanted.map(|(stage, map)| (*stage, map))
    }
}

impl From<Tensor<4>> for StageMap {
    /// From `[1, channels, rows, columns]`.
    fn from(maps: Tensor<4>) -> Self {
        let [_, channels, rows, columns] = maps.dims();
        Self { grid: [rows, columns], channels, values: values(maps.permute([0, 2, 3, 1])) }
    }
}

impl StageMap {
    /// channels × cells
    fn matrix(&self) -> DMatrixView<'_, f32> {
        DMatrixView::from_slice(&self.values, self.channels, self.grid[0] * self.grid[1])
    }

    /// How the rows, and the columns, of another grid are interpolated.
    fn taps(&self, grid: [usize; 2]) -> [Vec<Tap>; 2] {
        [0, 1].map(|axis| half_pixel(grid[axis], self.grid[axis]))
    }

    /// The vector interpolated between four cells.
    fn interpolated(&self, row: Tap, column: Tap) -> impl Iterator<Item = f32> {
        let cell = |row: usize, column: usize| {
            &self.values[(row * self.grid[1] + column) * self.channels..][..self.channels]
        };
        let corners =
            [row.near, row.far].map(|row| [cell(row, column.near), cell(row, column.far)]);
        (0..self.channels).map(move |channel| {
            let [upper, lower] =
                corners.map(|[near, far]| column.mix_features(near[channel], far[channel]));
            row.mix_features(upper, lower)
        })
    }

    /// The map, interpolated to a grid.
    pub(super) fn resized(&self, grid: [usize; 2]) -> Self {
        let mut values = vec![0.0; grid[0] * grid[1] * self.channels];
        self.add_to(grid, &mut values);
        Self { grid, channels: self.channels, values }
    }

    /// Adds the map, interpolated to a grid, to `[cells, channels]`.
    fn add_to(&self, grid: [usize; 2], sum: &mut [f32]) {
        let [down, across] = self.taps(grid);
        let width = self.grid[1] * self.channels;
        for (row, line) in down.iter().zip(sum.chunks_exact_mut(grid[1] * self.channels)) {
            let lines = [row.near, row.far].map(|row| &self.values[row * width..][..width]);
            let mixed: Vec<f32> = lines[0]
                .iter()
                .zip(lines[1])
                .map(|(&near, &far)| row.mix_features(near, far))
                .collect();
            for (column, cell) in across.iter().zip(line.chunks_exact_mut(self.channels)) {
                let near = &mixed[column.near * self.channels..][..self.channels];
                let far = &mixed[column.far * self.channels..][..self.channels];
                for (sum, (&near, &far)) in cell.iter_mut().zip(near.iter().zip(far)) {
                    *sum += column.mix_features(near, far);
                }
            }
        }
    }
}

/// Maps that are kept until the mask of their image is known, for the class head.
impl StageMaps<f16> {
    /// Memory that the maps take, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.stages.iter().map(|(_, map)| size_of_val(&map.values[..])).sum()
    }

    /// The descriptor of the image through a mask, which may be on any grid.
    pub(crate) fn descriptor(&self, mask: &StageMap) -> Vec<f32> {
        let whole = |(stage, map): &(Stage, StageMap<f16>)| {
            let StageMap { grid, channels, ref values } = *map;
            (*stage, StageMap { grid, channels, values: widened(values) })
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

    fn maps() -> StageMaps {
        let map = |grid: [usize; 2], channels: usize| {
            let values = (0..grid[0] * grid[1] * channels).map(|i| ((i * 37) % 101) as f32 / 50.0);
            StageMap { grid, channels, values: values.collect() }
        };
        StageMaps {
            grid: [4, 6],
            stages: vec![(Stage::Layer2, map([4, 6], 3)), (Stage::Layer3, map([2, 3], 5))],
        }
    }

    #[test]
    fn projecting_each_stage_first_is_projecting_what_is_interpolated() {
        let maps = maps();
        let stages = [Stage::Layer2, Stage::Layer3];
        let matrix = DMatrix::from_fn(2, 8, |i, j| (i * 8 + j) as f32 / 10.0 - 0.6);
        let offset = nalgebra::DVector::from_vec(vec![0.5, -1.0]);
        let projection = Projection { matrix, offset };
        let found = maps.project(&stages, &projection);
        let raw: Vec<f32> =
            maps.sample(&stages, 1000).map.values.iter().map(|value| value.to_f32()).collect();
        let expected = projection.apply(&DMatrix::from_column_slice(8, 24, &raw));
        for (found, expected) in found.iter().zip(expected.iter()) {
            assert!((found - expected).abs() < 5e-3, "{found} {expected}");
        }
    }

    #[test]
    fn one_stage_is_read_between_its_cells_as_bilinear_resizing_does() {
        let map = StageMap { grid: [1, 2], channels: 1, values: vec![0.0, 4.0] };
        let maps = StageMaps { grid: [2, 4], stages: vec![(Stage::Layer3, map)] };
        let values: Vec<f32> = maps
            .sample(&[Stage::Layer3], 8)
            .map
            .values
            .iter()
            .map(|value| value.to_f32())
            .collect();
        // PyTorch's interpolate with align_corners = False.
        assert_eq!(values, [0.0, 1.0, 3.0, 4.0, 0.0, 1.0, 3.0, 4.0]);
    }

    #[test]
    fn a_part_of_an_image_is_cut_out_of_every_stage() {
        let part = maps().crop([16..32, 16..48]);
        assert_eq!(part.grid, [2, 4]);
        assert_eq!(
            part.stages.iter().map(|(_, map)| map.grid).collect::<Vec<_>>(),
            [[2, 4], [1, 2]]
        );
        // The cell in row 2, column 2 of the first stage, and in row 1, column 1 of the second.
        let whole = maps();
        assert_eq!(part.stages[0].1.values[..3], whole.stages[0].1.values[(2 * 6 + 2) * 3..][..3]);
        assert_eq!(part.stages[1].1.values[..5], whole.stages[1].1.values[(3 + 1) * 5..][..5]);
    }

    #[test]
    fn the_descriptor_is_that_of_the_maps_up_to_half_precision() {
        let values: Vec<f32> = (0..4 * 6 * 2).map(|i| ((i * 37) % 101) as f32 / 7.0).collect();
        let map = StageMap { grid: [4, 6], channels: 2, values };
        let maps = StageMaps { grid: [8, 12], stages: vec![(Stage::Layer3, map)] };
        let mask =
            StageMap { grid: [2, 3], channels: 1, values: vec![0.1, 0.9, 0.4, 0.0, 1.0, 0.5] };
        let found = maps.in_half_precision(&[Stage::Layer3]).descriptor(&mask);
        let masks = masks(&mask, maps.grids(&[Stage::Layer3]));
        let exact = descriptor(&maps, &[Stage::Layer3], Some(&masks));
        assert_eq!(found.len(), 4);
        assert!(found.iter().zip(&exact).all(|(a, b)| (a - b).abs() < 0.01), "{found:?} {exact:?}");
    }

    #[test]
    fn a_sample_keeps_evenly_spaced_cells() {
        let kept = maps().sample(&[Stage::Layer2, Stage::Layer3], 6);
        assert_eq!(kept.map.grid, [2, 3]);
        assert_eq!(kept.map.values.len(), 6 * 8);
    }
}
