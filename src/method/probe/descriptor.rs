//! What the stages of the backbone say about a whole image.
//!
//! The mean of each channel says what there is on average, and the mean of its highest twentieth
//! what there is somewhere.

use rayon::prelude::*;

use super::features::{StageMap, StageMaps};
use crate::config::Stage;

/// One in so many cells is among the highest.
pub(crate) const HIGHEST: usize = 20;

/// The descriptor of an image whose parts are seen one after the other.
#[derive(Debug)]
pub(super) struct DescriptorPool {
    stages: Vec<Stage>,
    pools: Vec<Vec<Channel>>,
    /// Pixels of the whole image.
    size: [usize; 2],
}

/// One channel of one stage.
#[derive(Debug, Clone)]
struct Channel {
    sum: f64,
    cells: usize,
    /// No more of the highest values than the whole image has.
    highest: Vec<f32>,
}

impl DescriptorPool {
    /// Pools some stages of an image of height and width `size`.
    pub(super) fn new(stages: &[Stage], size: [usize; 2]) -> Self {
        Self { stages: stages.to_vec(), pools: Vec::new(), size }
    }

    /// Adds a part of the image.
    pub(super) fn add(&mut self, part: &StageMaps) {
        for (index, (stage, map)) in part.of_stages(&self.stages).enumerate() {
            if self.pools.len() == index {
                let empty = Channel { sum: 0.0, cells: 0, highest: Vec::new() };
                self.pools.push(vec![empty; map.channels]);
            }
            let cells: usize =
                self.size.iter().map(|side| side.div_ceil(4 << stage.index())).product();
            let most = (cells / HIGHEST).max(1);
            let channels = self.pools[index].par_iter_mut().enumerate();
            channels.for_each(|(channel, pool)| pool.add(map, channel, most));
        }
    }

    /// Means and then highest values, stage by stage.
    pub(super) fn finish(self) -> Vec<f32> {
        let stages = self.pools.iter().flat_map(|channels| {
            let means = channels.iter().map(|pool| (pool.sum / pool.cells as f64) as f32);
            means.chain(channels.iter().map(Channel::mean_of_highest))
        });
        stages.collect()
    }
}

impl Channel {
    fn add(&mut self, map: &StageMap, channel: usize, most: usize) {
        let values = map.values[channel..].iter().step_by(map.channels);
        self.sum += values.clone().map(|&value| f64::from(value)).sum::<f64>();
        self.cells += map.grid[0] * map.grid[1];
        self.highest.extend(values);
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

/// The descriptor of an image that is seen whole.
pub(super) fn descriptor(maps: &StageMaps, stages: &[Stage]) -> Vec<f32> {
    let mut pool = DescriptorPool::new(stages, maps.size());
    pool.add(maps);
    pool.finish()
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
        assert_eq!(descriptor(&maps, &[Stage::Layer3]), [19.5, -19.5, 38.5, -0.5]);
        assert!(descriptor(&maps, &[Stage::Layer2]).is_empty());
    }

    #[test]
    fn an_image_seen_in_parts_has_the_same_descriptor() {
        let values: Vec<f32> = (0..60).map(|i| ((i * 37) % 61) as f32).collect();
        let whole = line(values.clone(), 1);
        let mut pool = DescriptorPool::new(&[Stage::Layer3], whole.size());
        values.chunks(7).for_each(|part| pool.add(&line(part.to_vec(), 1)));
        assert_eq!(pool.finish(), descriptor(&whole, &[Stage::Layer3]));
    }
}
