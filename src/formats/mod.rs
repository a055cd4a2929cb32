//! Masks and metrics in the formats of other programs.
//!
//! ```text
//! score map ─▶ metrics::regions_at ─┬─▶ contour ─▶ geojson   QuPath, GIS
//!                                   ├─▶ rle ─────▶ coco      annotation tools
//! mask, class ──────────────────────┴─▶ label_png            segmentation datasets
//! metrics of epochs ────────────────────▶ tensorboard
//! ```
//!
//! Those of masks are exact: reading them gives the mask back, pixel by pixel.

pub mod coco;
pub mod contour;
pub mod geojson;
pub mod label_png;
pub mod rle;
pub mod tensorboard;
