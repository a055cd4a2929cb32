//! What an evaluation tells its readers: numbers, tables, figures and one page.
//!
//! ```text
//! Evaluation ─▶ Report ─┬─▶ report.json ─▶ Report::read
//!                       ├─▶ tables, html
//!                       └─▶ figures ─▶ chart ─┐
//!                                             ├─▶ canvas ─▶ PNG
//! images ─▶ gallery, overlay ─────────────────┘
//! ```
//!
//! Drawing computes no score: every number shown here was computed in `metrics`.
//! Equal input gives equal bytes.

/// The regions of a mask as JSON, CSV and GeoJSON.
pub mod boxes;
/// Pixels: text, lines, rectangles and images on one surface.
pub mod canvas;
/// Curves with axes and a legend, alone or in a grid.
pub mod chart;
/// Heat maps, masks, contours and boxes on images, and galleries of them.
pub mod overlay;

/// Several evaluations beside each other.
pub mod compare;
/// The confusion matrix as a picture.
mod confusion;
/// All that is known about one evaluation.
mod document;
/// The figures of a report, and those that compare methods.
pub mod figures;
/// A report on disk.
mod folder;
/// Which images a report shows.
pub mod gallery;
/// The scores that every summary shows.
mod headline;
/// One page that shows a whole report.
pub mod html;
mod spreadsheet;
/// Rows for spreadsheets and text.
pub mod tables;
/// How a run has gone so far.
mod training;

pub use confusion::ConfusionChart;
pub use document::{Conditions, Report, Training};
pub use folder::Folder;
pub use headline::{Headline, headline, percent};
pub use training::training_curves;
