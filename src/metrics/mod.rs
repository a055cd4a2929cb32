//! Scores of masks, boxes and classes against ground truth.
//!
//! ```text
//!                         in parallel             in order
//! score map, truth ─▶ ImageSummary::of ─▶ Evaluator::accumulate ─▶ compute ─▶ Evaluation
//! ```
//!
//! Nothing here depends on networks, files or pictures: a score map is a slice of numbers in
//! `[0, 1]`. An [`ImageSummary`](crate::metrics::ImageSummary) has the same size
//! for every image and an [`Evaluator`](crate::metrics::Evaluator) adds it up, so a split of any length
//! needs the memory of one image and a short row for each.
//!
//! `docs/metrics.md` defines every score and says what it is in every
//! degenerate case; scores are in percent and `None` where they do not exist.

mod bootstrap;
mod boxes;
mod classification;
mod component;
mod counts;
mod curve;
mod evaluator;
mod grid;
mod growth;
mod histogram;
mod pooled_features;
mod region;
mod score_map;
mod scores;
mod spread;
mod summary;
mod sweep;
mod threshold;
mod trivial;

pub use crate::stats::{Decidability, HeldOut};
pub use bootstrap::{Bootstrap, Interval};
use boxes::BoxAccuracy;
pub use boxes::{BoxAccuracyCurve, BoxSummary, truth_boxes};
pub use classification::Confusion;
pub use component::{Component, PixelRun, RegionPixels, boxes_at, components, pieces, regions_at};
pub use counts::{EmptyRule, PixelCounts, PixelScores};
use curve::AveragedCurve;
pub use curve::{Curve, Curves, ImageCurves};
pub use evaluator::{Evaluation, Evaluator};
use histogram::ScoreHistogram;
pub use pooled_features::{FeatureGrid, PooledFeatures};
pub use score_map::{ScoreMap, ScoreMapError};
pub use scores::{ClassRow, ImageRow, Scores};
pub use spread::{Spread, mean_curves};
pub use summary::{ImageCase, ImageSummary, PredictedClass, Protocol};
use sweep::Sweep;
pub use sweep::SweepCurve;
pub use threshold::{Threshold, ThresholdRule};
pub use trivial::Trivial;
pub(crate) use trivial::from_centre;
