//! The baselines of our method: scores, losses, gradients and masks.

use std::collections::BTreeMap;

use burn::tensor::Tensor;
use pinpoint::{
    collective::Share,
    config::{Backbone, Cells, Config, MaskConfig, Stage},
    data::loader::{Batch, SupervisedBatch},
    device,
    method::{
        Classifier, Learner, StepContext, cam::Cam, decision, deep_mil::DeepMil, grad_cam::GradCam,
        learner::BatchOf, unet::FullSupervision,
    },
    model::{Branch, Pass, attention::AttentionNetwork},
};

use super::{
    fixture::{Fixture, statistics, values},
    formula::{fill_in, pictures, tensor, uniform},
};

const SIZE: [usize; 2] = [40, 56];
const LABELS: [usize; 4] = [0, 1, 2, 1];
const UNET_SIZE: [usize; 2] = [37, 45];

/// Of scores, absolute for values up to 20 that come from features up to 100.
const SCORES: f32 = 3e-4;
/// Of losses, absolute for values around 1.
const LOSSES: f32 = 2e-5;
/// Of gradients, relative; log-sum-exp sharpens rounding tenfold.
const GRADIENTS: f64 = 6e-4;
/// Of running statistics, absolute for values around 1: means over a batch.
const STATISTICS: f32 = 5e-6;
/// Of gradient maps, relative to the largest value.
const MAPS: f32 = 1e-5;

fn config() -> Config {
    let mut config = Config::default();
    config.model.backbone = Backbone::Tiny;
    config.model.output_stride = 8;
    config.pool.maps_per_class = 1;
    config.pool.dropout = 0.0;
    config.deep_mil.width = 8;
    config.unet.width = 4;
    config.unet.depth = 3;
    config
}

fn fixture() -> Fixture {
    Fixture::open("baselines.safetensors")
}

fn batch([height, width]: [usize; 2], labels: &[usize]) -> Batch {
    Batch {
        images: values(pictures(0, labels.len(), [height, width], &device::cpu())),
        labels: labels.to_vec(),
        samples: (0..labels.len()).collect(),
        height,
        width,
        blank: false,
    }
}

/// Compares one step's loss, mistakes, gradients and effect on the statistics.
fn assert_step<L: Learner>(name: &str, learner: &L, config: &Config, batch: &BatchOf<L>) {
    let (device, images): (_, &Batch) = (device::cpu(), batch.as_ref());
    let network = fill_in(learner.network(config, 3, &device.clone().autodiff()), 0);
    let context = StepContext {
        config,
        epoch: 0,
        device: &device,
        mean_colour: [0.0; 3],
        share: Share::whole(images.labels.len()),
    };
    let learned = learner.learn(&network, batch, &context);
    let fixture = fixture();
    fixture.assert_close(&format!("{name}/loss"), &[learned.terms.localizer as f32], LOSSES);
    fixture.assert_close(&format!("{name}/mistakes"), &[learned.mistakes as f32], 1e-6);
    // A shift of all attention changes nothing: the gradient of its bias is rounding alone.
    let floor = |key: &str| if key == "localizer.attend.bias" { 1e-5 } else { 0.0 };
    let gradients: BTreeMap<String, Vec<f32>> = learned.gradients;
    fixture.assert_rows(&format!("{name}/gradients"), &gradients, GRADIENTS, floor);
    let moved: Vec<f32> = statistics(&network).into_values().flatten().collect();
    fixture.assert_close(&format!("{name}/statistics"), &moved, STATISTICS);
}

fn assert_classifier<C: Classifier>(name: &str, classifier: &C, config: &Config) {
    let device = device::cpu();
    let network = fill_in(Classifier::network(classifier, config, 3, &device), 0);
    let images = pictures(0, LABELS.len(), SIZE, &device);
    let pass = Pass::Evaluate(Branch::Whole);
    let scores = classifier.scores(&network, images, pass, config, None);
    fixture().assert_close(&format!("{name}/scores"), &values(scores), SCORES);
    assert_step(name, classifier, config, &batch(SIZE, &LABELS));
}

#[test]
fn class_maps_pooled_by_mean_maximum_and_log_sum_exp_agree() {
    assert_classifier("cam-avg", &Cam::Average, &config());
    assert_classifier("cam-max", &Cam::Max, &config());
    assert_classifier("cam-lse", &Cam::LogSumExp, &config());
}

#[test]
fn wildcat_agrees() {
    let mut config = config();
    config.pool.maps_per_class = 4;
    config.pool.top = Cells::Fraction(0.1);
    config.pool.bottom = Cells::Fraction(0.1);
    config.pool.bottom_weight = 0.6;
    assert_classifier("wildcat", &Cam::Wildcat, &config);
}

#[test]
fn deep_mil_agrees_with_and_without_gate() {
    for (name, gated) in [("deep-mil", false), ("deep-mil-gated", true)] {
        let mut config = config();
        config.deep_mil.gated = gated;
        assert_classifier(name, &DeepMil, &config);
        let network = fill_in(AttentionNetwork::new(&config, 3, &device::cpu()), 0);
        let images = pictures(0, LABELS.len(), SIZE, &device::cpu());
        let seen = network.attend(images, Pass::Evaluate(Branch::Whole));
        fixture().assert_close(&format!("{name}/attention"), &values(seen.maps), 2e-5);
    }
}

#[test]
fn maps_from_gradients_agree_at_every_stage() {
    let mut config = config();
    let device = device::cpu();
    let network = fill_in(Classifier::network(&GradCam::Plain, &config, 3, &device), 0);
    let image = pictures(0, LABELS.len(), SIZE, &device).slice_dim(0, 0..1);
    let stages = [Stage::Layer1, Stage::Layer2, Stage::Layer3, Stage::Layer4];
    for (stage, number) in stages.into_iter().zip(1..) {
        config.grad_cam.stage = stage;
        for (name, rule) in
            [("plain", GradCam::Plain), ("++", GradCam::PlusPlus), ("layer", GradCam::Layer)]
        {
            for class in 0..3 {
                let (_, map) = rule.map(&network, image.clone(), Some(class), &config);
                let name = format!("grad-cam/{name}/layer{number}/{class}");
                let fixture = fixture();
                let largest = fixture.get(&name).iter().copied().fold(0.0, f32::max);
                fixture.assert_close(&name, &values(map), MAPS * largest);
            }
        }
    }
}

#[test]
fn masks_by_the_highest_class_map_agree() {
    let map = uniform("decision.maps");
    let maps: Tensor<4> = tensor([1, 3, 4, 5], &device::cpu(), |i| 4.0 * map(i) - 2.0);
    for class in 0..3 {
        let mask = decision::argmax(&maps, class, [13, 17], 8, &MaskConfig::default());
        fixture().assert_close(&format!("decision/argmax/{class}"), &values(mask), 2e-6);
    }
}

#[test]
fn full_supervision_agrees() {
    let [height, width] = UNET_SIZE;
    let (truth, scored) = (uniform("unet.truth"), uniform("unet.scored"));
    let flags = |flag: &dyn Fn(usize) -> bool| -> Vec<f32> {
        (0..2 * height * width).map(|pixel| f32::from(u8::from(flag(pixel)))).collect()
    };
    let batch = SupervisedBatch {
        images: batch(UNET_SIZE, &[0, 1]),
        foreground: flags(&|pixel| truth(pixel) < 0.4),
        scored: flags(&|pixel| scored(pixel) < 0.9),
    };
    assert_step("unet", &FullSupervision, &config(), &batch);

    let network = fill_in(FullSupervision.network(&config(), 3, &device::cpu()), 0);
    let images = pictures(0, 2, UNET_SIZE, &device::cpu());
    let scores = network.forward(images.clone(), Pass::Evaluate(Branch::Whole));
    fixture().assert_row("unet/evaluated", "scores", &values(scores), 5e-5);
    let found = FullSupervision.localize(&network, images.slice_dim(0, 0..1), None, &config());
    let sampled = (0..height).step_by(4).flat_map(|y| (0..width).step_by(4).map(move |x| (x, y)));
    let sampled: Vec<f32> = sampled.map(|(x, y)| found.scores[y * width + x]).collect();
    fixture().assert_close("unet/probability", &sampled, 5e-5);
}
