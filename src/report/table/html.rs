//! Tables for pages.

use super::{Cell, Column, Marks, Table, directed};
use crate::report::{html, svg::escape};

const MARKS: Marks =
    Marks { best: ("<b>", "</b>"), change: ("<sup>+</sup>", "<sup>−</sup>"), deviation: "±" };

/// The table with its note, in a frame that scrolls where it is too wide.
pub(in crate::report) fn table(table: &Table) -> String {
    let class = |column: &Column| if column.words { "" } else { " class=\"number\"" };
    let heading = |column: &Column| {
        let hint = column.better.map_or_else(String::new, |b| format!(" title=\"{}\"", b.words()));
        format!(
            "<th scope=\"col\"{}{hint}>{}</th>",
            class(column),
            escape(&directed(column.heading, column.better))
        )
    };
    let value = |(cell, column): (&Cell, &Column)| {
        let text = cell.render(column, &MARKS, escape).unwrap_or_else(|| "-".to_owned());
        format!("<td{}>{text}</td>", class(column))
    };
    let rows = table.grouped().map(|(row, first)| {
        let class = if first { " class=\"first\"" } else { "" };
        let cells: String = table.cells(row).map(value).collect();
        format!("<tr{class}><th scope=\"row\">{}</th>{cells}</tr>\n", escape(&row.label))
    });
    let caption = match table.note.as_str() {
        "" => String::new(),
        note => format!("<caption>{}</caption>\n", escape(note)),
    };
    format!(
        "<div class=\"scroll\">\n<table>\n{caption}<thead><tr><th scope=\"col\">{}</th>{}</tr></thead>\n\
         <tbody>\n{}</tbody>\n</table>\n</div>\n",
        table.rows_are,
        table.columns.iter().map(heading).collect::<String>(),
        rows.collect::<String>(),
    )
}

/// The table under its title.
pub(in crate::report) fn section(shown: &Table) -> String {
    html::section(shown.key, &escape(&shown.title), &table(shown))
}
