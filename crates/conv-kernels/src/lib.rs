//! CPU convolution, batch norm and max pooling for training and inference, forward and backward:
//! slices in, slices out.
//!
//! Images are contiguous `[batch, height, width, channels]` (channels-last), weights
//! `[out_channels, in_channels, kernel, kernel]`. Functions take the instruction set to use, or
//! weights packed for one; [`Isa::detect`] finds the best. Work runs on the current rayon pool, and
//! any number of threads gives the same bytes.
#![expect(clippy::needless_range_loop, reason = "register tiles are unrolled by index")]

pub mod batch_norm;
pub mod conv;
pub mod peak;
pub mod pool;

mod scratch;
mod shared;
mod simd;

pub use simd::Isa;
