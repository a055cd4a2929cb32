//! Deep MIL: the attention of a classifier is the mask.

use burn::tensor::{Device, Tensor};

use super::{
    classifier::{Classifier, DropoutKey, chosen},
    decision,
};
use crate::{
    config::{AttentionCut, Config, Decision},
    model::{Branch, Pass, Response, attention::AttentionNetwork, mask::enlarge},
};

/// Deep MIL, with one attention map per class.
#[derive(Debug, Clone, Copy)]
pub struct DeepMil;

impl Classifier for DeepMil {
    type Network = AttentionNetwork;

    fn network(&self, config: &Config, classes: usize, device: &Device) -> AttentionNetwork {
        AttentionNetwork::new(config, classes, device)
    }

    fn scores(
        &self,
        network: &AttentionNetwork,
        images: Tensor<4>,
        pass: Pass,
        _config: &Config,
        _dropout: Option<DropoutKey<'_>>,
    ) -> Tensor<2> {
        network.attend(images, pass).scores
    }

    fn scores_and_mask(
        &self,
        network: &AttentionNetwork,
        image: Tensor<4>,
        class: Option<usize>,
        config: &Config,
    ) -> (Tensor<2>, Tensor<4>) {
        let [_, _, height, width] = image.dims();
        let size = [height, width];
        let Response { scores, maps } = network.attend(image, Pass::Evaluate(Branch::Whole));
        let class = chosen(&scores, class);
        let [_, classes, h, w] = maps.dims();
        let attention = maps.slice_dim(1, class..class + 1);
        let stride = config.model.output_stride;
        let mask = match config.mask.rule {
            Decision::Method => {
                let attention = enlarge(attention, size, stride, &config.mask);
                above_even(attention, h * w, classes, config.deep_mil.cut)
            }
            Decision::MinMax => decision::min_max(attention, size, stride, &config.mask),
        };
        (scores, mask)
    }

    fn mask_rule(&self, config: &Config) -> String {
        let share = match (config.mask.rule, config.deep_mil.cut) {
            (Decision::MinMax, _) => return decision::min_max_rule(&config.mask),
            (Decision::Method, AttentionCut::Uniform) => "1/n of a map of n cells",
            (Decision::Method, AttentionCut::Legacy) => "1/(c·n) of c maps of n cells",
        };
        format!("pixels that the class attends to by at least {share}")
    }
}

/// `a·n / (1 + a·n)`: at least ½ exactly where attention is at least `1/n`.
fn above_even(attention: Tensor<4>, cells: usize, classes: usize, cut: AttentionCut) -> Tensor<4> {
    let n = match cut {
        AttentionCut::Uniform => cells,
        AttentionCut::Legacy => cells * classes,
    };
    let share = attention * n as f64;
    share.clone() / (share + 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        device,
        model::layers::{tensor, values},
    };

    #[test]
    fn foreground_is_what_gets_more_than_its_share() {
        let attention = tensor(vec![0.1, 0.2, 0.25, 0.45], [1, 1, 1, 4], &device::cpu());
        let marked = |cut| -> Vec<bool> {
            values(above_even(attention.clone(), 4, 2, cut)).iter().map(|&m| m >= 0.5).collect()
        };
        assert_eq!(marked(AttentionCut::Uniform), [false, false, true, true]);
        // 1/(2·4): twice as permissive with two classes.
        assert_eq!(marked(AttentionCut::Legacy), [false, true, true, true]);
    }
}
