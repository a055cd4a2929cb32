//! What a run looks like: curves as PNG and SVG, overlays and galleries as PNG.
//!
//! ```text
//! numbers ─▶ chart ─┐
//!                   ├─▶ canvas ─▶ PNG
//! images ─▶ overlay ┘
//! ```
//!
//! Drawing computes no score: every number shown here was computed elsewhere.
//! Equal input gives equal bytes.

/// The regions of a mask as JSON, CSV and GeoJSON.
pub mod boxes;
/// Pixels: text, lines, rectangles and images on one surface.
pub mod canvas;
/// Curves with axes and a legend, alone or in a grid.
pub mod chart;
/// Heat maps, masks, contours and boxes on images, and galleries of them.
pub mod overlay;
/// How a run has gone so far.
mod training;

pub use training::training_curves;
