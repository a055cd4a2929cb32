//! A probe as named tensors, in and out of a weight file.

use std::path::Path;

use burn::tensor::Device;
use nalgebra::{DMatrix, DVector};

use super::{
    class_head::{ClassHead, ClassInput},
    heads::MaskHeads,
    mlp::Mlp,
    model::{Probe, backbone},
    projection::Projection,
};
use crate::{
    config::{Config, Stage},
    error::{Error, Result},
    model::{
        params::{self, Array},
        resnet::Resnet,
        weights::{self, Arrays},
    },
    stats::{CutRule, LinearClassifier},
};

/// Prefix of the names of all tensors of the heads.
const PREFIX: &str = "probe.";
/// 1 if the class head is given the image through its mask, 0 if it is given the whole image.
pub(crate) const MASKED: &str = "classifier.masked";

/// The rule by which scores are cut. Older runs have no α.
pub(crate) const BETA: &str = "beta";
pub(crate) const ALPHA: &str = "alpha";

impl Probe {
    /// Every tensor by name: the backbone as torchvision names it, the heads as `probe.…`.
    pub(crate) fn to_arrays(&self) -> Arrays {
        let ClassHead { classifier, input } = &self.class_head;
        let mut layers = vec![
            ("projection".to_owned(), &self.projection.matrix, &self.projection.offset),
            ("classifier".to_owned(), &classifier.weights, &classifier.intercepts),
        ];
        for (index, head) in self.mask_heads.students.iter().enumerate() {
            layers.extend([
                (format!("student.{index}.hidden"), &head.hidden, &head.hidden_bias),
                (format!("student.{index}.output"), &head.output, &head.output_bias),
            ]);
        }
        let mut arrays = params::collect(&self.backbone);
        let mut put = |name: &str, shape: Vec<usize>, values: Vec<f32>| {
            arrays.insert(format!("{PREFIX}{name}"), Array { shape, values });
        };
        for (name, weight, bias) in layers {
            let shape = vec![weight.nrows(), weight.ncols()];
            put(&format!("{name}.weight"), shape, weight.transpose().data.into());
            put(&format!("{name}.bias"), vec![bias.len()], bias.as_slice().to_vec());
        }
        put(MASKED, vec![1], vec![f32::from(u8::from(*input == ClassInput::Foreground))]);
        let CutRule { beta, alpha } = self.mask_heads.cut_rule;
        put(BETA, vec![1], vec![beta as f32]);
        put(ALPHA, vec![1], vec![alpha as f32]);
        arrays
    }

    /// A probe for `classes` classes from the tensors of [`Self::to_arrays`].
    pub(crate) fn from_arrays(
        arrays: Arrays,
        path: &Path,
        config: &Config,
        classes: usize,
        device: &Device,
    ) -> Result<Self> {
        let backbone = Resnet::new(&backbone(&config.model), device);
        let channels = backbone.stage_channels();
        let (heads, rest): (Arrays, Arrays) =
            arrays.into_iter().partition(|(name, _)| name.starts_with(PREFIX));
        let (backbone, loaded) = weights::load(backbone, path, rest)?;
        let mut parts = Parts { path, arrays: heads };
        if !loaded.missing.is_empty() {
            return Err(parts.broken(&format!("of an incomplete network ({loaded})")));
        }
        let width = |stages: &[Stage]| stages.iter().map(|stage| channels[stage.index()]).sum();
        let mask_width: usize = width(&config.probe.mask_stages);
        let (matrix, offset) = parts.layer("projection", None, mask_width)?;
        let dimensions = matrix.nrows();
        if dimensions == 0 {
            return Err(parts.broken("that project features to nothing"));
        }
        let mut students = Vec::new();
        while students.is_empty() || parts.has(&format!("student.{}.hidden.weight", students.len()))
        {
            let name = format!("student.{}", students.len());
            let (hidden, hidden_bias) = parts.layer(&format!("{name}.hidden"), None, dimensions)?;
            let (output, output_bias) =
                parts.layer(&format!("{name}.output"), Some(1), hidden.nrows())?;
            students.push(Mlp { hidden, hidden_bias, output, output_bias });
        }
        // Two numbers per channel: its mean, and the mean of its highest values.
        let class_width = 2 * width(&config.probe.class_stages);
        let (weights, intercepts) = parts.layer("classifier", Some(classes), class_width)?;
        let beta = parts.share(BETA)?;
        let cut_rule = match parts.has(ALPHA) {
            true => CutRule { beta, alpha: parts.share(ALPHA)? },
            false => CutRule::halfway(beta),
        };
        let classifier = LinearClassifier { weights, intercepts };
        // Class heads of older runs are always given the whole image.
        let is_masked = parts.has(MASKED) && parts.vector(MASKED, 1)?[0] > 0.5;
        let input = if is_masked { ClassInput::Foreground } else { ClassInput::Image };
        Ok(Self {
            backbone,
            projection: Projection { matrix, offset },
            mask_heads: MaskHeads { students, cut_rule },
            class_head: ClassHead { classifier, input },
            config: config.clone(),
            device: device.clone(),
        })
    }
}

/// The tensors of the heads, taken out one by one and checked for their shape.
struct Parts<'a> {
    path: &'a Path,
    arrays: Arrays,
}

impl Parts<'_> {
    /// Weights, outputs × inputs, and bias of a linear layer; without `outputs`, their number is
    /// free.
    fn layer(
        &mut self,
        name: &str,
        outputs: Option<usize>,
        inputs: usize,
    ) -> Result<(DMatrix<f32>, DVector<f32>)> {
        let weight = format!("{name}.weight");
        let Array { shape, values } = self.take(&weight)?;
        let matrix = match shape[..] {
            [rows, columns] if columns == inputs && outputs.is_none_or(|wanted| wanted == rows) => {
                DMatrix::from_row_slice(rows, columns, &values)
            }
            _ => return Err(self.broken(&format!("whose `{PREFIX}{weight}` is {shape:?}"))),
        };
        let bias = self.vector(&format!("{name}.bias"), matrix.nrows())?;
        Ok((matrix, bias.into()))
    }

    fn vector(&mut self, name: &str, length: usize) -> Result<Vec<f32>> {
        let Array { shape, values } = self.take(name)?;
        match shape[..] {
            [found] if found == length => Ok(values),
            _ => Err(self.broken(&format!("whose `{PREFIX}{name}` is {shape:?}"))),
        }
    }

    /// A number in [0, 1].
    fn share(&mut self, name: &str) -> Result<f64> {
        let share = f64::from(self.vector(name, 1)?[0]);
        if (0.0..=1.0).contains(&share) {
            Ok(share)
        } else {
            Err(self.broken(&format!("whose `{PREFIX}{name}` is {share}")))
        }
    }

    fn has(&self, name: &str) -> bool {
        self.arrays.contains_key(&format!("{PREFIX}{name}"))
    }

    fn take(&mut self, name: &str) -> Result<Array> {
        let name = format!("{PREFIX}{name}");
        self.arrays.remove(&name).ok_or_else(|| self.broken(&format!("without `{name}`")))
    }

    fn broken(&self, what: &str) -> Error {
        Error::Weights {
            path: self.path.to_owned(),
            problem: format!("weights {what}"),
            remedy: "give a run as `pinpoint train` wrote it".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        config::Backbone,
        device,
        rng::{Purpose, Stream},
    };

    #[test]
    fn a_probe_comes_back_and_older_ones_see_the_whole_image_and_cut_halfway() {
        let mut config = Config::default();
        config.model.backbone = Backbone::Tiny;
        let device = device::cpu();
        let network = Resnet::drawn(&backbone(&config.model), 1, &device);
        let mut stream = Stream::new(1, Purpose::Init, 0, 0);
        let [_, layer2, layer3, layer4] = network.stage_channels();
        let projection = Projection {
            matrix: DMatrix::from_fn(2, layer2 + layer3, |_, _| stream.normal() as f32),
            offset: DVector::zeros(2),
        };
        let students = vec![Mlp::random([2, 3, 1], &mut stream)];
        let classifier = LinearClassifier {
            weights: DMatrix::from_fn(5, 2 * (layer3 + layer4), |_, _| stream.normal() as f32),
            intercepts: DVector::zeros(5),
        };
        let class_head = ClassHead { classifier, input: ClassInput::Foreground };
        let mask_heads = MaskHeads { students, cut_rule: CutRule { beta: 0.25, alpha: 0.125 } };
        let probe = Probe {
            backbone: network,
            projection,
            mask_heads,
            class_head,
            config: config.clone(),
            device: device.clone(),
        };

        let mut arrays = probe.to_arrays();
        let back = |arrays: &Arrays| {
            Probe::from_arrays(arrays.clone(), Path::new("w"), &config, 5, &device).unwrap()
        };
        let found = back(&arrays);
        assert_eq!(found.mask_heads, probe.mask_heads);
        assert_eq!(found.class_head, probe.class_head);
        arrays.remove("probe.classifier.masked").unwrap();
        arrays.remove("probe.alpha").unwrap();
        let older = back(&arrays);
        assert_eq!(older.class_head.input, ClassInput::Image);
        assert_eq!(older.mask_heads.cut_rule, CutRule { beta: 0.25, alpha: 0.375 });
    }
}
