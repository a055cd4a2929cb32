//! Settings of the probe.

use serde::{Deserialize, Serialize};

use super::{Problems, Stage};

settings! {
    ["probe."]
    /// Heads on frozen features, see `docs/method.md` §8.
    pub struct ProbeConfig {
        /// Stages of the backbone that masks are learned from.
        pub mask_stages: Vec<Stage> = vec![Stage::Layer2, Stage::Layer3] => not_empty(),
        /// Stages of the backbone that classes are learned from.
        pub class_stages: Vec<Stage> = vec![Stage::Layer3, Stage::Layer4] => not_empty(),
        /// Length of a feature vector once projected.
        pub dimensions: usize = 64 => within(1..=2048),
        /// Most cells of a training image that are kept.
        pub cells: usize = 2000 => within(1..=1 << 20),
        /// Memory for features of training images, in MiB: a third each for vectors before and
        /// after projection and for maps of the class head; fewer cells are kept where it is short.
        pub memory_mib: usize = 1024 => within(16..=1 << 20),
        /// Which linear heads teach where the object is.
        pub teachers: Teachers = Teachers::Both,
        /// Teachers of each kind, from different random starts.
        pub heads: usize = 3 => within(1..=100),
        /// Rounds in which a teacher's map is sharpened by its own image.
        pub sharpening: usize = 2 => at_most(100),
        /// Students, from different random starts.
        pub students: usize = 2 => within(1..=100),
        /// How often students are trained, each time on the masks of those before.
        pub generations: usize = 2 => within(1..=100),
        /// Share of the image's own discriminant in the final map; the rest is the students'.
        pub own_image: f64 = 0.7 => within(0.0..=1.0),
        /// Views of each image whose features are averaged, in training and in prediction.
        pub views: Views = Views::One,
        /// Sizes of each image whose features are averaged likewise, as multiples of its own.
        pub scales: Vec<f64> = vec![1.0],
        /// Spread of the Gaussian that smooths maps, in cells.
        pub smoothing: f64 = 1.5 => within(0.0..=100.0),
        /// What is done to the mask of an image at last.
        pub refine: Refinement = Refinement::Edges,
        /// What of an image the class is told from.
        pub class_view: ClassView = ClassView::Best,
    }
}

/// What of an image the class is told from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ClassView {
    /// What is best on training images that the class head was not fitted to.
    Best,
    /// The whole image.
    Image,
    /// The image through its mask.
    Foreground,
}

/// What is done to the mask of an image at last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Refinement {
    /// It is interpolated between cells.
    None,
    /// It is snapped to edges of the image's colours nearby.
    Edges,
}

/// Which linear heads teach where the object is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Teachers {
    /// Both kinds, with the same weight.
    Both,
    /// Masks through which a trained classifier tells the class.
    MaskHeads,
    /// Masks through which held-out images are told, and beside which they are not.
    HeldOut,
}

/// Views of each image whose features are averaged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Views {
    /// The image as it is.
    One,
    /// Its mirror image too, at twice the time.
    Mirrored,
    /// Both in each of four quarter turns, at eight times the time: for images without an
    /// upright side, such as microscopy.
    Turned,
}

impl ProbeConfig {
    /// The stages whose maps the class head may see through masks.
    pub(crate) fn stages_through_masks(&self) -> Vec<Stage> {
        match self.class_view {
            ClassView::Image => Vec::new(),
            // In the order of the network, as maps are given.
            ClassView::Best | ClassView::Foreground => {
                Stage::ALL.into_iter().filter(|stage| self.class_stages.contains(stage)).collect()
            }
        }
    }

    pub(super) fn check(&self, problems: &mut Problems) {
        let possible = |scale: &f64| (0.1..=10.0).contains(scale);
        problems.require(
            (1..=10).contains(&self.scales.len()) && self.scales.iter().all(possible),
            "probe.scales",
            "must be one to ten numbers in [0.1, 10]",
        );
    }
}
