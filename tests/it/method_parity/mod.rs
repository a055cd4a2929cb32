//! The method beside PyTorch: the same weights and images in, the same numbers out.
//!
//! `fixtures/make_method.py` computes the truth in double precision and stores it in
//! `fixtures/method.safetensors`, `make_baselines.py` likewise for the rivals; weights, images and dropout masks are computed on
//! both sides from [`formula`]. Small results are stored in full, large ones as
//! [projections](fixture::project).
//!
//! What is left is the rounding of single precision, summed in another order. The
//! tolerances are a few times what PyTorch itself strays when it computes in single
//! precision (`make_method.py --natural`), and far below what a wrong term would do.

mod backbone;
mod baselines;
mod fixture;
mod formula;
mod parts;
mod step;
mod update;
