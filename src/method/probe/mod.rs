//! Heads on frozen features.

mod adamw;
mod arrays;
mod cells;
mod descriptor;
mod discriminant;
mod features;
mod gather;
mod heads;
mod held_out;
mod mask_head;
mod mlp;
mod model;
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
    gather::{Gathered, Gathering, Plan},
    heads::{Found, Heads},
    mlp::Mlp,
    model::{Probe, stages},
    projection::Projection,
};
use crate::config::{Backbone, Config, Normalization, Stem};

/// Lays what a probe works best with over the defaults.
pub(super) fn recommended(config: &mut Config) {
    config.model.backbone = Backbone::Resnet18;
    config.model.stem = Stem::Classic;
    config.preprocess.normalization = Normalization::Imagenet;
    config.preprocess.upscale_short_side = 256;
    config.preprocess.shrink_short_side = 512;
}
