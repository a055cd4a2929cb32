//! A comparison on disk.
//!
//! ```text
//! comparison.md comparison.csv comparison.tex   the tables
//! comparison.html                               tables and pictures on one page
//! figures/precision_recall.svg                  averaged curves of all methods
//! figures/strips.svg                            images side by side, if their maps were saved
//! ```

use std::{fs, path::Path};

use super::{
    Comparison, Format, html,
    setup::Setup,
    strips::{drawing, strips},
};
use crate::{
    data::Dataset,
    error::{Error, Result},
    metrics::mean_curves,
    report::{
        chart::{self, Chart},
        figures::precision_recall,
        folder::remove,
        svg::Svg,
    },
    run::write_atomically,
};

/// Width of a chart and height of its data, in pixels.
const CHART: (f32, f32) = (560.0, 340.0);

/// Writes the tables in every form, and the pictures; those of images need the dataset.
///
/// Says how many images are shown.
pub fn write(comparison: &Comparison, folder: &Path, dataset: Option<&Dataset>) -> Result<usize> {
    let figures = folder.join("figures");
    fs::create_dir_all(&figures).map_err(Error::file("create", &figures))?;
    // What an earlier version or an earlier comparison left.
    for name in ["precision_recall.png", "precision_recall.svg", "strips.png", "strips.svg"] {
        remove(&figures.join(name))?;
    }
    let charts = curves(comparison);
    if !charts.is_empty() {
        let svg = chart::grid(charts.len(), &charts, CHART).document();
        write_atomically(&figures.join("precision_recall.svg"), svg.as_bytes())?;
    }
    let strips = dataset.map_or_else(|| Ok(Vec::new()), |dataset| strips(comparison, dataset))?;
    if !strips.is_empty() {
        let svg = drawing(&strips).document();
        write_atomically(&figures.join("strips.svg"), svg.as_bytes())?;
    }
    let forms = [("md", Format::Markdown), ("csv", Format::Csv), ("tex", Format::Latex)];
    for (ending, format) in forms {
        let text = comparison.render(format);
        write_atomically(&folder.join(format!("comparison.{ending}")), text.as_bytes())?;
    }
    let curves: Vec<Svg> = charts.iter().map(|chart| chart.draw(CHART)).collect();
    let page = html::page(comparison, &curves, &strips);
    write_atomically(&folder.join("comparison.html"), page.as_bytes())?;
    Ok(strips.len())
}

/// Averaged precision-recall curves of all set-ups; none if none has one.
fn curves(comparison: &Comparison) -> Vec<Chart> {
    let mean = |setup: &Setup| {
        let curves = setup.plain.iter().map(|entry| &entry.report.evaluation.curves);
        mean_curves(&curves.collect::<Vec<_>>())
    };
    let ranked: Vec<_> = comparison.setups.iter().filter(|setup| setup.ranks_pixels()).collect();
    let means: Vec<_> = ranked.iter().map(|setup| mean(setup)).collect();
    let titles = ranked.iter().map(|setup| setup.short_title());
    let methods: Vec<_> = titles.zip(&means).collect();
    let scores = &comparison.setups[0].first().report.evaluation.scores;
    precision_recall(&methods, scores)
}
