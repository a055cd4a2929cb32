//! Min-max entropy on frozen features: masks in a minute, learned from labels alone.
//!
//! ```text
//! image ─▶ frozen backbone ─▶ features ─▶ projection ─▶ f(x) ─▶ students ─▶ discriminant ─▶ mask
//!                                    └─▶ descriptor ─▶ linear classifier ─▶ class
//! train:  gather ─▶ teachers (mask_head, held_out) ─▶ cut maps ─▶ students, twice      (heads)
//! ```
//!
//! `docs/method.md` §8 has the equations. Only `features`, `model` and `arrays` know the
//! tensor framework; the heads are plain numbers, each trained on one thread from its own random
//! stream, so that results do not depend on the number of threads.

mod adamw;
mod arrays;
mod cells;
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
mod ridge;
mod smooth;
mod student;
mod vector;
mod views;

pub use self::{
    cells::{ImageCells, LabelledCells},
    features::{StageMap, StageMaps},
    gather::{Gathered, Gathering, NotFinite, Plan},
    heads::{Found, Heads},
    mlp::Mlp,
    model::{Probe, backbone, stages},
    projection::Projection,
};
pub(crate) use self::{
    descriptor::HIGHEST,
    discriminant::{DOUBT, RIDGE},
    features::STRIDE,
    heads::UNDECIDED,
    smooth::kernel,
};
use crate::config::{Backbone, Config, Normalization, Stem};

/// Lays what a probe works best with over the defaults.
pub(super) fn recommended(config: &mut Config) {
    config.model.backbone = Backbone::Resnet18;
    config.model.stem = Stem::Classic;
    config.preprocess.normalization = Normalization::Imagenet;
    config.preprocess.upscale_short_side = 256;
    config.preprocess.shrink_short_side = 512;
    // There is one epoch, so that validation has nothing to choose.
    config.data.valid_fraction = 0.0;
}
