//! Tables for programs: a line per cell.

use super::{Change, Table};
use crate::report::spreadsheet;

const HEADER: [&str; 9] =
    ["table", "method", "role", "score", "mean", "deviation", "runs", "best", "change"];

/// All tables, a line per cell that has a number.
pub(in crate::report) fn document(tables: &[Table]) -> String {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(HEADER).expect("memory takes any row");
    for table in tables {
        for row in &table.rows {
            for (cell, column) in row.cells.iter().zip(&table.columns) {
                let Some(value) = cell.number() else { continue };
                let record = [
                    table.key.to_owned(),
                    spreadsheet::name(&row.label).into_owned(),
                    row.group.to_owned(),
                    column.key.to_owned(),
                    value.mean.to_string(),
                    value.deviation.map_or_else(String::new, |deviation| deviation.to_string()),
                    value.runs.to_string(),
                    cell.best.to_string(),
                    cell.change.map_or("", Change::sign).to_owned(),
                ];
                writer.write_record(&record).expect("memory takes any row");
            }
        }
    }
    let bytes = writer.into_inner().expect("writing to memory does not fail");
    String::from_utf8(bytes).expect("text went in")
}
