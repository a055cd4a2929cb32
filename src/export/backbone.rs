//! The residual network.

use super::{
    Weights,
    graph::{Attribute, Value},
};
use crate::{
    config::{Config, ModelConfig, Stem},
    error::Result,
    model::{
        Branch,
        layers::EPSILON,
        resnet::{BlockSteps, block_steps},
    },
};

/// The outputs of `layer1` to `layer4` for normalized images.
pub(super) fn stages<'g>(
    images: Value<'g>,
    config: &ModelConfig,
    weights: &Weights<'_>,
    branch: Branch,
) -> Result<Vec<Value<'g>>> {
    let network = Network { weights, branch };
    let mut x = network.unit(images, "conv1", "bn1", [2, 1])?.relu();
    if config.stem == Stem::Deep {
        for (conv, norm) in [("conv2", "bn2"), ("conv3", "bn3")] {
            x = network.unit(x, conv, norm, [1, 1])?.relu();
        }
    }
    let ints = |n: i64, count: usize| Attribute::Ints(vec![n; count]);
    let window = [("kernel_shape", ints(3, 2)), ("strides", ints(2, 2)), ("pads", ints(1, 4))];
    x = x.op("MaxPool", &[], &window);
    let stages = block_steps(config).into_iter().enumerate().map(|(stage, blocks)| {
        for (index, steps) in blocks.into_iter().enumerate() {
            x = network.block(x, &format!("layer{}.{index}", stage + 1), steps)?;
        }
        Ok(x)
    });
    stages.collect()
}

struct Network<'a> {
    weights: &'a Weights<'a>,
    branch: Branch,
}

impl Network<'_> {
    /// `relu(branch(x) + shortcut(x))`
    fn block<'g>(&self, x: Value<'g>, name: &str, steps: BlockSteps) -> Result<Value<'g>> {
        let part = |part: &str| format!("{name}.{part}");
        let [first, second] = steps.of_units();
        let mut y = self.unit(x, &part("conv1"), &part("bn1"), first)?.relu();
        y = self.unit(y, &part("conv2"), &part("bn2"), second)?;
        if steps.bottleneck {
            y = self.unit(y.relu(), &part("conv3"), &part("bn3"), [1, 1])?;
        }
        let projection = part("downsample.0");
        let shortcut = if self.weights.arrays.contains_key(&format!("{projection}.weight")) {
            self.unit(x, &projection, &part("downsample.1"), [steps.stride, 1])?
        } else {
            x
        };
        Ok((y + shortcut).relu())
    }

    /// A convolution and its batch norm.
    fn unit<'g>(
        &self,
        x: Value<'g>,
        conv: &str,
        norm: &str,
        steps: [usize; 2],
    ) -> Result<Value<'g>> {
        let name = format!("{conv}.weight");
        let (array, [_, _, kernel, _]) = self.weights.shaped(&name)?;
        let convolved = x.conv(x.graph().weight(&name, array), None, kernel, steps);
        let statistic = |kind: &str| {
            let own = format!("{norm}.foreground_{kind}");
            let is_own =
                self.branch == Branch::Foreground && self.weights.arrays.contains_key(&own);
            if is_own { own } else { format!("{norm}.running_{kind}") }
        };
        let names =
            [format!("{norm}.weight"), format!("{norm}.bias"), statistic("mean"), statistic("var")];
        let parameters =
            names.iter().map(|name| Ok(x.graph().weight(name, self.weights.get(name)?)));
        let epsilon = ("epsilon", Attribute::Float(EPSILON as f32));
        let parameters: Vec<Value<'g>> = parameters.collect::<Result<_>>()?;
        Ok(convolved.op("BatchNormalization", &parameters, &[epsilon]))
    }
}

/// The map of each class that a head gives, `[1, 3, H, W]` → `[1, C, h, w]`, and the number C.
pub(super) fn class_maps<'g>(
    images: Value<'g>,
    (head, branch): (&str, Branch),
    config: &Config,
    weights: &Weights<'_>,
) -> Result<(Value<'g>, usize)> {
    let stages = stages(images, &config.model, weights, branch)?;
    let features = stages.last().expect("a residual network has four stages");
    let maps_per_class = config.pool.maps_per_class;
    let (weight, [maps, channels, _, _]) = weights.shaped(&format!("{head}.weight"))?;
    let bias = weights.get(&format!("{head}.bias"))?;
    // The mean of a class's maps is the map of its mean weights.
    let mean = |values: &[f32], length: usize| -> Vec<f32> {
        let by_class = values.chunks_exact(length * maps_per_class);
        let one = |class: &[f32]| -> Vec<f32> {
            let sum = |i: usize| class.iter().skip(i).step_by(length).sum::<f32>();
            (0..length).map(|i| sum(i) / maps_per_class as f32).collect()
        };
        by_class.flat_map(one).collect()
    };
    let classes = maps / maps_per_class;
    let graph = images.graph();
    let weight = graph.constant(&[classes, channels, 1, 1], &mean(&weight.values, channels));
    let bias = graph.constant(&[classes], &mean(&bias.values, 1));
    Ok((features.conv(weight, Some(bias), 1, [1, 1]), classes))
}
