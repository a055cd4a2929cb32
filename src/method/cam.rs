//! Class activation maps as masks.
//!
//! The methods differ in how the map of a class is pooled into its score; all else, the rule that
//! makes a mask included, is the same.

use burn::tensor::{Device, Tensor};

use super::{
    classifier::{Classifier, DropoutKey, chosen},
    decision,
    dropout::Dropout,
};
use crate::{
    config::{Cells, Config, Decision, Evidence},
    model::{
        Branch, Pass,
        cam::CamNetwork,
        layers::tensor,
        mask, pooling,
        wildcat::{Pooling, pool},
    },
};

/// How class maps are pooled into scores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cam {
    /// By their mean.
    Average,
    /// By their maximum.
    Max,
    /// By log-sum-exp with `pool.sharpness`.
    LogSumExp,
    /// By the highest and lowest cells of several maps per class.
    Wildcat,
}

impl Cam {
    /// Shapes: `[B, C, h, w]` → `[B, C]`.
    pub fn pool(self, maps: Tensor<4>, config: &Config, keep: Option<&[f32]>) -> Tensor<2> {
        match self {
            Self::Average => pooling::mean(maps),
            Self::Max => pooling::max(maps),
            Self::LogSumExp => pooling::log_sum_exp(maps, config.pool.sharpness),
            Self::Wildcat => {
                let rule = Pooling { config: &config.pool, counts_evidence_against: true };
                pool(maps, &rule, keep)
            }
        }
    }
}

impl Classifier for Cam {
    type Network = CamNetwork;

    fn published(&self, config: &mut Config) {
        config.pool.maps_per_class = 1;
        if *self == Self::Wildcat {
            config.pool.maps_per_class = 4;
            config.pool.top = Cells::Fraction(0.1);
            config.pool.bottom = Cells::Fraction(0.1);
            config.pool.bottom_weight = 0.6;
        }
    }

    fn network(&self, config: &Config, classes: usize, device: &Device) -> CamNetwork {
        CamNetwork::new(config, classes, device)
    }

    fn scores(
        &self,
        network: &CamNetwork,
        images: Tensor<4>,
        pass: Pass,
        config: &Config,
        dropout: Option<DropoutKey<'_>>,
    ) -> Tensor<2> {
        let maps = network.maps(images, pass);
        let [_, classes, height, width] = maps.dims();
        let dropout = dropout.map(|DropoutKey { epoch, samples }| {
            Dropout::draw(config, classes, [height * width, 0], epoch, samples)
        });
        self.pool(maps, config, dropout.and_then(|dropout| dropout.localizer).as_deref())
    }

    fn scores_and_mask(
        &self,
        network: &CamNetwork,
        image: Tensor<4>,
        class: Option<usize>,
        config: &Config,
    ) -> (Tensor<2>, Tensor<4>) {
        let [_, _, height, width] = image.dims();
        let maps = network.maps(image, Pass::Evaluate(Branch::Whole));
        let scores = self.pool(maps.clone(), config, None);
        let class = chosen(&scores, class);
        let (size, stride) = ([height, width], config.model.output_stride);
        let mask = match config.mask.rule {
            Decision::Method => decision::argmax(&maps, class, size, stride, &config.mask),
            Decision::MinMax => {
                let [_, classes, _, _] = maps.dims();
                let belief = (0..classes).map(|other| f32::from(u8::from(other == class)));
                let belief = tensor(belief.collect(), [1, classes], &maps.device());
                let map = mask::evidence(belief, maps, config.evidence());
                decision::min_max(map, size, stride, &config.mask)
            }
        };
        (scores, mask)
    }

    fn mask_rule(&self, config: &Config) -> String {
        match config.mask.rule {
            Decision::Method => "pixels where the class has the highest of all maps".to_owned(),
            Decision::MinMax => {
                let evidence = match config.evidence() {
                    Evidence::Weighted => "",
                    Evidence::Centred => "less the mean of all maps: ",
                    Evidence::Spread => "spread of all maps instead of the class's: ",
                    Evidence::Auto => "spread of all maps (the difference if there are two): ",
                };
                format!("{evidence}{}", decision::min_max_rule(&config.mask))
            }
        }
    }
}
