//! What heads learn from, gathered image by image within a memory bound.
//!
//! The projection is fitted to the raw vectors of the first images, in random order: of all images
//! if their raw vectors fit into the bound, otherwise of as many as do. From then on vectors are
//! projected as they come, which makes them six times smaller (with ResNet-18 and the default
//! settings), and only as many cells of each image are kept as the bound allows. So each image
//! passes the backbone once, and the memory for cells does not grow with the number of images; each
//! image adds a descriptor of a few kilobytes.

use half::f16;
use nalgebra::DMatrix;
use rayon::prelude::*;

use super::{
    cells::{ImageCells, LabelledCells},
    descriptor::descriptor,
    features::{StageMap, StageMaps},
    projection::Projection,
    vector::widened,
};
use crate::config::ProbeConfig;

/// Fewest cells that are kept of an image; where the bound does not allow so many, images are left
/// out.
const FEWEST_CELLS: usize = 64;
/// Cells that a projection is fitted to: enough for the covariance of a thousand channels.
const FITTED_CELLS: usize = 24_000;

/// How much of the training images is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MemoryPlan {
    /// Number of images that are used: the first in random order.
    pub(crate) images: usize,
    /// Most cells of each.
    pub(crate) cells: usize,
    /// Bytes for each of the three: raw vectors, projected vectors, and maps for the class head.
    pub(crate) bytes: usize,
}

impl MemoryPlan {
    /// How much of so many images fits into the memory that the settings allow.
    pub(crate) fn new(images: usize, config: &ProbeConfig) -> Self {
        let bytes = config.memory_mib * (1 << 20) / 3;
        let cell = size_of::<f16>() * config.dimensions;
        let affordable = bytes / (cell * images.max(1));
        let cells = affordable.max(FEWEST_CELLS).min(config.cells);
        Self { images: images.min(bytes / (cell * cells)), cells, bytes }
    }
}

/// Gathers what heads learn from.
#[derive(Debug)]
pub(crate) struct Gatherer {
    plan: MemoryPlan,
    dimensions: usize,
    projection: Option<Projection>,
    /// Raw vectors until the projection is fitted, projected vectors from then on.
    images: Vec<ImageCells>,
    descriptors: Vec<Vec<f32>>,
    last_stage: usize,
    class_maps: Vec<StageMaps<f16>>,
    /// Bytes that are left for class maps.
    free_bytes: usize,
}

/// What is kept of one image, before projection.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ImageFeatures {
    /// Raw vectors of some cells, for the mask heads.
    pub(crate) cells: ImageCells,
    /// For the class head.
    pub(crate) descriptor: Vec<f32>,
    /// Index in the descriptor at which the last stage begins.
    pub(crate) last_stage: usize,
    /// For a class head that is given the image through its mask; empty if there is none.
    pub(crate) class_maps: StageMaps<f16>,
}

impl ImageFeatures {
    /// Keeps at most so many cells of an image; `None` if its features are not finite in half
    /// precision.
    pub(crate) fn of(maps: &StageMaps, cells: usize, config: &ProbeConfig) -> Option<Self> {
        let descriptor = descriptor(maps, &config.class_stages, None);
        let classes = maps.of_stages(&config.class_stages).map(|(_, map)| map.channels);
        let channels: Vec<usize> = classes.collect();
        // Two numbers per channel.
        let last_stage = 2 * channels.split_last().map_or(0, |(_, before)| before.iter().sum());
        let cells = maps.sample(&config.mask_stages, cells);
        let finite = cells.map.values.iter().all(|value| value.is_finite());
        if !finite || !descriptor.iter().all(|value| value.is_finite()) {
            return None;
        }
        let class_maps = maps.in_half_precision(&config.stages_through_masks());
        Some(Self { cells, descriptor, last_stage, class_maps })
    }
}

/// What heads learn from.
#[derive(Debug, Clone)]
pub(crate) struct Gathered {
    /// From raw vectors to the projected ones.
    pub(crate) projection: Projection,
    /// For the mask heads.
    pub(crate) cells: LabelledCells,
    /// For the class head: one descriptor per whole image.
    pub(crate) descriptors: Vec<Vec<f32>>,
    /// Index in a descriptor at which the last stage begins.
    pub(crate) last_stage: usize,
    /// For a class head that is given images through their masks: the maps of the first images, as
    /// many as fit.
    pub(crate) class_maps: Vec<StageMaps<f16>>,
}

impl Gatherer {
    pub(crate) fn new(plan: MemoryPlan, config: &ProbeConfig) -> Self {
        Self {
            plan,
            dimensions: config.dimensions,
            projection: None,
            images: Vec::new(),
            descriptors: Vec::new(),
            last_stage: 0,
            class_maps: Vec::new(),
            free_bytes: plan.bytes,
        }
    }

    pub(crate) fn push(&mut self, image: ImageFeatures) {
        let ImageFeatures { cells, descriptor, last_stage, class_maps } = image;
        self.last_stage = last_stage;
        if self.class_maps.len() == self.descriptors.len()
            && let Some(left) = self.free_bytes.checked_sub(class_maps.bytes())
        {
            self.free_bytes = left;
            self.class_maps.push(class_maps);
        }
        self.descriptors.push(descriptor);
        if let Some(projection) = &self.projection {
            self.images.push(project(projection, &cells));
            return;
        }
        self.images.push(cells);
        let bytes: usize = self.images.iter().map(|image| size_of_val(&image.map.values[..])).sum();
        if bytes >= self.plan.bytes {
            self.fit();
        }
    }

    /// All that was gathered, with the label of each image.
    pub(crate) fn finish(mut self, labels: Vec<usize>, classes: usize) -> Gathered {
        if self.projection.is_none() {
            self.fit();
        }
        let Self { projection, images, descriptors, last_stage, class_maps, .. } = self;
        let projection = projection.expect("fitted above");
        let dimensions = projection.dimensions();
        let cells = LabelledCells { dimensions, images, labels, classes };
        Gathered { projection, cells, descriptors, last_stage, class_maps }
    }

    /// Fits the projection to the raw vectors gathered so far, and projects them.
    fn fit(&mut self) {
        let raw = std::mem::take(&mut self.images);
        let total: usize = raw.iter().map(ImageCells::count).sum();
        // Every `step`-th cell, counted through all images.
        let step = total.div_ceil(FITTED_CELLS).max(1);
        let channels = raw.first().map_or(0, |image| image.map.channels);
        let vectors = raw.iter().flat_map(|image| image.map.values.chunks_exact(channels));
        let values: Vec<f32> =
            vectors.step_by(step).flatten().map(|value| value.to_f32()).collect();
        let cells = DMatrix::from_vec(channels, values.len() / channels.max(1), values);
        let projection = Projection::fit(&cells, self.dimensions);
        // Raw vectors make room for projected ones, image by image.
        self.images = raw.into_par_iter().map(|image| project(&projection, &image)).collect();
        self.projection = Some(projection);
    }
}

fn project(projection: &Projection, raw: &ImageCells) -> ImageCells {
    let values = widened(&raw.map.values);
    let cells = DMatrix::from_vec(projection.matrix.ncols(), raw.count(), values);
    // A cell may lie far out along an axis that hardly varied among the cells of the fit.
    let kept = |&value: &f32| f16::from_f32(value.clamp(f16::MIN.to_f32(), f16::MAX.to_f32()));
    let values = projection.apply(&cells).iter().map(kept).collect();
    let map = StageMap { grid: raw.map.grid, channels: projection.dimensions(), values };
    ImageCells { map, spacing: raw.spacing }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{ClassView, Stage};

    fn maps(index: usize) -> StageMaps {
        let map = |grid: [usize; 2], channels: usize| {
            let values = (0..grid[0] * grid[1] * channels)
                .map(|i| ((i * 37 + index * 11) % 101) as f32 / 50.0 + ((i * i) % 13) as f32 / 9.0);
            StageMap { grid, channels, values: values.collect() }
        };
        StageMaps {
            grid: [4, 6],
            stages: vec![(Stage::Layer2, map([4, 6], 3)), (Stage::Layer3, map([2, 3], 5))],
        }
    }

    fn config() -> ProbeConfig {
        ProbeConfig { dimensions: 4, ..ProbeConfig::default() }
    }

    fn features(index: usize, plan: MemoryPlan) -> ImageFeatures {
        ImageFeatures::of(&maps(index), plan.cells, &config()).unwrap()
    }

    fn gathered(plan: MemoryPlan) -> Gathered {
        let mut gatherer = Gatherer::new(plan, &config());
        (0..6).for_each(|index| gatherer.push(features(index, plan)));
        gatherer.finish(vec![0, 1, 0, 1, 0, 1], 2)
    }

    #[test]
    fn memory_is_bounded_by_cells_first_and_by_images_then() {
        let config = ProbeConfig { dimensions: 64, memory_mib: 96, cells: 2000, ..config() };
        // A third of it, 32 MiB, for vectors of 128 bytes.
        let plan = |images| MemoryPlan::new(images, &config);
        assert_eq!((plan(100).images, plan(100).cells), (100, 2000));
        assert_eq!((plan(1000).images, plan(1000).cells), (1000, 262));
        assert_eq!((plan(100_000).images, plan(100_000).cells), (4096, 64));
    }

    #[test]
    fn maps_for_the_class_head_are_kept_of_the_first_images_that_fit() {
        let classes = ProbeConfig { class_stages: vec![Stage::Layer3], ..config() };
        let kept = |config: &ProbeConfig, bytes: usize| {
            let mut gatherer = Gatherer::new(MemoryPlan { images: 6, cells: 24, bytes }, config);
            for index in 0..6 {
                gatherer.push(ImageFeatures::of(&maps(index), 24, config).unwrap());
            }
            gatherer.finish(vec![0, 1, 0, 1, 0, 1], 2).class_maps.len()
        };
        // 2 × 3 cells of 5 channels in half precision are 60 bytes.
        assert_eq!((kept(&classes, 360), kept(&classes, 200), kept(&classes, 50)), (6, 3, 0));
        let whole = ProbeConfig { class_view: ClassView::Image, ..classes };
        assert_eq!(ImageFeatures::of(&maps(0), 24, &whole).unwrap().class_maps.bytes(), 0);
    }

    #[test]
    fn features_that_are_no_numbers_are_refused() {
        for value in [f32::NAN, f32::INFINITY, 1e6] {
            let mut broken = maps(0);
            broken.stages[1].1.values[3] = value;
            let found = ImageFeatures::of(&broken, 24, &config());
            assert_eq!(found, None, "{value}");
        }
    }

    #[test]
    fn the_projection_of_the_first_images_serves_all_once_memory_is_full() {
        let plan = MemoryPlan { images: 6, cells: 24, bytes: usize::MAX };
        let roomy = gathered(plan);
        assert_eq!((roomy.cells.images.len(), roomy.descriptors.len()), (6, 6));
        assert_eq!(roomy.cells.dimensions, 4);
        let tight = gathered(MemoryPlan { bytes: 3 * 24 * 8 * 2, ..plan });
        assert_eq!(tight.cells.images.len(), 6);
        assert_ne!(tight.projection, roomy.projection);
        // Three images fitted it, so three images alone give the same.
        let mut gatherer = Gatherer::new(plan, &config());
        (0..3).for_each(|index| gatherer.push(features(index, plan)));
        let first = gatherer.finish(vec![0, 1, 0], 2);
        assert_eq!(first.projection, tight.projection);
        assert_eq!(first.cells.images[..], tight.cells.images[..3]);
    }
}
