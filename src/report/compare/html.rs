//! The comparison as one self-contained page.

use super::{Comparison, strips::Strip};
use crate::report::{
    html::{fill, key, section, style},
    svg::{Svg, escape},
    table,
};

const PAGE: &str = include_str!("page.html");

/// The page, with charts of precision against recall, and images side by side.
pub(super) fn page(comparison: &Comparison, charts: &[Svg], shown: &[Strip]) -> String {
    fill(PAGE, |name| match name {
        "title" => {
            let setups = comparison.setups.len();
            let data = comparison.setups[0].first().report.dataset_name();
            format!("{setups} method{} on {}", if setups == 1 { "" } else { "s" }, escape(&data))
        }
        "style" => style(),
        "conditions" => {
            let reading = comparison.reading();
            let sentences = comparison.conditions.iter().chain([&reading]);
            sentences.map(|sentence| format!("<li>{}</li>\n", escape(sentence))).collect()
        }
        "tables" => comparison.tables.iter().map(table::html::section).collect(),
        "curves" => curves(charts),
        "strips" => strips(shown),
        "footer" => format!("Written by pinpoint {}", env!("CARGO_PKG_VERSION")),
        other => unreachable!("the page has no part `{other}`"),
    })
}

fn curves(charts: &[Svg]) -> String {
    if charts.is_empty() {
        return String::new();
    }
    let chart = |chart: &Svg| format!("<figure>\n{}</figure>\n", chart.inline());
    let content = format!(
        "<div class=\"figures\">\n{}</div>\n<p class=\"note\">Averaged over images and seeds; the \
         legend has the area under each curve.</p>\n",
        charts.iter().map(chart).collect::<String>()
    );
    section("pr", "Precision and recall", &content)
}

fn strips(strips: &[Strip]) -> String {
    if strips.is_empty() {
        return String::new();
    }
    let shown = strips.iter().map(Strip::html).collect::<String>();
    section("strips", "Side by side", &(key() + &shown))
}
