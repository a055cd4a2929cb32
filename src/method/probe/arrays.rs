//! A probe as named tensors, in and out of a weight file.

use std::path::Path;

use burn::tensor::Device;
use nalgebra::{DMatrix, DVector};

use super::{
    class_head::{ClassHead, Sees},
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
    stats::LinearClassifier,
};

/// What the names of all tensors of the heads begin with.
const PREFIX: &str = "probe.";
/// 1 where the class head sees the image through its mask, and 0 where it sees all of it.
pub(crate) const MASKED: &str = "classifier.masked";

impl Probe {
    /// Every tensor by name: the backbone as torchvision names it, the heads as `probe.…`.
    pub fn to_arrays(&self) -> Arrays {
        let mut arrays = params::collect(&self.backbone);
        put(&mut arrays, "projection.weight", &self.projection.matrix);
        put_vector(&mut arrays, "projection.bias", &self.projection.offset);
        for (index, head) in self.mask_heads.students.iter().enumerate() {
            put(&mut arrays, &format!("student.{index}.hidden.weight"), &head.hidden);
            put_vector(&mut arrays, &format!("student.{index}.hidden.bias"), &head.hidden_bias);
            put(&mut arrays, &format!("student.{index}.output.weight"), &head.output);
            put_vector(&mut arrays, &format!("student.{index}.output.bias"), &head.output_bias);
        }
        let ClassHead { classifier, sees } = &self.class_head;
        put(&mut arrays, "classifier.weight", &classifier.weights);
        put_vector(&mut arrays, "classifier.bias", &classifier.intercepts);
        let masked = f32::from(u8::from(*sees == Sees::Foreground));
        put_vector(&mut arrays, MASKED, &DVector::from_element(1, masked));
        put_vector(&mut arrays, "beta", &DVector::from_element(1, self.mask_heads.beta as f32));
        arrays
    }

    /// Puts a probe for `classes` classes together from what [`Self::to_arrays`] gave.
    pub fn from_arrays(
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
        let matrix = parts.matrix("projection.weight", None, Some(mask_width))?;
        if matrix.nrows() == 0 {
            return Err(parts.broken("that project features to nothing"));
        }
        let offset = parts.vector("projection.bias", matrix.nrows())?;
        let students = parts.networks("student", [matrix.nrows(), 1])?;
        // A mean of each channel, and one of its highest values.
        let class_width = 2 * width(&config.probe.class_stages);
        let weights = parts.matrix("classifier.weight", Some(classes), Some(class_width))?;
        let intercepts = parts.vector("classifier.bias", classes)?;
        let beta = f64::from(parts.vector("beta", 1)?[0]);
        if !(0.0..=1.0).contains(&beta) {
            return Err(parts.broken(&format!("whose `{PREFIX}beta` is {beta}")));
        }
        let classifier = LinearClassifier { weights, intercepts };
        // Class heads of older runs always see the whole image.
        let is_masked = parts.arrays.contains_key(&format!("{PREFIX}{MASKED}"))
            && parts.vector(MASKED, 1)?[0] > 0.5;
        let sees = if is_masked { Sees::Foreground } else { Sees::Image };
        Ok(Self {
            backbone,
            projection: Projection { matrix, offset },
            mask_heads: MaskHeads { students, beta },
            class_head: ClassHead { classifier, sees },
        })
    }
}

fn put(arrays: &mut Arrays, name: &str, matrix: &DMatrix<f32>) {
    let values = matrix.transpose().data.into();
    let shape = vec![matrix.nrows(), matrix.ncols()];
    arrays.insert(format!("{PREFIX}{name}"), Array { shape, values });
}

fn put_vector(arrays: &mut Arrays, name: &str, vector: &DVector<f32>) {
    let array = Array { shape: vec![vector.len()], values: vector.as_slice().to_vec() };
    arrays.insert(format!("{PREFIX}{name}"), array);
}

/// The tensors of the heads, taken one by one; none has a shape that nothing fits.
struct Parts<'a> {
    path: &'a Path,
    arrays: Arrays,
}

impl Parts<'_> {
    fn matrix(
        &mut self,
        name: &str,
        rows: Option<usize>,
        columns: Option<usize>,
    ) -> Result<DMatrix<f32>> {
        let Array { shape, values } = self.take(name)?;
        let fits = |wanted: Option<usize>, found: usize| wanted.is_none_or(|n| n == found);
        match shape[..] {
            [r, c] if fits(rows, r) && fits(columns, c) => {
                Ok(DMatrix::from_row_slice(r, c, &values))
            }
            _ => Err(self.broken(&format!("whose `{PREFIX}{name}` is {shape:?}"))),
        }
    }

    fn vector(&mut self, name: &str, length: usize) -> Result<DVector<f32>> {
        let Array { shape, values } = self.take(name)?;
        match shape[..] {
            [found] if found == length => Ok(DVector::from_vec(values)),
            _ => Err(self.broken(&format!("whose `{PREFIX}{name}` is {shape:?}"))),
        }
    }

    /// All networks of a kind, at least one.
    fn networks(&mut self, kind: &str, [inputs, outputs]: [usize; 2]) -> Result<Vec<Mlp>> {
        let mut networks = Vec::new();
        loop {
            let name = |part: &str| format!("{kind}.{}.{part}", networks.len());
            if !networks.is_empty()
                && !self.arrays.contains_key(&format!("{PREFIX}{}", name("hidden.weight")))
            {
                return Ok(networks);
            }
            let hidden = self.matrix(&name("hidden.weight"), None, Some(inputs))?;
            let hidden_bias = self.vector(&name("hidden.bias"), hidden.nrows())?;
            let output =
                self.matrix(&name("output.weight"), Some(outputs), Some(hidden.nrows()))?;
            let output_bias = self.vector(&name("output.bias"), outputs)?;
            networks.push(Mlp { hidden, hidden_bias, output, output_bias });
        }
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
    fn a_probe_comes_back_and_the_class_heads_of_older_runs_see_the_whole_image() {
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
        let students = vec![Mlp::drawn([2, 3, 1], &mut stream)];
        let classifier = LinearClassifier {
            weights: DMatrix::from_fn(5, 2 * (layer3 + layer4), |_, _| stream.normal() as f32),
            intercepts: DVector::zeros(5),
        };
        let class_head = ClassHead { classifier, sees: Sees::Foreground };
        let mask_heads = MaskHeads { students, beta: 0.25 };
        let probe = Probe { backbone: network, projection, mask_heads, class_head };

        let mut arrays = probe.to_arrays();
        let back = |arrays: &Arrays| {
            Probe::from_arrays(arrays.clone(), Path::new("w"), &config, 5, &device).unwrap()
        };
        let found = back(&arrays);
        assert_eq!(found.mask_heads, probe.mask_heads);
        assert_eq!(found.class_head, probe.class_head);
        arrays.remove("probe.classifier.masked").unwrap();
        assert_eq!(back(&arrays).class_head.sees, Sees::Image);
    }
}
