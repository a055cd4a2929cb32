//! The residual network.

use super::{
    Weights,
    graph::{Attribute, Graph, Value},
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

/// What `layer1` to `layer4` give for normalized images, as they are needed.
pub(super) fn stages(
    graph: &mut Graph,
    images: &Value,
    config: &ModelConfig,
    weights: &Weights<'_>,
    branch: Branch,
) -> Result<Vec<Value>> {
    let mut network = Network { graph, weights, branch };
    let mut x = network.unit(images, "conv1", "bn1", [2, 1])?;
    x = network.relu(&x);
    if config.stem == Stem::Deep {
        for (conv, norm) in [("conv2", "bn2"), ("conv3", "bn3")] {
            x = network.unit(&x, conv, norm, [1, 1])?;
            x = network.relu(&x);
        }
    }
    let ints = |n: i64, count: usize| Attribute::Ints(vec![n; count]);
    let window = [("kernel_shape", ints(3, 2)), ("strides", ints(2, 2)), ("pads", ints(1, 4))];
    x = network.graph.op("MaxPool", &[&x], &window);
    let mut given = Vec::new();
    for (stage, blocks) in block_steps(config).into_iter().enumerate() {
        for (index, steps) in blocks.into_iter().enumerate() {
            x = network.block(&x, &format!("layer{}.{index}", stage + 1), steps)?;
        }
        given.push(x.clone());
    }
    Ok(given)
}

struct Network<'a> {
    graph: &'a mut Graph,
    weights: &'a Weights<'a>,
    branch: Branch,
}

impl Network<'_> {
    /// `relu(branch(x) + shortcut(x))`
    fn block(&mut self, x: &Value, name: &str, steps: BlockSteps) -> Result<Value> {
        let BlockSteps { stride, dilation, bottleneck } = steps;
        let part = |part: &str| format!("{name}.{part}");
        let strides = if bottleneck {
            [[1, 1], [stride, dilation]]
        } else {
            [[stride, dilation], [1, dilation]]
        };
        let mut y = self.unit(x, &part("conv1"), &part("bn1"), strides[0])?;
        y = self.relu(&y);
        y = self.unit(&y, &part("conv2"), &part("bn2"), strides[1])?;
        if bottleneck {
            y = self.relu(&y);
            y = self.unit(&y, &part("conv3"), &part("bn3"), [1, 1])?;
        }
        let projection = part("downsample.0");
        let shortcut = if self.weights.arrays.contains_key(&format!("{projection}.weight")) {
            self.unit(x, &projection, &part("downsample.1"), [stride, 1])?
        } else {
            x.clone()
        };
        let sum = self.graph.add(&y, &shortcut);
        Ok(self.relu(&sum))
    }

    /// A convolution and its batch norm.
    fn unit(&mut self, x: &Value, conv: &str, norm: &str, steps: [usize; 2]) -> Result<Value> {
        let name = format!("{conv}.weight");
        let (array, [_, _, kernel, _]) = self.weights.shaped(&name)?;
        let weight = self.graph.weight(&name, array);
        let convolved = self.graph.conv(x, &weight, None, kernel, steps);
        let statistic = |kind: &str| -> String {
            let own = format!("{norm}.foreground_{kind}");
            let is_own =
                self.branch == Branch::Foreground && self.weights.arrays.contains_key(&own);
            if is_own { own } else { format!("{norm}.running_{kind}") }
        };
        let names =
            [format!("{norm}.weight"), format!("{norm}.bias"), statistic("mean"), statistic("var")];
        let mut inputs = vec![convolved];
        for name in names {
            let array = self.weights.get(&name)?;
            inputs.push(self.graph.weight(&name, array));
        }
        let inputs: Vec<&Value> = inputs.iter().collect();
        let epsilon = ("epsilon", Attribute::Float(EPSILON as f32));
        Ok(self.graph.op("BatchNormalization", &inputs, &[epsilon]))
    }

    fn relu(&mut self, x: &Value) -> Value {
        self.graph.op("Relu", &[x], &[])
    }
}

/// The map of each class that a head gives, `[1, 3, H, W]` → `[1, C, h, w]`, and the number C.
pub(super) fn class_maps(
    graph: &mut Graph,
    images: &Value,
    (head, branch): (&str, Branch),
    config: &Config,
    weights: &Weights<'_>,
) -> Result<(Value, usize)> {
    let stages = stages(graph, images, &config.model, weights, branch)?;
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
    let weight = graph.floats(&[classes, channels, 1, 1], &mean(&weight.values, channels));
    let bias = graph.floats(&[classes], &mean(&bias.values, 1));
    Ok((graph.conv(features, &weight, Some(&bias), 1, [1, 1]), classes))
}
