//! Several evaluations beside each other: the tables of the paper, and their masks.
//!
//! ```text
//! report.json ─▶ Entry ─▶ agree ─▶ Setup ─┬─▶ Table ─▶ Markdown, CSV, LaTeX, HTML
//!                                         ├─▶ curves ─▶ SVG
//! saved maps, dataset ────────────────────┴─▶ strips ─▶ SVG
//! ```
//!
//! Runs of one set-up that differ in their seed alone are one row: mean ± standard
//! deviation. Reports that were not measured alike are refused.

mod agree;
mod entry;
mod folder;
mod html;
mod setup;
mod strips;
mod tables;

use std::path::{Path, PathBuf};

use serde::Deserialize;

pub use self::{
    entry::{Entry, open},
    folder::write,
};
use crate::{
    data::{Dataset, OpenOptions, split::cut_validation},
    error::{Error, Result},
    report::{
        Report,
        table::{Table, csv, latex, markdown},
    },
};

/// Images that comparisons show side by side.
const SHOWN: usize = 8;

/// Whether a comparison shows the image at this place of a split: some, evenly spread.
pub fn is_shown(index: usize, images: usize) -> bool {
    let place = (index * SHOWN).div_ceil(images.max(1));
    place < SHOWN && place * images / SHOWN == index
}

/// Evaluations that were measured alike, grouped by set-up.
#[derive(Debug, Clone)]
pub struct Comparison {
    /// How all of them were measured, a sentence each.
    conditions: Vec<String>,
    /// What is compared, in the order of the tables.
    setups: Vec<setup::Setup>,
    /// The tables of the paper, as far as there are numbers for them.
    tables: Vec<Table>,
}

/// A form that tables can be written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the names say it")]
pub enum Format {
    Markdown,
    Csv,
    Latex,
    Html,
}

impl Comparison {
    /// Puts evaluations beside each other; refuses those that were not measured alike.
    pub fn of(entries: Vec<Entry>) -> Result<Self> {
        if entries.is_empty() {
            return Err(Error::Mismatch(vec!["there is no report to compare".to_owned()]));
        }
        let conditions = agree::conditions(&entries)?;
        let setups = setup::group(entries)?;
        let tables = tables::tables(&setups);
        Ok(Self { conditions, setups, tables })
    }

    /// The tables, in one of the forms.
    pub fn render(&self, format: Format) -> String {
        match format {
            Format::Markdown => self.markdown(),
            Format::Csv => csv::document(&self.tables),
            Format::Latex => latex::document(&self.tables, &self.conditions, &self.reading()),
            Format::Html => html::page(self, &[], &[]),
        }
    }

    fn markdown(&self) -> String {
        let sentences = self.conditions.iter().cloned().chain([self.reading()]);
        let list: String =
            sentences.map(|sentence| format!("- {}\n", markdown::escape(&sentence))).collect();
        let tables: String = self.tables.iter().map(markdown::section).collect();
        format!("# Comparison\n\n{list}{tables}")
    }

    /// How to read the cells.
    fn reading(&self) -> String {
        let several = self.setups.iter().any(|s| s.plain.len() > 1 || s.refined.len() > 1);
        let spread = "; mean ± standard deviation where there are several seeds";
        format!(
            "Bold is the best of what learns from labels alone, as far as the digits tell{}",
            if several { spread } else { "" }
        )
    }

    /// Opens the dataset that was scored, at `data` if it is elsewhere now.
    pub fn dataset(&self, data: Option<&Path>, images: Option<PathBuf>) -> Result<Dataset> {
        let Report { conditions, settings, .. } = &self.setups[0].first().report;
        let mask_rule = Some(conditions.truth_rule);
        let read_as = settings.as_deref().map(|settings| settings.data.clone()).unwrap_or_default();
        let options =
            OpenOptions { mask_rule, ..read_as.open_options(Some(conditions.layout), images) };
        let data = data.unwrap_or(Path::new(&conditions.data));
        let mut dataset = Dataset::open(data, &options)?;
        if let Some(settings) = settings {
            cut_validation(&mut dataset, settings.data.valid_fraction, settings.seed);
        }
        Ok(dataset)
    }

    /// Whether maps of some set-up were saved, so that its masks can be shown.
    pub fn has_maps(&self) -> bool {
        self.setups.iter().any(|setup| setup.first().folder.join("maps").is_dir())
    }
}

#[cfg(test)]
mod tests;
