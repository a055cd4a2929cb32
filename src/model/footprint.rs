//! Estimates of the memory that training and prediction need.
//!
//! ```text
//! process + copies of the weights + copies of the activations + planes of the image's size
//! ```
//!
//! Activations and weights are counted; how many copies of each there are at peak was measured on
//! the processor, and `docs/reliability.md` has the figures.

use super::{
    resnet::{self, Activations},
    unet,
};
use crate::config::{Config, PreprocessConfig, Rule, Stage};

/// Bytes of a number.
const NUMBER: f64 = 4.0;

const MIB: f64 = 1024.0 * 1024.0;

/// Memory of the process without any work.
const PROCESS: f64 = 20.0 * MIB;

/// Copies of weights, activations and pixels at peak.
struct Copies {
    weights: f64,
    layers: f64,
    pixels: f64,
}

/// Of weights: themselves, the gradients of the step and of its latest pass, and the packed forms
/// that the kernels read, some larger than the weights. Of layers: all activations are kept for the
/// backward pass.
const OF_A_STEP: Copies = Copies { weights: 7.0, layers: 2.5, pixels: 12.0 };

/// Of layers, only the largest one: its input, its output and a shortcut.
const OF_A_PREDICTION: Copies = Copies { weights: 2.7, layers: 3.2, pixels: 8.0 };

/// Numbers per pixel of an image that waits for the network or is being scored: its input, or its
/// scores and ground truth, and the picture itself.
const OF_A_WAITING_PIXEL: f64 = 4.0;

/// Copies of the tensors that saving needs: as arrays.
const OF_SAVING: f64 = 1.0;

impl Copies {
    /// Bytes for so many weights, activations and pixels.
    fn bytes(&self, weights: f64, layers: f64, pixels: f64) -> f64 {
        let numbers = self.weights * weights + self.layers * layers + self.pixels * pixels;
        PROCESS + NUMBER * numbers
    }
}

/// Bytes that training needs: a step on a batch, or the pass of a probe, and saving.
pub fn of_training(config: &Config, classes: usize, images: usize) -> f64 {
    if config.method == "probe" {
        return of_probe(config, classes, images);
    }
    let saved = weights(config, classes) * (1.0 + optimizer_memory(config));
    of_step(config, classes, images) + OF_SAVING * NUMBER * saved
}

/// Bytes that a step of training needs, on a batch of at most `images`.
pub fn of_step(config: &Config, classes: usize, images: usize) -> f64 {
    let crop = f64::from(config.preprocess.crop);
    let batch = config.train.batch_size.min(images) as f64;
    let layers = batch * activations(config, crop * crop).all;
    let step = Copies { weights: OF_A_STEP.weights + optimizer_memory(config), ..OF_A_STEP };
    step.bytes(weights(config, classes), layers, batch * crop * crop)
}

/// Bytes that a prediction of an image of so many pixels needs.
pub fn of_prediction(config: &Config, classes: usize, pixels: f64) -> f64 {
    let layers = activations(config, pixels).most;
    OF_A_PREDICTION.bytes(weights(config, classes), layers, pixels)
}

/// Bytes for images that wait or are being scored, with so many pixels in total.
pub fn of_waiting(pixels: f64) -> f64 {
    NUMBER * OF_A_WAITING_PIXEL * pixels
}

/// Numbers of optimizer state per weight.
fn optimizer_memory(config: &Config) -> f64 {
    match config.optimizer.rule {
        Rule::Sgd => 1.0,
        Rule::Adam => 2.0,
    }
}

/// Most images that pass through the frozen backbone of a probe at a time.
const IMAGES_AT_A_TIME: usize = 4;
/// Most pixels that pass through it at a time, if they are of several images.
const PIXELS_AT_A_TIME: f64 = 4e6;

/// Images that pass through the frozen backbone of a probe at a time, on a share of the cores each;
/// one if they may be large.
pub fn images_at_a_time(config: &PreprocessConfig) -> usize {
    let most = match f64::from(config.shrink_short_side).powi(2) {
        0.0 => 1,
        pixels => (PIXELS_AT_A_TIME / pixels) as usize,
    };
    most.clamp(1, rayon::current_num_threads().min(IMAGES_AT_A_TIME))
}

/// Assumed side, in pixels, of the images of a probe, if settings do not bound it.
const TYPICAL_SIDE: u32 = 512;

/// Twice the number of cells that a projection is fitted to, as each is held twice meanwhile.
const FITTED: f64 = 2.0 * 24_000.0;

/// Bytes that training a probe needs: for some images at a time, and for what is kept of all images.
fn of_probe(config: &Config, classes: usize, images: usize) -> f64 {
    let (preprocess, probe) = (&config.preprocess, &config.probe);
    let side = match preprocess.shrink_short_side {
        0 => preprocess.upscale_short_side.max(TYPICAL_SIDE),
        side => side,
    };
    let pixels = f64::from(side) * f64::from(side);
    // A cell every 8 pixels each way, in half precision, raw and projected.
    let cells = images as f64 * (pixels / 64.0).min(probe.cells as f64);
    let (_, features) = resnet::weights(config.model.backbone);
    let of_stage = |stage: &Stage| features / f64::from(8 >> stage.index());
    let channels: f64 = probe.mask_stages.iter().map(of_stage).sum();
    let bound = probe.memory_mib as f64 * MIB / 3.0;
    let places = |stage: &Stage| pixels / f64::from(16 << (2 * stage.index()));
    let maps: f64 = probe.class_stages.iter().map(|stage| places(stage) * of_stage(stage)).sum();
    let kept = [cells * channels, cells * probe.dimensions as f64, images as f64 * maps];
    let kept = kept.map(|numbers| (2.0 * numbers).min(bound));
    let fitted = NUMBER * channels * FITTED.min(2.0 * cells);
    let saved = OF_SAVING * NUMBER * weights(config, classes);
    let at_a_time = images_at_a_time(preprocess) as f64 * pixels;
    of_prediction(config, classes, at_a_time) + saved + kept.iter().sum::<f64>() + fitted
}

fn activations(config: &Config, pixels: f64) -> Activations {
    match config.method.as_str() {
        "unet" => unet::activations(&config.unet, pixels),
        _ => resnet::activations(&config.model, pixels),
    }
}

/// Weights of the network.
fn weights(config: &Config, classes: usize) -> f64 {
    if config.method == "unet" {
        return unet::weights(&config.unet);
    }
    let (backbone, features) = resnet::weights(config.model.backbone);
    backbone + features * (classes * config.pool.maps_per_class) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        config::{Backbone, UnetConfig},
        device,
        model::{Model, params, unet::Unet},
    };

    fn config(backbone: Backbone, crop: u32, batch_size: usize) -> Config {
        let mut config = Config::default();
        config.model.backbone = backbone;
        config.preprocess.crop = crop;
        config.train.batch_size = batch_size;
        config
    }

    #[test]
    fn memory_grows_with_the_area_and_with_the_batch_but_not_beyond_the_images() {
        let of =
            |crop, batch, images| of_training(&config(Backbone::Resnet50, crop, batch), 2, images);
        let weights = of(32, 1, 0);
        let (one, four, large) = (of(64, 1, 9) - weights, of(64, 4, 9), of(128, 1, 9));
        assert!((four - weights - 4.0 * one).abs() < 1.0);
        assert!((large - weights - 4.0 * one).abs() < 1.0);
        assert_eq!(of(64, 1000, 9), of(64, 9, 9));
    }

    #[test]
    fn the_terms_of_a_step_are_added_up_by_hand() {
        // Tiny at 64×64: what layers give is counted below, 0.3 million weights and 128 features
        // for 2 classes of so many maps.
        let config = config(Backbone::Tiny, 64, 3);
        let weights = 0.3e6 + 128.0 * 2.0 * config.pool.maps_per_class as f64;
        let layers = 1024.0 * 64.0 + 2.0 * (4096.0 + 2048.0 + 1024.0 + 512.0);
        let step = 8.0 * weights + 3.0 * (2.5 * layers + 12.0 * 4096.0);
        let expected = 20.0 * MIB + 4.0 * step;
        assert!((of_step(&config, 2, 9) - expected).abs() < 1.0);
        // Weights and momentum, once each.
        let saving = of_training(&config, 2, 9) - of_step(&config, 2, 9);
        assert!((saving - 4.0 * 2.0 * weights).abs() < 1.0);
        let mut adam = config;
        adam.optimizer.rule = Rule::Adam;
        let more = of_training(&adam, 2, 9) - expected - saving;
        assert!((more - 4.0 * 2.0 * weights).abs() < 1.0, "held once, saved once");
    }

    #[test]
    fn the_activations_of_a_small_network_are_counted_by_hand() {
        // Tiny at 64×64, stride 32, deep stem: 32² · (16 + 16 + 32) of the stem, then two layers
        // each of 16²·16, 8²·32, 4²·64 and 2²·128.
        let found = resnet::activations(&config(Backbone::Tiny, 64, 1).model, 4096.0);
        let stages = 2.0 * (256.0 * 16.0 + 64.0 * 32.0 + 16.0 * 64.0 + 4.0 * 128.0);
        assert_eq!(found.all, 1024.0 * 64.0 + stages);
        assert_eq!(found.most, 1024.0 * 32.0);
    }

    #[test]
    fn the_weights_of_a_network_are_those_that_it_has() {
        for backbone in [Backbone::Tiny, Backbone::Resnet18] {
            let config = config(backbone, 64, 1);
            let model = Model::new(&config, 3, &device::cpu());
            let held = params::sizes(&model).values().sum::<usize>() as f64;
            let said = weights(&config, 3);
            assert!((0.9 * held..=held).contains(&said), "{said} of {held}");
        }
        for (width, depth) in [(4, 1), (6, 3)] {
            let mut config = Config { method: "unet".to_owned(), ..Config::default() };
            config.unet = UnetConfig { width, depth };
            let held: usize = params::sizes(&Unet::new(&config, &device::cpu())).values().sum();
            assert_eq!(weights(&config, 3), held as f64, "width {width}, depth {depth}");
        }
    }

    #[test]
    fn large_images_pass_the_backbone_of_a_probe_one_at_a_time() {
        let at_a_time = |shrink_short_side, threads| {
            let config = PreprocessConfig { shrink_short_side, ..PreprocessConfig::default() };
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| images_at_a_time(&config))
        };
        assert_eq!([1, 2, 9].map(|threads| at_a_time(512, threads)), [1, 2, 4]);
        assert_eq!([1000, 1400, 2100, 0].map(|side| at_a_time(side, 9)), [4, 2, 1, 1]);
    }

    #[test]
    fn a_probe_keeps_vectors_up_to_its_bound() {
        let mut config = Config { method: "probe".to_owned(), ..Config::default() };
        config.model.backbone = Backbone::Resnet18;
        config.preprocess.shrink_short_side = 64;
        config.probe.memory_mib = 64;
        let of = |images| of_training(&config, 2, images);
        // 64 cells of 128 + 256 channels, raw and in 64 dimensions, in half precision; and while
        // the projection is fitted, all of them twice as they are.
        let vectors = 64.0 * (2.0 * (384.0 + 64.0) + 2.0 * 4.0 * 384.0);
        // Maps of 16 cells of 256 channels and of 4 cells of 512.
        let more = vectors + 2.0 * (16.0 * 256.0 + 4.0 * 512.0);
        assert!((of(2) - of(1) - more).abs() < 1.0);
        assert!((of(1_000_000) - of(0) - (64.0 * MIB + FITTED * 4.0 * 384.0)).abs() < 1.0);
    }
}
