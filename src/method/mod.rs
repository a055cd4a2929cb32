//! How each method learns from a batch, and how it predicts class and mask of an image.
//!
//! A method is a [`Learner`](crate::method::Learner). Most baselines are a
//! [`Classifier`](crate::method::Classifier) whose maps or gradients give the mask. To add one,
//! write a file here and a line in the registry. The probe is no learner of batches: it has its own
//! training, in `train`.

pub mod cam;
pub mod classifier;
pub mod decision;
pub mod deep_mil;
pub mod dropout;
pub mod grad_cam;
pub mod gradient;
pub mod learner;
pub mod losses;
pub mod minmax;
pub(crate) mod probe;
pub mod tiles;
pub mod unet;

pub use self::{
    classifier::Classifier,
    gradient::GradientSum,
    learner::{ImageValidation, Learned, Learner, ModelOutput, StepContext, Terms, most_probable},
};
use crate::{
    config::{Config, Experiment, GradCamConfig, MaskConfig},
    error::{Error, Result},
    model::known::KnownFile,
};

macro_rules! registry {
    ($dollar:tt $($name:literal => $learner:expr, $about:literal;)*) => {
        /// The methods that can be trained, as `--method` and `method = "…"` name them.
        pub const NAMES: &[&str] = &["probe", $($name),*];

        /// What each of [`NAMES`] is, in a line.
        pub const ABOUT: &[&str] =
            &["min-max entropy on frozen features: masks in a minute, by labels alone", $($about),*];

        /// Computes the first expression with the [`Learner`] that a name stands for, or the
        /// second one for the probe, which learns from all images at once and not by batches.
        macro_rules! with_method {
            ($dollar method:expr, $dollar learner:ident => $dollar body:expr, probe => $dollar probe:expr) => {
                match $dollar method {
                    "probe" => Ok($dollar probe),
                    $($name => {
                        let $dollar learner = $learner;
                        Ok($dollar body)
                    })*
                    unknown => Err($crate::method::unknown(unknown)),
                }
            };
        }
        pub(crate) use with_method;
    };
}

registry! { $
    "minmax" => crate::method::minmax::Minmax, "min-max entropy with recursive erasing: ours";
    "cam-avg" => crate::method::cam::Cam::Average, "class maps, pooled by their mean";
    "cam-max" => crate::method::cam::Cam::Max, "class maps, pooled by their maximum";
    "cam-lse" => crate::method::cam::Cam::LogSumExp, "class maps, pooled by log-sum-exp";
    "wildcat" => crate::method::cam::Cam::Wildcat,
        "several maps per class, pooled by their highest and lowest cells";
    "deep-mil" => crate::method::deep_mil::DeepMil, "attention per class";
    "grad-cam" => crate::method::grad_cam::GradCam::Plain,
        "features weighed by the gradient of a class's score";
    "grad-cam++" => crate::method::grad_cam::GradCam::PlusPlus,
        "the same, positive gradients of decisive cells";
    "layer-cam" => crate::method::grad_cam::GradCam::Layer,
        "the same, positive gradients cell by cell";
    "unet" => crate::method::unet::FullSupervision, "full supervision by masks: the upper bound";
}

/// The error for a name that is not one of a method.
pub(crate) fn unknown(name: &str) -> Error {
    let known: Vec<String> = NAMES.iter().map(|name| format!("`{name}`")).collect();
    let letters = |name: &str| name.replace(['-', '_', ' '], "").to_lowercase();
    let meant = NAMES.iter().find(|known| letters(known) == letters(name));
    let meant = meant.map(|known| format!("; did you mean `{known}`?"));
    Error::Setting(vec![format!(
        "`method` is `{name}`, which cannot be trained; there are {}{}",
        known.join(", "),
        meant.unwrap_or_default()
    )])
}

/// The settings a method was published with, as far as they do not depend on the dataset.
pub fn published(name: &str) -> Result<Config> {
    let mut config = Config { method: name.to_owned(), ..Config::default() };
    with_method!(
        name,
        learner => Learner::published(&learner, &mut config),
        probe => probe::recommended(&mut config)
    )?;
    Ok(config)
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

/// The settings that training depends on: runs that agree in them learn the same weights.
pub fn training_settings(config: &Config) -> Result<Config> {
    fn facts<L: Learner>(_: &L) -> (Option<&'static str>, bool) {
        (L::TRAINED_AS, L::LEARNS_BY_MASK)
    }
    let (trained_as, learns_by_mask) = with_method!(
        config.method.as_str(),
        learner => facts(&learner),
        probe => (None, false)
    )?;
    let method = trained_as.unwrap_or(&config.method).to_owned();
    let mask = if learns_by_mask { config.mask.clone() } else { MaskConfig::default() };
    // The gradients of Grad-CAM are computed from the trained network only.
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
