//! Thresholds of histograms, logistic regression and cross-validation, which methods and metrics
//! share.

mod cut;
mod decidability;
mod factor;
mod logistic;

pub(crate) use self::cut::{BINS, CutRule, LEAST_SHARE, MOST_EVEN, cut, explained};
pub use self::{
    cut::{otsu, skewness},
    decidability::{Decidability, HeldOut, cross_validated},
    logistic::LinearClassifier,
};
