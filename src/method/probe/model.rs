//! A trained probe: a frozen backbone and its heads.

use burn::tensor::Device;

use super::{
    class_head::{ClassHead, ClassInput},
    descriptor::{DescriptorPool, descriptor, grid as stage_grid, masks},
    discriminant::CellFeatures,
    edges::{Colours, MIN_PROBABILITY},
    features::{STRIDE, StageMap, StageMaps},
    heads::{MaskHeads, ScoredCells},
    projection::Projection,
};
use crate::{
    config::{Config, ModelConfig, ProbeConfig, Refinement, Stage},
    data::preprocess::Size,
    method::{
        ModelOutput,
        tiles::{LargeImage, SoftMask, Tile, Tiling, tiles},
    },
    model::resnet::Resnet,
    stats::CutRule,
};

/// Pixels between cells of the last stage; windows start at multiples of it.
const LAST_STRIDE: usize = 32;

#[derive(Debug)]
pub(crate) struct Probe {
    pub(crate) backbone: Resnet,
    pub(crate) projection: Projection,
    pub(crate) mask_heads: MaskHeads,
    pub(crate) class_head: ClassHead,
    /// The settings that it was trained with.
    pub(crate) config: Config,
    pub(crate) device: Device,
}

impl Probe {
    /// Class probabilities and mask of a preprocessed image `[3, H, W]`, whose height and width are
    /// `size`.
    pub(crate) fn localize(&self, input: Vec<f32>, size: [usize; 2]) -> ModelOutput {
        let ProbeConfig { mask_stages, class_stages, refine, .. } = &self.config.probe;
        let colours = (*refine == Refinement::Edges).then(|| {
            let mut colours = Colours::new(size);
            colours.add(&input, size, [0, 0], size.map(|side| 0..side));
            colours
        });
        let maps = self.stage_maps(input, size);
        let cells = maps.project(mask_stages, &self.projection);
        let scored = self.score(cells, maps.grid);
        let class_masks = self.class_masks(&scored, maps.grids(class_stages));
        let descriptor = descriptor(&maps, class_stages, class_masks.as_ref());
        let classifier = Some(self.class_head.probabilities(&descriptor));
        maps.reuse();
        let mask = soft_mask(scored, size, colours.as_ref());
        let mut scores = vec![0.0; size[0] * size[1]];
        mask.fill_all(&mut scores);
        ModelOutput { classifier, localizer: None, scores }
    }

    /// The same for an image whose input is too large to be held, with the mask at the size of the
    /// image.
    pub(crate) fn localize_tiled(&self, image: LargeImage<'_>, tiling: Tiling) -> ModelOutput {
        let ProbeConfig { mask_stages, class_stages, refine, .. } = &self.config.probe;
        let input = &image.input;
        let Size { width, height } = input.size();
        let size = [height as usize, width as usize];
        // Interpolation at the border of a window reaches one cell of the last stage further.
        let tiling = tiling.for_reach(Resnet::reach(&backbone(&self.config.model)) + LAST_STRIDE);
        let dimensions = self.projection.dimensions();
        let grid = size.map(|side| side.div_ceil(STRIDE));
        let mut cells = vec![0.0; grid[0] * grid[1] * dimensions];
        let mut pool = DescriptorPool::new(class_stages, size);
        let tiles = tiles(size, LAST_STRIDE, tiling);
        let mut colours = (*refine == Refinement::Edges).then(|| Colours::new(size));
        for tile in &tiles {
            let Tile { window, inner } = tile;
            let (pixels, seen) = (input.read(*window), [window.height, window.width]);
            if let Some(colours) = &mut colours {
                colours.add(&pixels, seen, [window.top, window.left], inner.clone());
            }
            let maps = self.stage_maps(pixels, seen);
            if self.class_head.input == ClassInput::Image {
                pool.add(&maps.crop(inner.clone()), None);
            }
            let part = maps.project(mask_stages, &self.projection);
            for (line, to) in tile.lines(STRIDE, grid) {
                let line = &part[line.start * dimensions..line.end * dimensions];
                cells[to * dimensions..][..line.len()].copy_from_slice(line);
            }
        }
        let scored = self.score(cells, grid);
        // The maps of all windows would not fit into memory, so they pass the backbone again.
        let grids = class_stages.iter().map(|&stage| (stage, stage_grid(size, stage)));
        if let Some(masks) = self.class_masks(&scored, grids) {
            for Tile { window, inner } in tiles {
                let maps = self.stage_maps(input.read(window), [window.height, window.width]);
                let [rows, columns] = &inner;
                let place = [
                    rows.start + window.top..rows.end + window.top,
                    columns.start + window.left..columns.end + window.left,
                ];
                pool.add(&maps.crop(inner), Some(&masks.crop(place)));
            }
        }
        let classifier = Some(self.class_head.probabilities(&pool.finish()));
        let mask = soft_mask(scored, size, colours.as_ref());
        ModelOutput { classifier, localizer: None, scores: image.restore(&mask) }
    }

    /// How the soft mask is computed and cut, for the protocol of a report.
    pub(crate) fn mask_rule(&self) -> String {
        let CutRule { beta, alpha } = self.mask_heads.cut_rule;
        let edges = match self.config.probe.refine {
            Refinement::None => "",
            Refinement::Edges => ", then snapped to edges of the colours",
        };
        format!(
            "odds of foreground, {} by the image's own discriminant and the rest by students, cut \
             between the two modes of their histogram (β = {:.2}, α = {:.2}), between 1 : e and e : 1{edges}",
            self.config.probe.own_image, beta, alpha
        )
    }

    fn stage_maps(&self, input: Vec<f32>, size: [usize; 2]) -> StageMaps {
        StageMaps::of(&self.backbone, input, size, &self.config.probe, &self.device)
    }

    fn score(&self, cells: Vec<f32>, grid: [usize; 2]) -> ScoredCells {
        let features = CellFeatures { cells, grid, sigma: self.config.probe.smoothing };
        self.mask_heads.score(&features, &self.config.probe)
    }

    /// The mask on the grids of some stages, if the class head is given images through it.
    fn class_masks(
        &self,
        scored: &ScoredCells,
        grids: impl Iterator<Item = (Stage, [usize; 2])>,
    ) -> Option<StageMaps> {
        (self.class_head.input == ClassInput::Foreground).then(|| masks(&scored.mask(), grids))
    }
}

/// The mask of an image of height and width `size`, snapped to edges if its colours are given.
fn soft_mask(scored: ScoredCells, size: [usize; 2], colours: Option<&Colours>) -> SoftMask {
    let Some(colours) = colours else {
        let ScoredCells { grid, scores, cut } = scored;
        return SoftMask::cut_at(scores, grid, size, cut);
    };
    let StageMap { grid, values, .. } = colours.snap(&scored.mask());
    let odds = |probability: f32| {
        let probability = probability.clamp(MIN_PROBABILITY, 1.0 - MIN_PROBABILITY);
        (probability / (1.0 - probability)).ln()
    };
    SoftMask::cut_at(values.into_iter().map(odds).collect(), grid, size, 0.0)
}

/// The backbone of a probe, never dilated: its stages are interpolated to a common grid instead.
pub(crate) fn backbone(config: &ModelConfig) -> ModelConfig {
    ModelConfig { output_stride: LAST_STRIDE, ..config.clone() }
}
