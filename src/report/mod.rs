//! What an evaluation tells its readers: numbers, tables, figures and one page.
//!
//! ```text
//! Evaluation ─▶ Report ─┬─▶ report.json ─▶ Report::read
//!                       ├─▶ tables ─▶ Markdown, CSV
//!                       ├─▶ figures ─▶ chart ─▶ SVG ─┐
//!                       └────────────────────────────┴─▶ html
//! images ─▶ gallery ─────────────────────────────────────┘
//!        └▶ overlay ─▶ PNG
//! ```
//!
//! Drawing computes no score: every number shown here was computed in `metrics`.
//! Equal input gives equal bytes.

/// Bytes as text.
mod base64;
/// The regions of a mask as JSON, CSV and GeoJSON.
pub mod boxes;
/// Curves with axes and a legend, alone or in a grid.
pub mod chart;
/// Heat maps, masks and contours on images.
pub mod overlay;

/// Several evaluations beside each other.
pub mod compare;
/// The confusion matrix.
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
/// Pictures as files, and words on them.
pub mod picture;
mod spreadsheet;
/// Drawings as SVG.
mod svg;
/// A table as data, and its forms.
pub mod table;
/// Rows for spreadsheets and text.
pub mod tables;
/// What a reader of scores should be told.
mod warnings;

pub use confusion::confusion_matrix;
pub use document::{Conditions, Report, Training};
pub use figures::training_curves;
pub use folder::Folder;
pub use headline::{Headline, headline, percent};
pub use svg::Svg;
pub use warnings::{Warning, warnings};
