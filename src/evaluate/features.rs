//! Features of a frozen backbone, from which decidability is computed.

use std::path::Path;

use burn::{module::Module as _, tensor::Device};
use image::RgbImage;

use crate::{
    config::{Backbone, ModelConfig, Normalization, PreprocessConfig, Stem},
    data::preprocess::{EvalGeometry, Normalizer, Size},
    device,
    error::{Error, Result},
    metrics::FeatureGrid,
    model::{
        Branch, Pass,
        layers::{tensor, values},
        resnet::Resnet,
        weights,
    },
};

/// Stage 3 is deep enough for parts and textures, and fine enough to localize them.
const STAGE: usize = 3;
/// Larger images are shrunk to this short side, which bounds the time per image.
const SHORT_SIDE: u32 = 512;
/// The deepest first, since the file of a deep network has all weights of a shallower one too.
const BACKBONES: [Backbone; 5] = [
    Backbone::Resnet101,
    Backbone::Resnet50,
    Backbone::Resnet34,
    Backbone::Resnet18,
    Backbone::Tiny,
];

/// A frozen backbone: the same features for every method whose maps are scored.
#[derive(Debug)]
pub struct Features {
    network: Resnet,
    preprocess: PreprocessConfig,
    device: Device,
    name: String,
}

impl Features {
    /// Opens the backbone in a weight file of torchvision or of a run, whatever its depth.
    pub fn open(path: &Path) -> Result<Self> {
        let device = device::cpu();
        let arrays = weights::read(path)?;
        for backbone in BACKBONES {
            for stem in [Stem::Classic, Stem::Deep] {
                let config = ModelConfig { backbone, stem, ..ModelConfig::default() };
                let network = Resnet::new(&config, &device);
                let Ok((network, _)) = weights::load(network, path, arrays.clone()) else {
                    continue;
                };
                let preprocess = PreprocessConfig {
                    normalization: Normalization::Imagenet,
                    upscale_short_side: 0,
                    shrink_short_side: SHORT_SIDE,
                    eval_multiple: 1,
                    ..PreprocessConfig::default()
                };
                let (backbone, file) = (backbone.name(), path.display());
                let name = format!("stage {STAGE} of {backbone}, weights `{file}`");
                return Ok(Self { network: network.valid(), preprocess, device, name });
            }
        }
        Err(Error::weights(
            path,
            "no residual network that features could be taken from",
            "give the weights of one by `--weights`; `pinpoint weights` lists some",
        ))
    }

    /// The stage, backbone and weights, for the protocol of a report.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The features of an image.
    pub fn of(&self, image: &RgbImage) -> FeatureGrid {
        let geometry = EvalGeometry::new(Size::of(image), &self.preprocess);
        let input = geometry.input(image, &Normalizer::new(self.preprocess.normalization));
        let Size { width, height } = geometry.padded;
        let input = tensor(input, [1, 3, height as usize, width as usize], &self.device);
        let stages = self.network.stages(input, Pass::Evaluate(Branch::Whole));
        let stage = stages[STAGE - 1].clone();
        let [_, features, height, width] = stage.dims();
        FeatureGrid { features, width, height, values: values(stage) }
    }
}

#[cfg(test)]
mod tests {
    use image::Rgb;

    use super::*;
    use crate::{
        config::Config,
        model::{Model, params, weights::Arrays},
        run::write_atomically_by,
    };

    fn saved(backbone: Backbone, folder: &Path) -> std::path::PathBuf {
        let mut config = Config::default();
        config.model.backbone = backbone;
        let model = Model::new(&config, 2, &device::cpu());
        let path = folder.join("w.safetensors");
        let arrays = params::collect(&model);
        write_atomically_by(&path, |file| weights::write(file, &arrays, &"a note")).unwrap();
        path
    }

    #[test]
    fn the_backbone_is_told_from_its_weights_and_gives_a_grid_of_features() {
        let folder = tempfile::tempdir().unwrap();
        let features = Features::open(&saved(Backbone::Tiny, folder.path())).unwrap();
        assert!(features.name().starts_with("stage 3 of tiny"), "{}", features.name());
        let image = RgbImage::from_pixel(70, 40, Rgb([200, 30, 90]));
        let grid = features.of(&image);
        // A cell for 16 pixels each way; 16 channels, doubled twice.
        assert_eq!((grid.features, grid.width, grid.height), (64, 5, 3));
        assert_eq!(grid.values.len(), 64 * 15);
        assert_eq!(features.of(&image), grid);
    }

    #[test]
    fn what_has_no_backbone_is_refused_with_a_remedy() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("w.safetensors");
        write_atomically_by(&path, |file| weights::write(file, &Arrays::new(), &"a note")).unwrap();
        let message = Features::open(&path).unwrap_err().to_string();
        assert!(
            message.contains("no residual network") && message.contains("--weights"),
            "{message}"
        );
    }
}
