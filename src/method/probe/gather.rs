//! What heads learn from, gathered within a memory bound, image by image.
//!
//! The projection is fitted to the raw vectors of the first images, in random order: of all
//! images if their raw vectors fit into the bound, and of as many as do otherwise. From then on
//! vectors are projected as they come, which makes them six times smaller, and of each image
//! only as many cells are kept as the bound allows. So the backbone sees each image once, and
//! the memory for cells does not grow with their number; each image adds a
//! descriptor of a few kilobytes.

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

/// Fewest cells of an image worth keeping; beyond, images are left out instead.
const FEWEST_CELLS: usize = 64;
/// Cells that a projection is fitted to: enough for the covariance of a thousand channels.
const FITTED_CELLS: usize = 24_000;

/// How much of the training images is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Plan {
    /// Images that are used, the first of a random order.
    pub(crate) images: usize,
    /// Most cells of each.
    pub(crate) cells: usize,
    /// Bytes that raw vectors, projected ones, and maps for the class head may take each.
    pub(crate) bytes: usize,
}

impl Plan {
    /// What of `images` fits into the settings' memory.
    pub(crate) fn new(images: usize, config: &ProbeConfig) -> Self {
        let bytes = config.memory_mib * (1 << 20) / 3;
        let cell = size_of::<f16>() * config.dimensions;
        let affordable = bytes / (cell * images.max(1));
        let cells = affordable.max(FEWEST_CELLS).min(config.cells);
        Self { images: images.min(bytes / (cell * cells)), cells, bytes }
    }
}

/// The images seen so far.
#[derive(Debug)]
pub(crate) struct Gathering {
    plan: Plan,
    dimensions: usize,
    projection: Option<Projection>,
    /// Raw vectors until the projection is fitted, and projected ones then.
    images: Vec<ImageCells>,
    descriptors: Vec<Vec<f32>>,
    last_stage: usize,
    class_maps: Vec<StageMaps<f16>>,
    /// Bytes that are left for these.
    left: usize,
}

/// What is kept of one image, before it is projected.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ImageFeatures {
    /// Raw vectors of some cells, for masks.
    pub(crate) cells: ImageCells,
    /// For classes.
    pub(crate) descriptor: Vec<f32>,
    /// Where the last stage begins in the descriptor.
    pub(crate) last_stage: usize,
    /// For classes, to be seen through a mask; empty where no class head is to see them so.
    pub(crate) class_maps: StageMaps<f16>,
}

impl ImageFeatures {
    /// Keeps so many cells of an image; none if its features are no numbers, or too large for half
    /// precision.
    pub(crate) fn of(maps: &StageMaps, cells: usize, config: &ProbeConfig) -> Option<Self> {
        let descriptor = descriptor(maps, &config.class_stages, None);
        let classes = maps.of_stages(&config.class_stages).map(|(_, map)| map.channels);
        let channels: Vec<usize> = classes.collect();
        // Two numbers of each channel.
        let last_stage = 2 * channels.split_last().map_or(0, |(_, before)| before.iter().sum());
        let cells = maps.sample(&config.mask_stages, cells);
        let finite = cells.map.values.iter().all(|value| value.is_finite());
        if !finite || !descriptor.iter().all(|value| value.is_finite()) {
            return None;
        }
        let class_maps = maps.halved(&config.stages_through_masks());
        Some(Self { cells, descriptor, last_stage, class_maps })
    }
}

/// What heads learn from.
#[derive(Debug, Clone)]
pub(crate) struct Gathered {
    /// From raw vectors to those of the cells.
    pub(crate) projection: Projection,
    /// For masks.
    pub(crate) cells: LabelledCells,
    /// For classes: one descriptor per image, seen whole.
    pub(crate) descriptors: Vec<Vec<f32>>,
    /// Where the last stage begins in a descriptor.
    pub(crate) last_stage: usize,
    /// For classes: maps of the first images, as many as fit, to be seen through their masks.
    pub(crate) class_maps: Vec<StageMaps<f16>>,
}

impl Gathering {
    pub(crate) fn new(plan: Plan, config: &ProbeConfig) -> Self {
        Self {
            plan,
            dimensions: config.dimensions,
            projection: None,
            images: Vec::new(),
            descriptors: Vec::new(),
            last_stage: 0,
            class_maps: Vec::new(),
            left: plan.bytes,
        }
    }

    pub(crate) fn push(&mut self, image: ImageFeatures) {
        let ImageFeatures { cells, descriptor, last_stage, class_maps } = image;
        self.last_stage = last_stage;
        if self.class_maps.len() == self.descriptors.len()
            && let Some(left) = self.left.checked_sub(class_maps.bytes())
        {
            self.left = left;
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

    /// Fits the projection to the raw vectors, and projects them.
    fn fit(&mut self) {
        let raw = std::mem::take(&mut self.images);
        let total: usize = raw.iter().map(ImageCells::count).sum();
        // Every so many cells, counted through all images.
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
    // Along an axis that hardly varied where the projection was fitted, a cell may lie far out.
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

    fn features(index: usize, plan: Plan) -> ImageFeatures {
        ImageFeatures::of(&maps(index), plan.cells, &config()).unwrap()
    }

    fn gathered(plan: Plan) -> Gathered {
        let mut gathering = Gathering::new(plan, &config());
        (0..6).for_each(|index| gathering.push(features(index, plan)));
        gathering.finish(vec![0, 1, 0, 1, 0, 1], 2)
    }

    #[test]
    fn memory_is_bounded_by_cells_first_and_by_images_then() {
        let config = ProbeConfig { dimensions: 64, memory_mib: 96, cells: 2000, ..config() };
        // A third of it, 32 MiB, for vectors of 128 bytes.
        let plan = |images| Plan::new(images, &config);
        assert_eq!((plan(100).images, plan(100).cells), (100, 2000));
        assert_eq!((plan(1000).images, plan(1000).cells), (1000, 262));
        assert_eq!((plan(100_000).images, plan(100_000).cells), (4096, 64));
    }

    #[test]
    fn maps_for_the_class_head_are_kept_of_the_first_images_that_fit() {
        let classes = ProbeConfig { class_stages: vec![Stage::Layer3], ..config() };
        let kept = |config: &ProbeConfig, bytes: usize| {
            let mut gathering = Gathering::new(Plan { images: 6, cells: 24, bytes }, config);
            for index in 0..6 {
                gathering.push(ImageFeatures::of(&maps(index), 24, config).unwrap());
            }
            gathering.finish(vec![0, 1, 0, 1, 0, 1], 2).class_maps.len()
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
        let plan = Plan { images: 6, cells: 24, bytes: usize::MAX };
        let roomy = gathered(plan);
        assert_eq!((roomy.cells.images.len(), roomy.descriptors.len()), (6, 6));
        assert_eq!(roomy.cells.dimensions, 4);
        let tight = gathered(Plan { bytes: 3 * 24 * 8 * 2, ..plan });
        assert_eq!(tight.cells.images.len(), 6);
        assert_ne!(tight.projection, roomy.projection);
        // Three images fitted it, so three images alone give the same.
        let mut gathering = Gathering::new(plan, &config());
        (0..3).for_each(|index| gathering.push(features(index, plan)));
        let first = gathering.finish(vec![0, 1, 0], 2);
        assert_eq!(first.projection, tight.projection);
        assert_eq!(first.cells.images[..], tight.cells.images[..3]);
    }
}
