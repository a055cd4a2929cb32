//! U-Net: every pixel labelled, at the resolution of the image.
//!
//! Ronneberger, Fischer and Brox, *U-Net*, 2015, in the small form that the paper's
//! upper bound uses: 16 channels, doubled at each of five halvings.
//!
//! ```text
//! image ─▶ double ─────────────────────────▶ join ─▶ 1×1 ─▶ 2 scores per pixel
//!            └─▶ double, stride 2 ─▶ … ─▶ deep ─┘ enlarged twofold
//! ```

use std::ops::Range;

use burn::{
    module::Module,
    tensor::{Device, Tensor},
};

use super::{
    Pass,
    composed::{channels_first, channels_last},
    init,
    layers::{After, BatchNorm, Conv, chain},
    resnet::Activations,
    wildcat::Head,
};
use crate::config::{Config, Kernels, UnetConfig};

/// A fully convolutional network that labels pixels as background or foreground.
#[derive(Module, Debug)]
pub struct Unet {
    first: Double,
    down: Vec<Double>,
    up: Vec<Up>,
    localizer: Head,
}

/// Two 3×3 convolutions; the first may halve the resolution.
#[derive(Module, Debug)]
struct Double {
    first: Unit,
    second: Unit,
}

/// `relu(norm(conv(x)))`
#[derive(Module, Debug)]
struct Unit {
    conv: Conv,
    norm: BatchNorm,
}

/// Back to twice the resolution, joined with what was there before.
#[derive(Module, Debug)]
struct Up {
    deep: Double,
    join: Double,
}

impl Unet {
    /// A network with weights drawn from the settings' seed.
    pub fn new(config: &Config, device: &Device) -> Self {
        let width = config.unet.width;
        let channels = |level: usize| width << level;
        let double = |from, to, stride| Double::new(from, to, stride, device);
        let levels = 0..config.unet.depth;
        let down = levels.clone().map(|level| double(channels(level), channels(level + 1), 2));
        let up = levels.rev().map(|level| {
            let (skip, deep) = (channels(level), channels(level + 1));
            Up { deep: double(deep, deep, 1), join: double(deep + skip, skip, 1) }
        });
        let network = Self {
            first: double(3, width, 1),
            down: down.collect(),
            up: up.collect(),
            localizer: Head::new(width, 2, 1, device),
        };
        init::draw(network, width, config.seed)
    }

    /// Scores of background and foreground, `[B, 3, H, W]` → `[B, 2, H, W]`.
    pub fn forward(&self, images: Tensor<4>, pass: Pass) -> Tensor<4> {
        let mut x = self.first.forward(channels_last(images), pass);
        let mut skips = Vec::new();
        for down in &self.down {
            skips.push(x.clone());
            x = down.forward(x, pass);
        }
        for (up, skip) in self.up.iter().zip(skips.into_iter().rev()) {
            x = up.forward(x, skip, pass);
        }
        self.localizer.maps(channels_first(x))
    }
}

impl Double {
    fn new(from: usize, to: usize, stride: usize, device: &Device) -> Self {
        let unit = |from, stride| Unit {
            conv: Conv::new([from, to], 3, [stride, 1], Kernels::Fused, device),
            norm: BatchNorm::new(to, false, device),
        };
        Self { first: unit(from, stride), second: unit(to, 1) }
    }

    fn forward(&self, x: Tensor<4>, pass: Pass) -> Tensor<4> {
        let units = [&self.first, &self.second].map(|unit| (&unit.conv, &unit.norm));
        chain(&units, x, After::relu(), pass)
    }
}

impl Up {
    fn forward(&self, x: Tensor<4>, skip: Tensor<4>, pass: Pass) -> Tensor<4> {
        let [_, height, width, _] = skip.dims();
        let enlarged = double_size(self.deep.forward(x, pass), [height, width]);
        self.join.forward(Tensor::cat(vec![enlarged, skip], 3), pass)
    }
}

/// Each cell fourfold, then cut to the size, which is at most one less each way.
///
/// The same as nearest-neighbour interpolation to the size of what was halved.
fn double_size(x: Tensor<4>, [height, width]: [usize; 2]) -> Tensor<4> {
    let [batch, h, w, channels] = x.dims();
    let cells: Tensor<6> = x.reshape([batch, h, 1, w, 1, channels]);
    let doubled: Tensor<4> =
        cells.expand([batch, h, 2, w, 2, channels]).reshape([batch, 2 * h, 2 * w, channels]);
    doubled.slice([0..batch, 0..height, 0..width, 0..channels])
}

/// What the layers give for an image of so many pixels, in numbers.
pub(super) fn activations(config: &UnetConfig, pixels: f64) -> Activations {
    let width = config.width as f64;
    // At each level down the channels double and the cells become a quarter.
    let level = |level: usize| 2.0 * width * pixels / f64::from(1 << level);
    let levels = |levels: Range<usize>| levels.map(level).sum::<f64>();
    let depth = config.depth;
    Activations {
        // On the way down, and on the way up: before enlarging, and joined.
        all: levels(0..depth + 1) + levels(1..depth + 1) + levels(0..depth),
        // What is joined in the end: enlarged channels twice as many as those there before.
        most: 3.0 * width * pixels,
    }
}

/// The number of weights.
pub(super) fn weights(config: &UnetConfig) -> f64 {
    // Of two 3×3 convolutions, each with a scale and a shift per channel.
    let double = |from: usize, to: usize| (9 * (from + to) * to + 4 * to) as f64;
    let channels = |level: usize| config.width << level;
    let levels = (0..config.depth).map(|level| {
        let (skip, deep) = (channels(level), channels(level + 1));
        double(skip, deep) + double(deep, deep) + double(deep + skip, skip)
    });
    // The head has two outputs and their biases.
    double(3, config.width) + levels.sum::<f64>() + (2 * config.width + 2) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        device,
        model::{
            Branch,
            layers::{tensor, values},
            params,
        },
    };

    #[test]
    fn enlarging_repeats_cells_and_cuts_what_is_too_much() {
        let x = tensor(vec![1.0, 2.0, 3.0, 4.0], [1, 2, 2, 1], &device::cpu());
        assert_eq!(
            values(double_size(x, [3, 4])),
            [1.0, 1.0, 2.0, 2.0, 1.0, 1.0, 2.0, 2.0, 3.0, 3.0, 4.0, 4.0]
        );
    }

    #[test]
    fn every_pixel_gets_two_scores_whatever_the_size() {
        let mut config = Config::default();
        config.unet.width = 2;
        let network = Unet::new(&config, &device::cpu());
        for size in [[33, 47], [32, 32], [1, 70]] {
            let images = Tensor::zeros([1, 3, size[0], size[1]], &device::cpu());
            let scores = network.forward(images, Pass::Evaluate(Branch::Whole));
            assert_eq!(scores.dims(), [1, 2, size[0], size[1]]);
        }
    }

    #[test]
    fn the_published_network_has_the_published_widths() {
        let network = Unet::new(&Config::default(), &device::cpu());
        let shapes: Vec<(String, Vec<usize>)> = params::collect(&network)
            .into_iter()
            .map(|(name, array)| (name, array.shape))
            .filter(|(name, _)| name.ends_with("join.first.conv.weight"))
            .collect();
        let inputs: Vec<usize> = shapes.iter().map(|(_, shape)| shape[1]).collect();
        assert_eq!(inputs, [768, 384, 192, 96, 48]);
    }
}
