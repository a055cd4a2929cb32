//! How much memory a network will need, told before it is built.
//!
//! These are lower bounds: what is refused by them could not have worked, and what
//! passes may still need somewhat more.

use super::resnet::{activations, weights};
use crate::config::Config;

/// Bytes of a number.
const NUMBER: f64 = 4.0;

/// Bytes that a step of training needs at the least, on a batch of at most `images`.
pub fn of_training(config: &Config, classes: usize, images: usize) -> f64 {
    let crop = f64::from(config.preprocess.crop);
    let batch = config.train.batch_size.min(images) as f64;
    // Each layer's answer is kept until its gradient is known.
    let kept = activations(&config.model, crop * crop).all;
    // Weights, their gradients and their momentum.
    NUMBER * (batch * (kept + 3.0 * crop * crop) + 3.0 * numbers(config, classes))
}

/// Bytes that a look at an image of so many pixels needs at the least.
pub fn of_prediction(config: &Config, classes: usize, pixels: f64) -> f64 {
    // A layer's input and its answer are there at the same time.
    let layers = 2.0 * activations(&config.model, pixels).most;
    NUMBER * (layers + 3.0 * pixels + numbers(config, classes))
}

/// Weights of backbone and localizer.
fn numbers(config: &Config, classes: usize) -> f64 {
    let (backbone, features) = weights(config.model.backbone);
    backbone + features * (classes * config.pool.maps_per_class) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{config::Backbone, device, model::Model};

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
    fn the_activations_of_a_small_network_are_counted_by_hand() {
        // Tiny at 64×64, stride 32, deep stem: 32² · (16 + 16 + 32) of the stem, then two layers
        // each of 16²·16, 8²·32, 4²·64 and 2²·128.
        let found = activations(&config(Backbone::Tiny, 64, 1).model, 4096.0);
        let stages = 2.0 * (256.0 * 16.0 + 64.0 * 32.0 + 16.0 * 64.0 + 4.0 * 128.0);
        assert_eq!(found.all, 1024.0 * 64.0 + stages);
        assert_eq!(found.most, 1024.0 * 32.0);
    }

    #[test]
    fn the_weights_of_a_network_are_no_fewer_than_said() {
        let config = config(Backbone::Tiny, 64, 1);
        let model = Model::new(&config, 3, &device::cpu());
        let arrays = crate::model::params::collect(&model);
        let held: usize = arrays.values().map(|array| array.values.len()).sum();
        assert!(numbers(&config, 3) <= held as f64, "{held}");
    }
}
