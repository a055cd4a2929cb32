//! Residual networks: the backbone that localizer and classifier share.
//!
//! He et al., *Deep residual learning for image recognition*, 2016; the stride of
//! a bottleneck is on its 3×3 convolution, as in torchvision. Field names are
//! torchvision's, so that its weights load by name.

use std::{array, iter, mem};

use burn::{
    module::Module,
    tensor::{Device, Tensor},
};

use super::{
    composed::{channels_first, channels_last},
    init,
    layers::{After, BatchNorm, Conv, Shortcut, chain, max_pool},
    pass::Pass,
};
use crate::config::{Backbone, ModelConfig, Statistics, Stem};

/// A residual network without its final pooling and classifier.
#[derive(Module, Debug)]
pub struct Resnet {
    conv1: Conv,
    bn1: BatchNorm,
    conv2: Option<Conv>,
    bn2: Option<BatchNorm>,
    conv3: Option<Conv>,
    bn3: Option<BatchNorm>,
    layer1: Vec<Block>,
    layer2: Vec<Block>,
    layer3: Vec<Block>,
    layer4: Vec<Block>,
    #[module(skip)]
    output_stride: usize,
    #[module(skip)]
    features: usize,
}

/// `relu(branch(x) + shortcut(x))`; a bottleneck has a third convolution.
#[derive(Module, Debug)]
struct Block {
    conv1: Conv,
    bn1: BatchNorm,
    conv2: Conv,
    bn2: BatchNorm,
    conv3: Option<Conv>,
    bn3: Option<BatchNorm>,
    downsample: Option<(Conv, BatchNorm)>,
}

/// What tells one residual network from another.
struct Architecture {
    /// Blocks per stage.
    blocks: [usize; 4],
    /// Channels of the first stage; each stage doubles them.
    width: usize,
    /// Whether blocks squeeze, convolve and expand fourfold.
    bottleneck: bool,
    /// Weights in millions, rounded down.
    millions: f64,
}

/// Stride and dilation of a block's 3×3 convolutions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BlockSteps {
    /// Of the block; a bottleneck has it on its 3×3 convolution, others on the first of two.
    pub(crate) stride: usize,
    pub(crate) dilation: usize,
    pub(crate) bottleneck: bool,
}

impl BlockSteps {
    /// Stride and dilation of the block's first and second convolution.
    pub(crate) fn of_units(self) -> [[usize; 2]; 2] {
        let Self { stride, dilation, bottleneck } = self;
        if bottleneck { [[1, 1], [stride, dilation]] } else { [[stride, dilation], [1, dilation]] }
    }
}

/// The blocks of each stage, strides turned into dilation once the output stride is reached.
pub(crate) fn block_steps(config: &ModelConfig) -> [Vec<BlockSteps>; 4] {
    let Architecture { blocks, bottleneck, .. } = Architecture::of(config.backbone);
    // The stem and its pooling have already divided by four.
    let (mut reached, mut dilation) = (4, 1);
    array::from_fn(|stage| {
        let wanted = if stage == 0 { 1 } else { 2 };
        let stride = if reached * wanted > config.output_stride { 1 } else { wanted };
        reached *= stride;
        // The first block's convolution still sees the resolution before.
        let first = BlockSteps { stride, dilation, bottleneck };
        dilation *= wanted / stride;
        let later = BlockSteps { stride: 1, dilation, bottleneck };
        iter::once(first).chain(iter::repeat(later)).take(blocks[stage]).collect()
    })
}

/// A convolution, of a stride and a dilation, and its batch norm.
fn unit(
    channels: [usize; 2],
    kernel: usize,
    steps: [usize; 2],
    config: &ModelConfig,
    device: &Device,
) -> (Conv, BatchNorm) {
    let conv = Conv::new(channels, kernel, steps, config.kernels, device);
    let separate = config.statistics == Statistics::Separate;
    (conv, BatchNorm::new(channels[1], separate, device))
}

impl Resnet {
    /// A network whose weights are yet to be drawn or loaded.
    pub fn new(config: &ModelConfig, device: &Device) -> Self {
        let architecture = Architecture::of(config.backbone);
        let width = architecture.width;
        let unit = |channels, kernel, stride| unit(channels, kernel, [stride, 1], config, device);
        let (stem, mut channels) = match config.stem {
            Stem::Classic => (vec![unit([3, width], 7, 2)], width),
            Stem::Deep => {
                let (first, second) = (unit([3, width], 3, 2), unit([width, width], 3, 1));
                (vec![first, second, unit([width, 2 * width], 3, 1)], 2 * width)
            }
        };
        let mut planes = width;
        let [layer1, layer2, layer3, layer4] = block_steps(config).map(|blocks| {
            let output = planes * architecture.expansion();
            let block = |steps| {
                let channels = [mem::replace(&mut channels, output), planes, output];
                Block::new(channels, steps, config, device)
            };
            let layer = blocks.into_iter().map(block).collect();
            planes *= 2;
            layer
        });

        let mut stem = stem.into_iter();
        let (conv1, bn1) = stem.next().expect("a stem has at least one convolution");
        let (conv2, bn2) = stem.next().unzip();
        let (conv3, bn3) = stem.next().unzip();
        Self {
            conv1,
            bn1,
            conv2,
            bn2,
            conv3,
            bn3,
            layer1,
            layer2,
            layer3,
            layer4,
            output_stride: config.output_stride,
            features: channels,
        }
    }

    /// A network with weights drawn from a seed.
    pub fn drawn(config: &ModelConfig, seed: u64, device: &Device) -> Self {
        let blank = Self::new(config, device);
        let features = blank.features;
        init::draw(blank, features, seed)
    }

    /// Shapes: `[B, 3, H, W]` → `[B, features, ⌈H/stride⌉, ⌈W/stride⌉]`.
    pub fn forward(&self, images: Tensor<4>, pass: Pass) -> Tensor<4> {
        let [_, _, _, features] = self.stages(images, pass);
        features
    }

    /// What `layer1` to `layer4` give, each `[B, C, h, w]`; the last are the features.
    pub fn stages(&self, images: Tensor<4>, pass: Pass) -> [Tensor<4>; 4] {
        let stages = self.first_stages(images, pass, 4);
        stages.try_into().expect("a residual network has four stages")
    }

    /// What the first `count` of its stages give; the others are not computed.
    pub fn first_stages(&self, images: Tensor<4>, pass: Pass, count: usize) -> Vec<Tensor<4>> {
        let rest = [(&self.conv2, &self.bn2), (&self.conv3, &self.bn3)];
        let rest = rest.into_iter().filter_map(|(conv, norm)| conv.as_ref().zip(norm.as_ref()));
        let stem: Vec<_> = iter::once((&self.conv1, &self.bn1)).chain(rest).collect();
        let mut x = max_pool(chain(&stem, channels_last(images), After::relu(), pass));
        let stages = self.layers().into_iter().take(count).map(|layer| {
            x = layer.iter().fold(x.clone(), |x, block| block.forward(x, pass));
            channels_first(x.clone())
        });
        stages.collect()
    }

    /// The features that follow from what a stage, counted from 0, has given.
    pub fn from_stage(&self, stage: usize, x: Tensor<4>, pass: Pass) -> Tensor<4> {
        let rest = self.layers().into_iter().skip(stage + 1).flatten();
        channels_first(rest.fold(channels_last(x), |x, block| block.forward(x, pass)))
    }

    fn layers(&self) -> [&Vec<Block>; 4] {
        [&self.layer1, &self.layer2, &self.layer3, &self.layer4]
    }

    /// How far, in pixels, a cell of the last map sees beyond its own place.
    pub fn reach(config: &ModelConfig) -> usize {
        // Pixels from one cell to the next, and what kernels of half-width 1 add at that step.
        let (mut step, mut reach) = match config.stem {
            Stem::Classic => (2, 3),
            Stem::Deep => (2, 1 + 2 + 2),
        };
        reach += step;
        step *= 2;
        for BlockSteps { stride, dilation, bottleneck } in block_steps(config).into_iter().flatten()
        {
            reach += dilation * step;
            step *= stride;
            if !bottleneck {
                reach += dilation * step;
            }
        }
        reach
    }

    /// Channels of what each stage gives.
    pub fn stage_channels(&self) -> [usize; 4] {
        [8, 4, 2, 1].map(|share| self.features / share)
    }

    /// Channels of the last map.
    pub fn features(&self) -> usize {
        self.features
    }

    /// Rows and columns of the last map for an image of `height × width`.
    pub fn grid(&self, size: [usize; 2]) -> [usize; 2] {
        // Halving with rounding up, repeatedly, is one division with rounding up.
        size.map(|side| side.div_ceil(self.output_stride))
    }
}

impl Block {
    /// `channels` are those that go in, within, and out.
    fn new(
        [input, planes, output]: [usize; 3],
        steps: BlockSteps,
        config: &ModelConfig,
        device: &Device,
    ) -> Self {
        let unit = |channels, kernel, steps| unit(channels, kernel, steps, config, device);
        let BlockSteps { stride, bottleneck, .. } = steps;
        let [first, second] = steps.of_units();
        let (conv1, bn1) = unit([input, planes], if bottleneck { 1 } else { 3 }, first);
        let (conv2, bn2) = unit([planes, planes], 3, second);
        let (conv3, bn3) = bottleneck.then(|| unit([planes, output], 1, [1, 1])).unzip();
        let projected = stride != 1 || input != output;
        let downsample = projected.then(|| unit([input, output], 1, [stride, 1]));
        Self { conv1, bn1, conv2, bn2, conv3, bn3, downsample }
    }

    /// Shapes: `[B, H, W, in]` → `[B, h, w, out]`.
    fn forward(&self, x: Tensor<4>, pass: Pass) -> Tensor<4> {
        let shortcut = match &self.downsample {
            Some((conv, norm)) => {
                Shortcut::Of(chain(&[(conv, norm)], x.clone(), After::default(), pass))
            }
            None => Shortcut::Input,
        };
        let third = self.conv3.as_ref().zip(self.bn3.as_ref());
        let units = [(&self.conv1, &self.bn1), (&self.conv2, &self.bn2)].into_iter().chain(third);
        chain(&units.collect::<Vec<_>>(), x, After { shortcut, relu: true }, pass)
    }
}

/// What the layers of a residual network give for an image, in numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Activations {
    /// Of all layers.
    pub(super) all: f64,
    /// Of the layer that gives the most.
    pub(super) most: f64,
}

/// What the layers of a network give for an image of so many pixels.
pub(super) fn activations(config: &ModelConfig, pixels: f64) -> Activations {
    let architecture = Architecture::of(config.backbone);
    let width = architecture.width as f64;
    // Layers as (how many, numbers each); the stem works at half the resolution.
    let stem = match config.stem {
        Stem::Classic => vec![(1.0, width)],
        Stem::Deep => vec![(2.0, width), (1.0, 2.0 * width)],
    };
    let mut layers: Vec<(f64, f64)> =
        stem.into_iter().map(|(count, channels)| (count, channels * pixels / 4.0)).collect();
    for (stage, &blocks) in architecture.blocks.iter().enumerate() {
        let planes = width * f64::from(1 << stage);
        let stride = (4 << stage).min(config.output_stride.max(4)) as f64;
        let (blocks, cells) = (blocks as f64, pixels / (stride * stride));
        match architecture.bottleneck {
            true => layers.extend([(2.0 * blocks, planes * cells), (blocks, 4.0 * planes * cells)]),
            false => layers.push((2.0 * blocks, planes * cells)),
        }
    }
    Activations {
        all: layers.iter().map(|(count, numbers)| count * numbers).sum(),
        most: layers.iter().map(|(_, numbers)| *numbers).fold(0.0, f64::max),
    }
}

/// Weights of the backbone, rounded down, and channels of its features.
pub(super) fn weights(backbone: Backbone) -> (f64, f64) {
    let architecture = Architecture::of(backbone);
    let features = 8 * architecture.width * architecture.expansion();
    (architecture.millions * 1e6, features as f64)
}

impl Architecture {
    fn of(backbone: Backbone) -> Self {
        let (blocks, width, bottleneck, millions) = match backbone {
            Backbone::Tiny => ([1, 1, 1, 1], 16, false, 0.3),
            Backbone::Resnet18 => ([2, 2, 2, 2], 64, false, 11.0),
            Backbone::Resnet34 => ([3, 4, 6, 3], 64, false, 21.0),
            Backbone::Resnet50 => ([3, 4, 6, 3], 64, true, 23.0),
            Backbone::Resnet101 => ([3, 4, 23, 3], 64, true, 42.0),
        };
        Self { blocks, width, bottleneck, millions }
    }

    fn expansion(&self) -> usize {
        if self.bottleneck { 4 } else { 1 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        config::Kernels,
        device,
        model::{Branch, params},
    };

    fn resnet(backbone: Backbone, stem: Stem, output_stride: usize) -> Resnet {
        let config = ModelConfig { backbone, stem, output_stride, ..ModelConfig::default() };
        Resnet::new(&config, &device::cpu())
    }

    fn weights(network: &Resnet) -> usize {
        params::sizes(network).values().sum()
    }

    #[test]
    fn a_cell_reaches_as_far_as_is_known_of_published_networks() {
        let reach = |backbone, stem, output_stride| {
            Resnet::reach(&ModelConfig { backbone, stem, output_stride, ..ModelConfig::default() })
        };
        // Receptive fields of 435, 899, 427 and 971 pixels.
        let classic = |backbone| reach(backbone, Stem::Classic, 32);
        assert_eq!([Backbone::Resnet18, Backbone::Resnet34].map(classic), [217, 449]);
        assert_eq!([Backbone::Resnet50, Backbone::Resnet101].map(classic), [213, 485]);
        assert_eq!(reach(Backbone::Resnet18, Stem::Deep, 32), 219);
    }

    #[test]
    fn what_lies_beyond_the_reach_moves_nothing() {
        for output_stride in [8, 16, 32] {
            let config = ModelConfig {
                backbone: Backbone::Tiny,
                output_stride,
                // Winograd's tiles let neighbours of what is seen in, up to rounding.
                kernels: Kernels::Composed,
                ..ModelConfig::default()
            };
            let config = crate::config::Config { model: config, ..Default::default() };
            let model = crate::model::Model::new(&config, 2, &device::cpu());
            let reach = Resnet::reach(&config.model);
            let cells = |changed: Option<usize>| {
                let mut line = vec![0.3; 3 * 32 * 512];
                changed.into_iter().for_each(|column| line[16 * 512 + column] = 50.0);
                let images = crate::model::layers::tensor(line, [1, 3, 32, 512], &device::cpu());
                let features = model.backbone.forward(images, Pass::Evaluate(Branch::Whole));
                let column = 256 / output_stride;
                crate::model::layers::values(features.slice([
                    0..1,
                    0..128,
                    0..1,
                    column..column + 1,
                ]))
            };
            let whole = cells(None);
            assert!(cells(Some(256 - reach - 1)) == whole, "stride {output_stride}");
            assert!(cells(Some(256 + reach + 1)) == whole, "stride {output_stride}");
            assert!(cells(Some(256)) != whole, "stride {output_stride}");
        }
    }

    #[test]
    fn the_published_backbones_have_the_published_number_of_weights() {
        let deep = |backbone| weights(&resnet(backbone, Stem::Deep, 32));
        assert_eq!(deep(Backbone::Resnet18), 11_324_992);
        assert_eq!(deep(Backbone::Resnet50), 23_631_808);
        assert_eq!(deep(Backbone::Resnet101), 42_623_936);
        // torchvision's resnet18 and resnet34 without `fc`.
        let classic = |backbone| weights(&resnet(backbone, Stem::Classic, 32));
        assert_eq!(classic(Backbone::Resnet18), 11_176_512);
        assert_eq!(classic(Backbone::Resnet34), 21_284_672);
    }

    #[test]
    fn the_output_stride_decides_the_size_of_the_last_map_and_never_the_weights() {
        let images = Tensor::<4>::ones([1, 3, 72, 40], &device::cpu());
        for (stride, grid) in [(32, [3, 2]), (16, [5, 3]), (8, [9, 5])] {
            let network = resnet(Backbone::Tiny, Stem::Deep, stride);
            let [_, features, height, width] =
                network.forward(images.clone(), Pass::Evaluate(Branch::Whole)).dims();
            assert_eq!([height, width], grid);
            assert_eq!(network.grid([72, 40]), grid);
            assert_eq!(features, network.features());
            assert_eq!(weights(&network), weights(&resnet(Backbone::Tiny, Stem::Deep, 32)));
        }
    }

    #[test]
    fn names_are_those_of_torchvision() {
        let tensors = params::collect(&resnet(Backbone::Resnet50, Stem::Classic, 32));
        for name in [
            "conv1.weight",
            "bn1.running_mean",
            "layer1.0.downsample.0.weight",
            "layer1.0.downsample.1.running_var",
            "layer4.2.conv3.weight",
            "layer4.2.bn3.bias",
        ] {
            assert!(tensors.contains_key(name), "{name} is missing");
        }
    }
}
