//! The method beside PyTorch: the same weights and images in, the same numbers out.
//!
//! `fixtures/make_method.py` computes the truth in double precision and stores it in
//! `fixtures/method.safetensors`, `make_baselines.py` likewise for the baselines; weights, images and dropout masks are computed on
//! both sides from [`formula`]. Small results are stored in full, large ones as
//! [projections](fixture::project).
//!
//! What is left is the rounding of single precision, summed in another order. The
//! tolerances are a few times what PyTorch itself strays when it computes in single
//! precision (`make_method.py --natural`), and far below what a wrong term would do.
//!
//! Composed kernels are held to that. Fused kernels round more where Winograd saves
//! products, and an input of a ReLU that is zero up to rounding then takes the other
//! side: gradients are [allowed](strays) what a few such units change, and every fused layer is
//! compared with its composed form by itself, where none of them can hide anything.

mod backbone;
mod baselines;
mod fixture;
mod formula;
mod parts;
mod step;
mod update;

use pinpoint::config::Kernels;

const BOTH: [Kernels; 2] = [Kernels::Composed, Kernels::Fused];

/// How much further kernels stray than single precision does by itself: sums, and gradients.
fn strays(kernels: Kernels) -> (f32, f64) {
    match kernels {
        Kernels::Composed => (1.0, 1.0),
        // Up to 7 % of a gradient was seen in ResNet-50, whose last maps have 16 values a channel.
        Kernels::Fused => (4.0, 300.0),
    }
}
