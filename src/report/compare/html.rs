//! One page with everything: no network, nothing beside it.

use super::{Cell, Change, Column, Comparison, Table, strips::Strip};
use crate::report::{
    html::{fill, key, style},
    svg::{Svg, escape},
};

const PAGE: &str = include_str!("page.html");

/// What a page shows beside its tables.
#[derive(Default)]
pub(super) struct Pictures {
    /// Precision against recall.
    pub(super) curves: Vec<Svg>,
    /// Images side by side.
    pub(super) strips: Vec<Strip>,
}

/// The page.
pub(super) fn page(comparison: &Comparison, pictures: &Pictures) -> String {
    fill(PAGE, |name| match name {
        "title" => {
            let setups = comparison.setups.len();
            format!("{setups} method{}", if setups == 1 { "" } else { "s" })
        }
        "style" => style(),
        "conditions" => {
            let reading = super::reading(comparison);
            let sentences = comparison.conditions.iter().chain([&reading]);
            sentences.map(|sentence| format!("<li>{}</li>\n", escape(sentence))).collect()
        }
        "tables" => comparison.tables.iter().map(table).collect(),
        "curves" => curves(&pictures.curves),
        "strips" => strips(&pictures.strips),
        "footer" => format!("Written by pinpoint {}", env!("CARGO_PKG_VERSION")),
        other => unreachable!("the page has no part `{other}`"),
    })
}

fn table(table: &Table) -> String {
    let Table { key, title, note, columns, .. } = table;
    let heading = |column: &Column| {
        format!("<th scope=\"col\" class=\"number\">{}</th>", escape(column.heading))
    };
    let rows = table.rows.iter().enumerate().map(|(index, row)| {
        let first = index > 0 && table.rows[index - 1].role != row.role;
        let class = if first { " class=\"first\"" } else { "" };
        let cells: String = row.cells.iter().zip(columns).map(|(cell, c)| value(cell, c)).collect();
        format!("<tr{class}><th scope=\"row\">{}</th>{cells}</tr>\n", escape(&row.label))
    });
    format!(
        "<section aria-labelledby=\"{key}\">\n<h2 id=\"{key}\">{}</h2>\n<div class=\"scroll\">\n\
         <table>\n<caption>{}</caption>\n<thead><tr><th scope=\"col\">Method</th>{}</tr></thead>\n\
         <tbody>\n{}</tbody>\n</table>\n</div>\n</section>\n",
        escape(title),
        escape(note),
        columns.iter().map(heading).collect::<String>(),
        rows.collect::<String>(),
    )
}

fn value(cell: &Cell, column: &Column) -> String {
    let Some((mean, deviation)) = cell.parts(column) else {
        return "<td class=\"number\">-</td>".to_owned();
    };
    let mean = if cell.best { format!("<b>{mean}</b>") } else { mean };
    let mark = match cell.change {
        Some(Change::Improved) => "<sup>+</sup>",
        Some(Change::Degraded) => "<sup>−</sup>",
        None => "",
    };
    let deviation = deviation.map_or_else(String::new, |deviation| format!(" ± {deviation}"));
    format!("<td class=\"number\">{mean}{mark}{deviation}</td>")
}

fn curves(charts: &[Svg]) -> String {
    if charts.is_empty() {
        return String::new();
    }
    let chart = |chart: &Svg| format!("<figure>\n{}</figure>\n", chart.inline());
    format!(
        "<section aria-labelledby=\"pr\">\n<h2 id=\"pr\">Precision and recall</h2>\n\
         <div class=\"figures\">\n{}</div>\n<p class=\"note\">Averaged over images and seeds; the \
         legend has the area under each curve.</p>\n</section>\n",
        charts.iter().map(chart).collect::<String>()
    )
}

fn strips(strips: &[Strip]) -> String {
    if strips.is_empty() {
        return String::new();
    }
    format!(
        "<section aria-labelledby=\"strips\">\n<h2 id=\"strips\">Side by side</h2>\n{}{}</section>\n",
        key(),
        strips.iter().map(Strip::html).collect::<String>()
    )
}
