//! Tables for README files and issues.

use super::{Cell, Column, Marks, Table};

const MARKS: Marks = Marks { best: ("**", "**"), change: ("⁺", "⁻"), deviation: "±" };

/// The table under its title, with its note.
pub(in crate::report) fn section(table: &Table) -> String {
    let rule = |column: &Column| if column.words { "---|" } else { "---:|" };
    let mut text = format!(
        "\n## {}\n\n{}|---|{}\n",
        table.title,
        line(table.headings()),
        table.columns.iter().map(rule).collect::<String>()
    );
    for row in &table.rows {
        let value = |(cell, column): (&Cell, &Column)| {
            cell.render(column, &MARKS, escape).unwrap_or_else(|| "-".to_owned())
        };
        let label = std::iter::once(escape(&row.label));
        text.push_str(&line(label.chain(table.cells(row).map(value))));
    }
    if !table.note.is_empty() {
        text.push_str(&format!("\n{}\n", escape(&table.note)));
    }
    text
}

fn line(cells: impl Iterator<Item = String>) -> String {
    format!("| {} |\n", cells.collect::<Vec<_>>().join(" | "))
}

/// Text that stays within its cell, whatever it holds.
pub(in crate::report) fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '|' | '\\' | '`' | '*' | '_' | '[' | ']' | '#' => safe.extend(['\\', letter]),
            '<' => safe.push_str("&lt;"),
            '&' => safe.push_str("&amp;"),
            _ if letter.is_control() => safe.push(' '),
            _ => safe.push(letter),
        }
    }
    safe
}
