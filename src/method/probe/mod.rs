//! The probe: min-max entropy on frozen features, which learns masks from labels in a minute.
//!
//! ```text
//! image ─▶ frozen backbone ─▶ features ─▶ projection ─▶ f(x) ─▶ students ─▶ discriminant ─▶ mask
//!             (of the image, or through its mask) └─▶ descriptor ─▶ linear classifier ─▶ class
//! train:  gather ─▶ teachers (mask_head, held_out) ─▶ cut maps ─▶ students, twice      (heads)
//!                └─▶ descriptors, of images and through masks ─▶ classifier       (class_head)
//! ```
//!
//! `docs/method.md` §8 has the equations. Only `features`, `model` and `arrays` know the
//! tensor framework; the heads are plain numbers, each trained on one thread from its own random
//! stream, so that results do not depend on the number of threads.

mod adamw;
mod arrays;
mod cells;
mod class_head;
mod descriptor;
mod discriminant;
pub(crate) mod edges;
mod features;
mod gather;
mod heads;
mod held_out;
mod mask_head;
mod mlp;
mod model;
#[cfg(test)]
mod parity;
mod pooled;
mod projection;
mod smooth;
mod student;
mod vector;
mod views;

pub(crate) use self::{
    arrays::{ALPHA, BETA, MASKED},
    cells::ImageCells,
    class_head::{ClassHead, Descriptors},
    descriptor::HIGHEST,
    discriminant::{GUESS_MARGIN, RIDGE},
    features::{STRIDE, StageMap, StageMaps},
    gather::{Gathered, Gatherer, ImageFeatures, MemoryPlan},
    heads::{MAX_CUT, MaskHeads},
    model::{Probe, backbone},
    smooth::kernel,
};
use crate::config::{Backbone, Config, Normalization, Stem};

/// Sets what differs from the defaults for a probe.
pub(super) fn recommended(config: &mut Config) {
    config.model.backbone = Backbone::Resnet18;
    config.model.stem = Stem::Classic;
    config.preprocess.normalization = Normalization::Imagenet;
    config.preprocess.upscale_short_side = 256;
    config.preprocess.shrink_short_side = 512;
    // There is a single epoch, so that none has to be chosen by validation.
    config.data.valid_fraction = 0.0;
}
