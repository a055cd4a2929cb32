//! Settings of the probe.

use serde::{Deserialize, Serialize};

use super::{Require, Stage};

/// Heads on frozen features, see `docs/method.md` §8.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ProbeConfig {
    /// Stages of the backbone that masks are learned from.
    pub mask_stages: Vec<Stage>,
    /// Stages of the backbone that classes are learned from.
    pub class_stages: Vec<Stage>,
    /// Length of a feature vector once projected.
    pub dimensions: usize,
    /// Most cells of a training image that are kept.
    pub cells: usize,
    /// Memory for the cells of all training images, in MiB; fewer are kept where it is short.
    pub memory_mib: usize,
    /// Which linear heads teach where the object is.
    pub teachers: Teachers,
    /// Teachers of each kind, from different random starts.
    pub heads: usize,
    /// Rounds in which a teacher's map is sharpened by its own image.
    pub sharpening: usize,
    /// Students, from different random starts.
    pub students: usize,
    /// How often students are trained, each time on the masks of those before.
    pub generations: usize,
    /// Share of the image's own discriminant in the final map; the rest is the students'.
    pub own_image: f64,
    /// Views of each image whose features are averaged, in training and in prediction.
    pub views: Views,
    /// Sizes of each image, beside its own, whose features are averaged likewise.
    pub scales: Vec<f64>,
    /// Spread of the Gaussian that smooths maps, in cells.
    pub smoothing: f64,
    /// What is done to the mask of an image at last.
    pub refine: Refinement,
    /// What of an image the class is told from.
    pub class_view: ClassView,
}

/// What of an image the class is told from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ClassView {
    /// What is best on training images that the class head was not fitted to.
    #[default]
    Best,
    /// The whole image.
    Image,
    /// The image through its mask.
    Foreground,
}

/// What is done to the mask of an image at last.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Refinement {
    /// It is interpolated between cells.
    None,
    /// It is snapped to edges of the image's colours nearby.
    #[default]
    Edges,
}

/// Which linear heads teach where the object is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Teachers {
    /// Both kinds, with the same weight.
    #[default]
    Both,
    /// Masks through which a trained classifier tells the class.
    MaskHeads,
    /// Masks through which held-out images are told, and beside which they are not.
    HeldOut,
}

/// Views of each image whose features are averaged.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Views {
    /// The image as it is.
    #[default]
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

    pub(super) fn check(&self, require: &mut Require<'_>) {
        require(!self.mask_stages.is_empty(), "probe.mask_stages", "must not be empty");
        require(!self.class_stages.is_empty(), "probe.class_stages", "must not be empty");
        require((1..=2048).contains(&self.dimensions), "probe.dimensions", "must be in [1, 2048]");
        require((1..=1 << 20).contains(&self.cells), "probe.cells", "must be in [1, 1048576]");
        require(
            (16..=1 << 20).contains(&self.memory_mib),
            "probe.memory_mib",
            "must be in [16, 1048576]",
        );
        require((1..=100).contains(&self.heads), "probe.heads", "must be in [1, 100]");
        require((1..=100).contains(&self.students), "probe.students", "must be in [1, 100]");
        let possible = |scale: &f64| (0.1..=10.0).contains(scale);
        require(
            (1..=10).contains(&self.scales.len()) && self.scales.iter().all(possible),
            "probe.scales",
            "must be one to ten numbers in [0.1, 10]",
        );
        require(self.sharpening <= 100, "probe.sharpening", "must be at most 100");
        require((1..=100).contains(&self.generations), "probe.generations", "must be in [1, 100]");
        require((0.0..=1.0).contains(&self.own_image), "probe.own_image", "must be in [0, 1]");
        require((0.0..=100.0).contains(&self.smoothing), "probe.smoothing", "must be in [0, 100]");
    }
}

impl Default for ProbeConfig {
    fn default() -> Self {
        Self {
            mask_stages: vec![Stage::Layer2, Stage::Layer3],
            class_stages: vec![Stage::Layer3, Stage::Layer4],
            dimensions: 64,
            cells: 2000,
            memory_mib: 1024,
            teachers: Teachers::Both,
            heads: 3,
            sharpening: 2,
            students: 2,
            generations: 2,
            own_image: 0.7,
            views: Views::One,
            scales: vec![1.0],
            smoothing: 1.5,
            refine: Refinement::Edges,
            class_view: ClassView::Best,
        }
    }
}
