//! Two-dimensional convolution, forward and backward.

mod backward_data;
mod backward_weights;
mod epilogue;
mod forward;
mod gather;
mod moments;
mod outer_plan;
mod pack;
mod shape;
mod tile;
mod winograd;

pub use self::{
    backward_data::backward_data,
    backward_weights::backward_weights,
    epilogue::Epilogue,
    forward::{forward, forward_with_moments},
    pack::{Algorithm, PackedWeights},
    shape::{Conv, Filter, ShapeError},
};
