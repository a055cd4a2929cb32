//! Tables for programs: a line per cell.

use super::{Change, Table};
use crate::report::spreadsheet;

const HEADER: [&str; 9] =
    ["table", "method", "role", "score", "mean", "deviation", "runs", "best", "change"];

/// All tables, a line per cell that has a number.
pub(in crate::report) fn document(tables: &[Table]) -> String {
    let rows = tables.iter().flat_map(|table| {
        let cells = table.rows.iter().flat_map(|row| table.cells(row).map(move |cell| (row, cell)));
        cells.filter_map(|(row, (cell, column))| {
            let value = cell.number()?;
            Some([
                table.key.to_owned(),
                spreadsheet::name(&row.label),
                row.group.to_owned(),
                column.key.to_owned(),
                value.mean.to_string(),
                spreadsheet::number(value.deviation),
                value.runs.to_string(),
                cell.best.to_string(),
                cell.change.map_or("", Change::sign).to_owned(),
            ])
        })
    });
    spreadsheet::csv(&HEADER, rows)
}
