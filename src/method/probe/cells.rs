//! What heads are trained on: a grid of feature vectors for each training image, in half precision.

use half::f16;

use super::{
    features::StageMap,
    vector::{widen, widened},
};
use crate::rng::Stream;

/// Feature vectors of one image, at evenly spaced cells of its grid.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ImageCells {
    pub(crate) map: StageMap<f16>,
    /// Distance between kept cells, in cells of the image's grid.
    pub(crate) spacing: usize,
}

/// The cells and the label of each training image: all that heads learn from.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct LabelledCells {
    /// Length of a feature vector.
    pub(crate) dimensions: usize,
    pub(crate) images: Vec<ImageCells>,
    /// The class of each image.
    pub(crate) labels: Vec<usize>,
    pub(crate) classes: usize,
}

impl ImageCells {
    pub(super) fn count(&self) -> usize {
        self.map.grid[0] * self.map.grid[1]
    }
}

impl LabelledCells {
    /// Reads all cells of an image, `[cells, dimensions]`.
    pub(crate) fn read(&self, image: usize) -> Vec<f32> {
        widened(&self.images[image].map.values)
    }

    /// Appends one cell of an image.
    pub(crate) fn read_cell(&self, image: usize, cell: usize, cells: &mut Vec<f32>) {
        let start = cells.len();
        cells.resize(start + self.dimensions, 0.0);
        let vector = &self.images[image].map.values[cell * self.dimensions..][..self.dimensions];
        widen(vector, &mut cells[start..]);
    }

    /// Fills `cells` with random cells of an image.
    ///
    /// If the image has more cells, they are taken evenly spaced from a random start, which needs
    /// no shuffle and covers the whole image. If it has fewer, all are taken, and random ones
    /// again.
    pub(crate) fn draw(&self, image: usize, stream: &mut Stream, cells: &mut [f32]) {
        let image = &self.images[image];
        let (width, total) = (self.dimensions, image.count());
        let count = cells.len() / width;
        let offset = if total > count { stream.below(total) } else { 0 };
        for (i, drawn) in cells.chunks_exact_mut(width).enumerate() {
            let cell = match total > count {
                true => (offset + i * total / count) % total,
                false if i < total => i,
                false => stream.below(total),
            };
            widen(&image.map.values[cell * width..][..width], drawn);
        }
    }
}

/// The smallest distance between kept cells of a grid with which at most `limit` are kept.
pub(super) fn spacing([rows, columns]: [usize; 2], limit: usize) -> usize {
    let kept = |step: usize| rows.div_ceil(step) * columns.div_ceil(step);
    (1..=rows.max(columns)).find(|&step| kept(step) <= limit.max(1)).unwrap_or(1)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::rng::Purpose;

    /// Cells of `classes` × `per_class` images: in the first half of each image the vector names
    /// the class, in the second half it is noise.
    pub(in super::super) fn half_and_half(
        classes: usize,
        per_class: usize,
        dimensions: usize,
    ) -> LabelledCells {
        let (cells, images) = (40, classes * per_class);
        let labels: Vec<usize> = (0..images).map(|image| image % classes).collect();
        let image = |index: usize| {
            let mut stream = Stream::new(9, Purpose::Synthetic, 0, index as u64);
            let values = (0..cells * dimensions).map(|i| {
                let (cell, dimension) = (i / dimensions, i % dimensions);
                let told = cell < cells / 2 && dimension == labels[index] % dimensions;
                // The last dimension tells the halves apart, as texture does.
                let side = if cell < cells / 2 { 1.0 } else { -1.0 };
                let base = if dimension + 1 == dimensions {
                    side
                } else {
                    f64::from(u8::from(told)) * 2.0
                };
                f16::from_f64(base + 0.5 * stream.normal())
            });
            let map = StageMap { grid: [4, 10], channels: dimensions, values: values.collect() };
            ImageCells { map, spacing: 1 }
        };
        LabelledCells { dimensions, images: (0..images).map(image).collect(), labels, classes }
    }

    #[test]
    fn kept_cells_are_evenly_spaced_and_few_enough() {
        assert_eq!(spacing([66, 97], 2000), 2);
        assert_eq!(spacing([66, 97], 6402), 1);
        assert_eq!(spacing([32, 48], 800), 2);
        assert_eq!(spacing([5, 1], 1), 5);
    }

    #[test]
    fn drawn_cells_are_spread_over_the_image_and_repeat_only_if_there_are_too_few() {
        let values = (0..10).map(|i| f16::from_f32(i as f32)).collect();
        let map = StageMap { grid: [2, 5], channels: 1, values };
        let images = vec![ImageCells { map, spacing: 1 }];
        let cells = LabelledCells { dimensions: 1, images, labels: vec![0], classes: 2 };
        let mut stream = Stream::new(1, Purpose::Init, 0, 0);
        let mut drawn = [0.0; 5];
        cells.draw(0, &mut stream, &mut drawn);
        let mut sorted = drawn;
        sorted.sort_by(f32::total_cmp);
        assert!(sorted.windows(2).all(|pair| pair[1] - pair[0] == 2.0), "{drawn:?}");
        let mut drawn = [0.0; 14];
        cells.draw(0, &mut stream, &mut drawn);
        assert_eq!(drawn[..10], [0., 1., 2., 3., 4., 5., 6., 7., 8., 9.]);
        assert!(drawn[10..].iter().all(|value| (0.0..10.0).contains(value)));
    }
}
