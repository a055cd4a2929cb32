//! Reports of evaluations: JSON, tables, figures and one page.
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
//! No score is computed here: every number shown is from `metrics`. Equal input gives equal bytes.

mod base64;
pub mod boxes;
mod chart;
pub mod compare;
mod confusion;
mod document;
mod figures;
mod folder;
mod gallery;
mod headline;
mod html;
pub mod overlay;
pub mod picture;
mod spreadsheet;
mod svg;
mod table;
mod tables;
mod warnings;

pub use document::{Conditions, Report, Training};
pub use figures::training_curves;
pub use folder::Folder;
pub use headline::{Headline, headline};
pub use warnings::{Warning, warnings};
