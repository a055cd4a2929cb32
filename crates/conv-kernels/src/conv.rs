//! Two-dimensional convolution, forward and backward.

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
    backward_weights::backward_weights,
    epilogue::Epilogue,
    forward::{backward_data, forward, forward_with_moments},
    pack::{Algorithm, PackedWeights},
    shape::{Conv, Filter, ShapeError},
};
