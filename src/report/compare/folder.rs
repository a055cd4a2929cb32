//! A comparison on disk.
//!
//! ```text
//! comparison.md comparison.csv comparison.tex   the tables
//! comparison.html                               tables and pictures on one page
//! figures/precision_recall.png .svg             averaged curves of all methods
//! figures/strips.png                            images side by side, if their maps were saved
//! ```

use std::{fs, path::Path};

use super::{Comparison, Format, Setup, html, strips::strips};
use crate::{
    data::Dataset,
    error::{Error, Result},
    metrics::{Curves, mean_curves},
    report::{
        canvas::encode_png,
        chart::Grid,
        figures::precision_recall,
        folder::remove,
        gallery::jpeg,
        overlay::{AGREEMENT_KEY, sheet},
    },
    run::write_atomically,
};

/// Size of the figure of curves in pixels.
const CURVES: (u32, u32) = (1800, 620);

/// Writes the tables in every form, and the pictures; those of images need the dataset.
///
/// Says how many images are shown.
pub fn write(comparison: &Comparison, folder: &Path, dataset: Option<&Dataset>) -> Result<usize> {
    let figures = folder.join("figures");
    fs::create_dir_all(&figures).map_err(Error::file("create", &figures))?;
    let mut pictures = html::Pictures::default();
    if let Some(grid) = curves(comparison) {
        let svg = grid.to_svg(CURVES.0, CURVES.1);
        write_atomically(&figures.join("precision_recall.svg"), svg.as_bytes())?;
        let png = grid.to_png(CURVES.0, CURVES.1);
        write_atomically(&figures.join("precision_recall.png"), &png)?;
        pictures.curves = Some(svg);
    }
    let rows = dataset.map_or_else(|| Ok(Vec::new()), |dataset| strips(comparison, dataset))?;
    let file = figures.join("strips.png");
    if rows.is_empty() {
        remove(&file)?;
    } else {
        let picture = sheet(&rows, &AGREEMENT_KEY);
        write_atomically(&file, &encode_png(&picture))?;
        pictures.strips = Some(jpeg(&picture));
    }
    let forms = [("md", Format::Markdown), ("csv", Format::Csv), ("tex", Format::Latex)];
    for (ending, format) in forms {
        let text = comparison.render(format);
        write_atomically(&folder.join(format!("comparison.{ending}")), text.as_bytes())?;
    }
    let page = html::page(comparison, &pictures);
    write_atomically(&folder.join("comparison.html"), page.as_bytes())?;
    Ok(rows.len())
}

/// Averaged precision-recall curves of all set-ups; none if none has one.
fn curves(comparison: &Comparison) -> Option<Grid> {
    let of = |setup: &Setup| -> Curves {
        let reports = setup.plain.iter().map(|entry| &entry.report.evaluation.curves);
        mean_curves(&reports.collect::<Vec<_>>())
    };
    let ranked = comparison.setups.iter().filter(|setup| setup.ranks_pixels());
    let averaged: Vec<(&str, Curves)> =
        ranked.map(|setup| (setup.short_title(), of(setup))).collect();
    let methods: Vec<(&str, &Curves)> =
        averaged.iter().map(|(title, curves)| (*title, curves)).collect();
    let grid = precision_recall(&methods);
    grid.charts.iter().any(|chart| !chart.series.is_empty()).then_some(grid)
}
