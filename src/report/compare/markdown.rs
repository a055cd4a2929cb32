//! Tables for README files and issues.

use super::{Cell, Change, Column, Comparison, Table};
use crate::report::tables::{cell, line};

/// All tables, with how they were measured.
pub(super) fn document(comparison: &Comparison) -> String {
    let mut text = String::from("# Comparison\n\n");
    for sentence in &comparison.conditions {
        text.push_str(&format!("- {}\n", cell(sentence)));
    }
    text.push_str(&format!("- {}\n", cell(&super::reading(comparison))));
    for table in &comparison.tables {
        text.push_str(&format!("\n## {}\n\n", table.title));
        write(&mut text, table);
        if !table.note.is_empty() {
            text.push_str(&format!("\n{}\n", cell(&table.note)));
        }
    }
    text
}

fn write(text: &mut String, table: &Table) {
    let headings: Vec<&str> = table.columns.iter().map(|column| column.heading).collect();
    line(text, &[&["Method"], &headings[..]].concat());
    let rule: Vec<&str> = std::iter::once("---").chain(headings.iter().map(|_| "---:")).collect();
    text.push_str(&format!("|{}|\n", rule.join("|")));
    for row in &table.rows {
        let mut cells = vec![cell(&row.label)];
        cells
            .extend(row.cells.iter().zip(&table.columns).map(|(cell, column)| value(cell, column)));
        line(text, &cells.iter().map(String::as_str).collect::<Vec<_>>());
    }
}

fn value(cell: &Cell, column: &Column) -> String {
    let Some((mean, deviation)) = cell.parts(column) else { return "-".to_owned() };
    let mean = if cell.best { format!("**{mean}**") } else { mean };
    let mark = match cell.change {
        Some(Change::Improved) => "⁺",
        Some(Change::Degraded) => "⁻",
        None => "",
    };
    let deviation = deviation.map_or_else(String::new, |deviation| format!(" ± {deviation}"));
    format!("{mean}{mark}{deviation}")
}
