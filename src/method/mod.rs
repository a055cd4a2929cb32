//! What a step of training does: our method and its baselines.
//!
//! A method is a [`Learner`](crate::method::Learner): the network it trains, what a
//! step does, and what the trained network says about an image. Most baselines only read
//! their mask from a [`Classifier`](crate::method::Classifier). Adding one is a file
//! here and a line in the registry.

/// Min-max entropy with recursive erasing.
pub mod minmax;

/// Classifiers whose class maps are the mask: CAM-Avg, CAM-Max, CAM-LSE, Wildcat.
pub mod cam;

/// Attention per class as the mask.
pub mod deep_mil;

/// Masks from gradients: Grad-CAM, Grad-CAM++, LayerCAM.
pub mod grad_cam;

/// Heads on frozen features, trained by labels alone in a minute.
pub mod probe;

/// Full supervision, the upper bound.
pub mod unet;

/// What training by labels alone shares.
pub mod classifier;

/// Losses of scores.
pub mod losses;

/// Gradients added up over several backward passes.
pub mod gradient;

/// Dropout masks of one step.
pub mod dropout;

/// From maps to a mask.
pub mod decision;

/// What a method must be able to do.
pub mod learner;

/// Images of any size, seen through overlapping windows.
pub mod tiles;

pub use self::{
    classifier::Classifier,
    gradient::GradientSum,
    learner::{Finding, Judgement, Learned, Learner, StepContext, Terms},
};
use crate::{
    config::{Config, Experiment, GradCamConfig, MaskConfig},
    error::{Error, Result},
    model::known::KnownFile,
};

/// Something to do with whichever method a name stands for.
pub trait Visitor {
    /// What comes of it.
    type Output;

    /// Does it with a method that learns batch by batch.
    fn visit<L: Learner + 'static>(self, learner: L) -> Self::Output;

    /// Does it with the probe, which learns from all images at once.
    fn visit_probe(self) -> Self::Output;
}

macro_rules! registry {
    ($($name:literal => $learner:expr, $about:literal;)*) => {
        /// The methods that can be trained, as `--method` and `method = "…"` name them.
        pub const NAMES: &[&str] = &["probe", $($name),*];

        /// What each of [`NAMES`] is, in a line.
        pub const ABOUT: &[&str] =
            &["min-max entropy on frozen features: masks in a minute, by labels alone", $($about),*];

        fn dispatch<V: Visitor>(name: &str, visitor: V) -> Option<V::Output> {
            match name {
                "probe" => Some(visitor.visit_probe()),
                $($name => Some(visitor.visit($learner)),)*
                _ => None,
            }
        }
    };
}

registry! {
    "minmax" => minmax::Minmax, "min-max entropy with recursive erasing: ours";
    "cam-avg" => cam::Cam::Average, "class maps, pooled by their mean";
    "cam-max" => cam::Cam::Max, "class maps, pooled by their maximum";
    "cam-lse" => cam::Cam::LogSumExp, "class maps, pooled by log-sum-exp";
    "wildcat" => cam::Cam::Wildcat, "several maps per class, pooled by their highest and lowest cells";
    "deep-mil" => deep_mil::DeepMil, "attention per class";
    "grad-cam" => grad_cam::GradCam::Plain, "features weighed by the gradient of a class's score";
    "grad-cam++" => grad_cam::GradCam::PlusPlus, "the same, positive gradients of decisive cells";
    "layer-cam" => grad_cam::GradCam::Layer, "the same, positive gradients cell by cell";
    "unet" => unet::FullSupervision, "full supervision by masks: the upper bound";
}

/// Does something with the method of that name.
pub fn with<V: Visitor>(name: &str, visitor: V) -> Result<V::Output> {
    dispatch(name, visitor).ok_or_else(|| {
        let known: Vec<String> = NAMES.iter().map(|name| format!("`{name}`")).collect();
        Error::Setting(vec![format!(
            "`method` is `{name}`, which cannot be trained; there are {}",
            known.join(", ")
        )])
    })
}

/// The settings a method was published with, as far as they do not depend on the dataset.
pub fn published(name: &str) -> Result<Config> {
    struct Published(String);
    impl Visitor for Published {
        type Output = Config;
        fn visit<L: Learner + 'static>(self, learner: L) -> Config {
            let mut config = Config { method: self.0, ..Config::default() };
            learner.published(&mut config);
            config
        }
        fn visit_probe(self) -> Config {
            let mut config = Config { method: self.0, ..Config::default() };
            probe::recommended(&mut config);
            config
        }
    }
    with(name, Published(name.to_owned()))
}

/// The settings of one row of an experiment, over what its method was published with.
///
/// Backbone, stem and normalization follow the weights that training starts from, where those
/// are known and the experiment does not say otherwise.
pub fn settings(experiment: &Experiment, row: &str, weights: Option<&KnownFile>) -> Result<Config> {
    let mut below = published(experiment.method(row))?;
    if let Some(weights) = weights {
        weights.lay_over(&mut below);
    }
    experiment.settings(row, &below)
}

/// What of the settings decides the training: runs that agree in it learn the same weights.
pub fn training_settings(config: &Config) -> Result<Config> {
    struct TrainedAs;
    impl Visitor for TrainedAs {
        type Output = (Option<&'static str>, bool);
        fn visit<L: Learner + 'static>(self, learner: L) -> Self::Output {
            (learner.trained_as(), L::LEARNS_BY_MASK)
        }
        fn visit_probe(self) -> Self::Output {
            (None, false)
        }
    }
    let (trained_as, learns_by_mask) = with(&config.method, TrainedAs)?;
    let method = trained_as.unwrap_or(&config.method).to_owned();
    let mask = if learns_by_mask { config.mask.clone() } else { MaskConfig::default() };
    // Gradients are asked for only once the network is trained.
    Ok(Config { method, mask, grad_cam: GradCamConfig::default(), ..config.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_method_s_published_settings_are_valid_and_name_it() {
        for name in NAMES {
            let config = published(name).unwrap();
            config.check().unwrap();
            assert_eq!(config.method, *name);
        }
        assert_eq!(published("minmax").unwrap(), Config::default());
    }

    #[test]
    fn methods_that_only_read_their_mask_otherwise_share_a_training() {
        let of = |name: &str| training_settings(&published(name).unwrap()).unwrap();
        let mut deeper = published("layer-cam").unwrap();
        deeper.grad_cam.stage = crate::config::Stage::Layer2;
        let otherwise = |name: &str| {
            let mut config = published(name).unwrap();
            config.mask.rule = crate::config::Decision::MinMax;
            config.mask.evidence = crate::config::Evidence::Spread;
            training_settings(&config).unwrap()
        };
        let deeper = training_settings(&deeper).unwrap();
        for shared in [of("grad-cam"), of("grad-cam++"), deeper, otherwise("cam-avg")] {
            assert_eq!(shared, of("cam-avg"));
        }
        assert_ne!(of("cam-max"), of("cam-avg"));
        assert_ne!(otherwise("minmax"), of("minmax"), "our classifier learns on masked images");
    }

    #[test]
    fn an_unknown_method_is_refused_with_those_there_are() {
        let message = published("cam-median").unwrap_err().to_string();
        assert!(message.contains("`cam-median`") && message.contains("`cam-avg`"), "{message}");
    }
}
