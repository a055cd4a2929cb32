//! Answers in the formats of other programs.
//!
//! ```text
//! score map ─▶ metrics::regions_at ─┬─▶ contour ─▶ geojson   QuPath, GIS
//!                                   ├─▶ rle ─────▶ coco      annotation tools
//! mask, class ──────────────────────┴─▶ label_png            segmentation datasets
//! ```
//!
//! All of them are exact: what is written gives the mask back, pixel by pixel.

/// Polygons around regions, along the edges of pixels.
pub mod contour;

/// Contours as GeoJSON, as QuPath reads and writes it.
pub mod geojson;

/// Run lengths of masks, as COCO writes them.
pub mod rle;

/// Regions of many images in one COCO file.
pub mod coco;

/// The class of each pixel as an indexed picture.
pub mod label_png;

/// How a run has gone, as TensorBoard shows it.
pub mod tensorboard;
