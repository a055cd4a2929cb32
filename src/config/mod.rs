//! The settings of one experiment: a tree of plain structs, one per stage.
//!
//! Values come from layers, later ones winning: [`Default`] and what the
//! [method](crate::method) changes of it (the published setup), a TOML file from
//! `configs/` with its section for the method
//! ([`Experiment`](crate::config::Experiment)), and command-line
//! flags (laid over by the binary). The merged tree is written into the run
//! directory, so `config.toml` beside the weights always says what really ran.

/// Declares a section of settings: each beside its default and what it may be, which is one of the
/// checks of [`Problems`]. What has no default is a section itself.
macro_rules! settings {
    ([$section:literal] $(#[$about:meta])* pub struct $group:ident {
        $($(#[$meaning:meta])* pub $key:ident: $kind:ty
            $(= $default:expr $(=> $check:ident($($limit:expr)?))?)?,)*
    }) => {
        $(#[$about])*
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        #[serde(default, deny_unknown_fields)]
        pub struct $group {
            $($(#[$meaning])* pub $key: $kind,)*
        }

        impl Default for $group {
            fn default() -> Self {
                Self { $($key: settings!(@default $($default)?),)* }
            }
        }

        impl $group {
            /// Checks each setting by itself.
            #[allow(unused_variables, reason = "some sections allow anything")]
            pub(in crate::config) fn check_each(&self, problems: &mut Problems) {
                $(settings!(@check (problems, &self.$key, concat!($section, stringify!($key)))
                    $($default $(=> $check($($limit)?))?)?);)*
            }
        }
    };
    (@default $default:expr) => { $default };
    (@default) => { Default::default() };
    (@check ($problems:expr, $value:expr, $key:expr)) => { $value.check_each($problems) };
    (@check $setting:tt $default:expr) => {};
    (@check ($problems:expr, $value:expr, $key:expr) $default:expr => $check:ident($($limit:expr)?)) => {
        $problems.$check($($limit,)? $value, $key)
    };
}

mod baseline;
mod experiment;
mod method;
mod model;
mod probe;
mod train;

use std::{
    fmt::Display,
    ops::{Bound, RangeBounds},
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use crate::{
    data::{Layout, MaskRule, OpenOptions},
    error::{Error, Result},
    regular,
};

pub use self::{
    baseline::{AttentionCut, DeepMilConfig, GradCamConfig, Stage, UnetConfig},
    experiment::{Experiment, Sweep},
    method::{EraseConfig, Fill, LossConfig, Semantics, SizeConfig},
    model::{
        Alignment, Backbone, Cells, Decision, Evidence, Kernels, MaskConfig, MaskGradient,
        ModelConfig, PoolConfig, Statistics, Stem,
    },
    probe::{ClassView, ProbeConfig, Refinement, Teachers, Views},
    train::{Keep, OptimizerConfig, Rule, Tie, TrainConfig},
};

/// The rules that settings violate.
#[derive(Default)]
struct Problems(Vec<String>);

impl Problems {
    /// Notes what is wrong with a setting, unless a rule holds.
    fn require(&mut self, holds: bool, key: &str, reason: &str) {
        if !holds {
            self.0.push(format!("`{key}` {reason}"));
        }
    }

    fn within<T: PartialOrd + Display>(
        &mut self,
        range: impl RangeBounds<T>,
        value: &T,
        key: &str,
    ) {
        let (Bound::Included(low), Bound::Included(high) | Bound::Excluded(high)) =
            (range.start_bound(), range.end_bound())
        else {
            unreachable!("settings are bounded from below and above");
        };
        let end = if matches!(range.end_bound(), Bound::Included(_)) { "]" } else { ")" };
        self.require(range.contains(value), key, &format!("must be in [{low}, {high}{end}"));
    }

    fn positive(&mut self, value: &f64, key: &str) {
        self.require(*value > 0.0 && value.is_finite(), key, "must be positive");
    }

    fn positive_share(&mut self, value: &f64, key: &str) {
        self.require(*value > 0.0 && *value <= 1.0, key, "must be in (0, 1]");
    }

    fn at_least(&mut self, least: f64, value: &f64, key: &str) {
        let holds = *value >= least && value.is_finite();
        self.require(holds, key, &format!("must be at least {least}"));
    }

    fn at_least_one<T: PartialOrd + From<u8>>(&mut self, value: &T, key: &str) {
        self.require(*value >= T::from(1), key, "must be at least 1");
    }

    fn at_most(&mut self, most: usize, value: &usize, key: &str) {
        self.require(*value <= most, key, &format!("must be at most {most}"));
    }

    fn not_empty<T>(&mut self, values: &[T], key: &str) {
        self.require(!values.is_empty(), key, "must not be empty");
    }
}

settings! {
    [""]
    /// Everything that decides the outcome of a run.
    pub struct Config {
        /// What is trained.
        pub method: String = "minmax".to_owned(),
        /// Root of every random stream; equal seeds give equal runs.
        pub seed: u64 = 0,
        /// Whose reading of the method runs.
        pub semantics: Semantics = Semantics::Pinpoint,
        /// What is read from the dataset.
        pub data: DataConfig,
        /// How an image becomes the network's input.
        pub preprocess: PreprocessConfig,
        /// How training images are varied.
        pub augment: AugmentConfig,
        /// The network.
        pub model: ModelConfig,
        /// How class maps become scores.
        pub pool: PoolConfig,
        /// How class maps become a mask.
        pub mask: MaskConfig,
        /// How foreground that was found is erased, so that the localizer finds more.
        pub erase: EraseConfig,
        /// What is minimized.
        pub loss: LossConfig,
        /// Attention of Deep MIL.
        pub deep_mil: DeepMilConfig,
        /// Which layer Grad-CAM and its kin read.
        pub grad_cam: GradCamConfig,
        /// Heads on frozen features.
        pub probe: ProbeConfig,
        /// The network of full supervision.
        pub unet: UnetConfig,
        /// How long to learn and which epoch to keep.
        pub train: TrainConfig,
        /// How weights are updated.
        pub optimizer: OptimizerConfig,
    }
}

settings! {
    ["data."]
    /// What is read from the dataset, see `docs/data.md`.
    pub struct DataConfig {
        /// What counts as foreground in a mask file; by default each layout's own rule.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub mask_rule: Option<MaskRule> = None,
        /// Whether pictures in class folders that are named like masks (`x_mask.png`) are masks.
        pub mask_names: bool = true,
        /// Share of each class that becomes the validation split when the dataset has none; 0
        /// leaves all images to training.
        pub valid_fraction: f64 = 0.2 => within(0.0..1.0),
        /// Images above this many megapixels are refused before they are decoded.
        pub max_megapixels: u32 = 200 => at_least_one(),
        /// Memory for decoded images kept from one epoch to the next, in MiB; 0 keeps none.
        pub cache_mib: usize = 1024,
    }
}

settings! {
    ["preprocess."]
    /// How an image becomes the network's input, see `docs/data.md`.
    pub struct PreprocessConfig {
        /// Mean and spread that pixel values are brought to.
        pub normalization: Normalization = Normalization::Half,
        /// Images whose short side is below this are enlarged to it; 0 leaves them alone.
        pub upscale_short_side: u32 = 500,
        /// Images whose short side is above this are shrunk to it; 0 leaves them alone.
        pub shrink_short_side: u32 = 0,
        // Reflection does not repeat the edge: at most one pixel less than the image fits.
        /// Reflected border added on each side for training, as a fraction of height and width.
        pub train_padding: f64 = 0.0 => within(0.0..=0.9),
        /// Side of the square training crop, in pixels.
        pub crop: u32 = 480,
        /// Images are padded to a multiple of this for evaluation, by reflection.
        pub eval_multiple: u32 = 32 => within(1..=4096),
    }
}

/// Mean and spread that pixel values in `[0, 1]` are brought to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Normalization {
    /// `(x − 0.5) / 0.5`: the published choice, in which 0 is mid-grey.
    Half,
    /// Per-channel statistics of ImageNet, for weights trained there.
    Imagenet,
}

settings! {
    ["augment."]
    /// How training images are varied; 0 and absent switch a variation off.
    pub struct AugmentConfig {
        /// Probability of mirroring left and right.
        pub horizontal_flip: f64 = 0.5 => within(0.0..=1.0),
        /// Probability of mirroring top and bottom.
        pub vertical_flip: f64 = 0.0 => within(0.0..=1.0),
        /// Whether to turn by a random multiple of 90°.
        pub quarter_turns: bool = false,
        /// Brightness factor is drawn from `1 ± brightness`.
        pub brightness: f64 = 0.0 => within(0.0..=1.0),
        /// Contrast factor is drawn from `1 ± contrast`.
        pub contrast: f64 = 0.0 => within(0.0..=1.0),
        /// Saturation factor is drawn from `1 ± saturation`.
        pub saturation: f64 = 0.0 => within(0.0..=1.0),
        /// Hue shift is drawn from `± hue`, in turns of the colour circle.
        pub hue: f64 = 0.0 => within(0.0..=0.5),
        /// Random rotation, shear and scaling about the centre.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub affine: Option<AffineConfig> = None,
    }
}

/// Random rotation, shear and scaling about the centre.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AffineConfig {
    /// Rotation is drawn from `± degrees`.
    pub degrees: f64,
    /// Horizontal shear angle is drawn from `± shear` degrees.
    pub shear: f64,
    /// Scale factor is drawn from this range.
    pub scale: [f64; 2],
}

impl Config {
    /// Reads the settings that a run has saved, all of them.
    ///
    /// A setting that the version which saved them did not have yet is what that version did.
    pub fn load(path: &Path) -> Result<Self> {
        let text = regular::read_text(path).map_err(Error::file("read", path))?;
        let parse = || {
            let mut table: toml::Table = text.parse()?;
            if let Some(toml::Value::Table(mask)) = table.get_mut("mask") {
                mask.entry("evidence").or_insert_with(|| "weighted".into());
            }
            Self::from_table(table)
        };
        parse()
            .map_err(|source| Error::Settings { path: path.to_owned(), source: Box::new(source) })
    }

    /// Reads settings from a parsed table; unknown keys are refused.
    pub fn from_table(table: toml::Table) -> Result<Self, toml::de::Error> {
        table.try_into()
    }

    /// What the maps of all classes together say of a place: as published, if that is asked for.
    pub fn evidence(&self) -> Evidence {
        match self.semantics {
            Semantics::Pinpoint => self.mask.evidence,
            Semantics::Reference => Evidence::Weighted,
        }
    }

    /// Rejects settings that could only fail later, and less clearly; lists all of them.
    ///
    /// Call it on the merged tree: a flag can break what the file got right.
    pub fn check(&self) -> Result<()> {
        let mut problems = Problems::default();
        self.check_each(&mut problems);
        let Self { preprocess, augment, model, pool, mask, loss, probe, optimizer, .. } = self;
        preprocess.check(&mut problems);
        augment.check(&mut problems);
        model.check(&mut problems);
        pool.check(&mut problems);
        mask.check(&mut problems);
        loss.check(mask, &mut problems);
        probe.check(&mut problems);
        optimizer.check(&mut problems);
        let cells = (f64::from(preprocess.crop) * model.classifier_scale) as usize;
        problems.require(
            cells > model.output_stride,
            "preprocess.crop",
            "is too small: the classifier's last map would be a single cell, too few for batch \
             norm; enlarge it, or lower `model.output_stride` or raise `model.classifier_scale`",
        );
        if problems.0.is_empty() { Ok(()) } else { Err(Error::Setting(problems.0)) }
    }
}

impl DataConfig {
    /// How a dataset is to be opened, by these settings and what is said about its files.
    pub fn open_options(&self, layout: Option<Layout>, images: Option<PathBuf>) -> OpenOptions {
        let Self { mask_rule, mask_names, .. } = *self;
        OpenOptions { layout, images, mask_rule, no_mask_names: !mask_names }
    }
}

impl PreprocessConfig {
    /// Images as they are, for what needs no network.
    pub(crate) fn unchanged() -> Self {
        Self { upscale_short_side: 0, shrink_short_side: 0, eval_multiple: 1, ..Self::default() }
    }

    fn check(&self, problems: &mut Problems) {
        let Self { upscale_short_side: upscale, shrink_short_side: shrink, .. } = *self;
        problems.require(self.crop >= 32, "preprocess.crop", "must be at least 32 pixels");
        for (side, key) in
            [(self.crop, "preprocess.crop"), (upscale, "preprocess.upscale_short_side")]
        {
            problems.require(side <= 16_384, key, "must be at most 16384 pixels");
        }
        problems.require(
            shrink == 0 || shrink >= upscale.max(1),
            "preprocess.shrink_short_side",
            "must not be below `preprocess.upscale_short_side`",
        );
    }
}

impl AugmentConfig {
    fn check(&self, problems: &mut Problems) {
        if let Some(AffineConfig { degrees, shear, scale: [low, high] }) = self.affine {
            problems.within(0.0..=180.0, &degrees, "augment.affine.degrees");
            problems.within(0.0..=60.0, &shear, "augment.affine.shear");
            problems.require(
                0.0 < low && low <= high && high.is_finite(),
                "augment.affine.scale",
                "must be two positive numbers, the smaller first",
            );
        }
    }
}

impl Normalization {
    /// Per-channel mean and standard deviation, for values in `[0, 1]`.
    pub fn mean_std(self) -> ([f32; 3], [f32; 3]) {
        match self {
            Self::Half => ([0.5; 3], [0.5; 3]),
            Self::Imagenet => ([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_published_setup_is_valid() {
        Config::default().check().unwrap();
    }

    #[test]
    fn all_violations_are_reported_at_once_under_their_own_keys() {
        let mut config = Config::default();
        config.preprocess.crop = 0;
        config.augment.hue = 2.0;
        let message = config.check().unwrap_err().to_string();
        assert!(
            message.contains("`preprocess.crop`") && message.contains("`augment.hue`"),
            "{message}"
        );
    }

    #[test]
    fn an_unknown_key_is_refused() {
        assert!(toml::from_str::<Config>("[preprocess]\ncropp = 3").is_err());
    }

    #[test]
    fn a_run_of_an_earlier_version_keeps_the_masks_it_had() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.toml");
        let saved = toml::to_string(&Config::default()).unwrap();
        fs::write(&path, &saved).unwrap();
        assert_eq!(Config::load(&path).unwrap(), Config::default());
        let earlier: Vec<&str> = saved.lines().filter(|l| !l.starts_with("evidence")).collect();
        fs::write(&path, earlier.join("\n")).unwrap();
        assert_eq!(Config::load(&path).unwrap().mask.evidence, Evidence::Weighted);
    }

    #[test]
    fn settings_survive_being_saved() {
        let mut config = Config::default();
        config.augment.affine =
            Some(AffineConfig { degrees: 10.0, shear: 10.0, scale: [0.3, 1.5] });
        config.data.mask_rule = Some(MaskRule::Votes);
        let text = toml::to_string(&config).unwrap();
        assert_eq!(toml::from_str::<Config>(&text).unwrap(), config);
    }
}
