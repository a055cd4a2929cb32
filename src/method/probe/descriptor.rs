//! The descriptor of an image or of its foreground, which classes are predicted from.
//!
//! It has the mean of each channel of some stages (what is there on average) and the mean of its
//! highest twentieth (what is there somewhere). For the foreground, cells are weighted by the mask.

use rayon::prelude::*;

use super::features::{StageMap, StageMaps};
use crate::config::Stage;

/// One cell in this many is among the highest.
pub(crate) const HIGHEST: usize = 20;
/// Keeps the mean under an empty mask finite.
const NOTHING: f64 = 1e-30;

/// Accumulates the descriptor of an image from its parts.
#[derive(Debug)]
pub(super) struct DescriptorPool {
    stages: Vec<Stage>,
    pools: Vec<Vec<Channel>>,
    /// Pixels of the whole image.
    size: [usize; 2],
}

/// One channel of one stage.
#[derive(Debug, Clone, Default)]
struct Channel {
    sum: f64,
    /// Number of cells, or sum of the mask over them.
    weight: f64,
    /// The highest values so far, at most a twentieth of the cells of the whole image.
    highest: Vec<f32>,
}

impl DescriptorPool {
    /// Starts the descriptor of an image of height and width `size`.
    pub(super) fn new(stages: &[Stage], size: [usize; 2]) -> Self {
        Self { stages: stages.to_vec(), pools: Vec::new(), size }
    }

    /// Adds a part of the image, weighted by the masks of that part if there are any.
    pub(super) fn add(&mut self, part: &StageMaps, masks: Option<&StageMaps>) {
        for (index, (stage, map)) in part.of_stages(&self.stages).enumerate() {
            if self.pools.len() == index {
                self.pools.push(vec![Channel::default(); map.channels]);
            }
            let cells: usize = grid(self.size, stage).iter().product();
            let most = (cells / HIGHEST).max(1);
            let mask = masks.and_then(|masks| masks.of_stages(&[stage]).next());
            let mask = mask.map(|(_, mask)| &mask.values[..]);
            let channels = self.pools[index].par_iter_mut().enumerate();
            channels.for_each(|(channel, pool)| pool.add(map, channel, mask, most));
        }
    }

    /// Stage by stage, the means and then the means of the highest values.
    pub(super) fn finish(self) -> Vec<f32> {
        let stages = self.pools.iter().flat_map(|channels| {
            // Under an empty mask the mean is 0.
            let means = channels.iter().map(|pool| (pool.sum / pool.weight.max(NOTHING)) as f32);
            means.chain(channels.iter().map(Channel::mean_of_highest))
        });
        stages.collect()
    }
}

impl Channel {
    fn add(&mut self, map: &StageMap, channel: usize, mask: Option<&[f32]>, most: usize) {
        let values = map.values[channel..].iter().step_by(map.channels).copied();
        let before = self.highest.len();
        match mask {
            None => {
                self.weight += (map.grid[0] * map.grid[1]) as f64;
                self.highest.extend(values);
            }
            Some(mask) => {
                self.weight += mask.iter().map(|&share| f64::from(share)).sum::<f64>();
                self.highest.extend(values.zip(mask).map(|(value, share)| value * share));
            }
        }
        self.sum += self.highest[before..].iter().map(|&value| f64::from(value)).sum::<f64>();
        if self.highest.len() > most {
            self.highest.select_nth_unstable_by(most - 1, |a, b| b.total_cmp(a));
            self.highest.truncate(most);
        }
    }

    fn mean_of_highest(&self) -> f32 {
        let sum: f64 = self.highest.iter().map(|&value| f64::from(value)).sum();
        (sum / self.highest.len().max(1) as f64) as f32
    }
}

/// The descriptor of a whole image, weighted by its masks if there are any.
pub(super) fn descriptor(
    maps: &StageMaps,
    stages: &[Stage],
    masks: Option<&StageMaps>,
) -> Vec<f32> {
    let mut pool = DescriptorPool::new(stages, maps.size());
    pool.add(maps, masks);
    pool.finish()
}

/// A mask resized to the grids of some stages.
pub(super) fn masks(
    mask: &StageMap,
    grids: impl Iterator<Item = (Stage, [usize; 2])>,
) -> StageMaps {
    let stages = grids.map(|(stage, grid)| (stage, mask.resized(grid)));
    StageMaps { grid: mask.grid, stages: stages.collect() }
}

/// Rows and columns of a stage of an image of height and width `size`.
pub(super) fn grid(size: [usize; 2], stage: Stage) -> [usize; 2] {
    size.map(|side| side.div_ceil(4 << stage.index()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(values: Vec<f32>, channels: usize) -> StageMaps {
        let map = StageMap { grid: [1, values.len() / channels], channels, values };
        StageMaps { grid: [1, 2 * map.grid[1]], stages: vec![(Stage::Layer3, map)] }
    }

    #[test]
    fn means_come_first_and_then_the_highest_twentieth() {
        // 40 cells of 0, 1, …, 39 and their opposites: the highest two are 38.5 and −0.5 on average.
        let maps = line((0..40).flat_map(|i| [i as f32, -(i as f32)]).collect(), 2);
        assert_eq!(descriptor(&maps, &[Stage::Layer3], None), [19.5, -19.5, 38.5, -0.5]);
        assert!(descriptor(&maps, &[Stage::Layer2], None).is_empty());
    }

    #[test]
    fn through_a_mask_cells_count_as_far_as_it_shows_them() {
        let maps = line((0..40).map(|i| i as f32).collect(), 1);
        let shown = |share: &dyn Fn(usize) -> f32| {
            let masks = line((0..40).map(share).collect(), 1);
            descriptor(&maps, &[Stage::Layer3], Some(&masks))
        };
        assert_eq!(shown(&|_| 1.0), descriptor(&maps, &[Stage::Layer3], None));
        // Cells 4 to 7, half shown: their mean is 5.5, and half of 7 and 6 are the highest.
        assert_eq!(shown(&|cell| if (4..8).contains(&cell) { 0.5 } else { 0.0 }), [5.5, 3.25]);
        assert_eq!(shown(&|_| 0.0), [0.0, 0.0]);
    }

    #[test]
    fn a_mask_is_brought_to_the_grid_of_every_stage() {
        let mask = StageMap { grid: [2, 4], channels: 1, values: vec![0.5; 8] };
        let grids = [Stage::Layer3, Stage::Layer4].map(|stage| (stage, grid([64, 96], stage)));
        let masks = masks(&mask, grids.into_iter());
        let grids: Vec<[usize; 2]> = masks.stages.iter().map(|(_, map)| map.grid).collect();
        assert_eq!(grids, [[4, 6], [2, 3]]);
        assert!(masks.stages.iter().flat_map(|(_, map)| &map.values).all(|&value| value == 0.5));
    }

    #[test]
    fn an_image_seen_in_parts_has_the_same_descriptor() {
        let values: Vec<f32> = (0..60).map(|i| ((i * 37) % 61) as f32).collect();
        let whole = line(values.clone(), 1);
        let mask: Vec<f32> = (0..60).map(|i| (i % 5) as f32 / 4.0).collect();
        for masked in [false, true] {
            let mut pool = DescriptorPool::new(&[Stage::Layer3], whole.size());
            for (part, mask) in values.chunks(7).zip(mask.chunks(7)) {
                let mask = line(mask.to_vec(), 1);
                pool.add(&line(part.to_vec(), 1), masked.then_some(&mask));
            }
            let mask = line(mask.clone(), 1);
            let at_once = descriptor(&whole, &[Stage::Layer3], masked.then_some(&mask));
            assert_eq!(pool.finish(), at_once);
        }
    }
}
