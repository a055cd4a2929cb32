//! A table as data, before it has a form.

use super::Role;
use crate::metrics::Spread;

/// Rows over common columns.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    /// Short name for programs and labels.
    pub key: &'static str,
    /// What it shows.
    pub title: String,
    /// What a reader must know; may be empty.
    pub note: String,
    /// What is in the cells of each row.
    pub columns: Vec<Column>,
    /// The set-ups, in order of their roles.
    pub rows: Vec<Row>,
}

/// What a column holds.
#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    /// Short name for programs.
    pub key: &'static str,
    /// Its heading, unit included.
    pub heading: &'static str,
    /// Digits shown behind the point.
    pub decimals: usize,
    /// Which values are better; none if that is no contest.
    pub better: Option<Better>,
}

/// Which values are better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Better {
    Lower,
    Higher,
}

/// One set-up.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Its title.
    pub label: String,
    /// What it is to the others: only what learns from labels competes.
    pub role: Role,
    /// A cell for each column.
    pub cells: Vec<Cell>,
}

/// One value, and what is remarkable about it.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Cell {
    /// Over the seeds; none if it does not exist.
    pub value: Option<Spread>,
    /// Whether no competing row shows a better one.
    pub best: bool,
    /// Against the value that the table is compared with.
    pub change: Option<Change>,
}

/// How a value differs from the one it is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Change {
    Improved,
    Degraded,
}

impl From<Option<Spread>> for Cell {
    fn from(value: Option<Spread>) -> Self {
        Self { value, ..Self::default() }
    }
}

impl Table {
    /// Leaves out rows without any value and marks the best of each column; none if it is empty.
    pub(super) fn finished(mut self) -> Option<Self> {
        self.rows.retain(|row| row.cells.iter().any(|cell| cell.value.is_some()));
        for index in 0..self.columns.len() {
            self.mark_best(index);
        }
        (!self.rows.is_empty()).then_some(self)
    }

    /// Equal as shown is equal: a reader sees no more digits than there are.
    fn mark_best(&mut self, index: usize) {
        let Column { better: Some(better), decimals, .. } = self.columns[index] else { return };
        let shown = |row: &Row| {
            let value = row.cells[index].value.filter(|_| row.role.competes())?;
            let rounded = rounded(value.mean, decimals);
            Some(if better == Better::Lower { -rounded } else { rounded })
        };
        let best = self.rows.iter().filter_map(shown).max();
        // Being the only one is no merit.
        let contest = self.rows.iter().filter_map(shown).count() > 1;
        for row in &mut self.rows {
            row.cells[index].best = contest && shown(row).is_some() && shown(row) == best;
        }
    }
}

impl Role {
    /// Whether it is in the contest: what learns from labels is.
    pub fn competes(self) -> bool {
        matches!(self, Self::Rival | Self::Ours)
    }
}

impl Change {
    /// How a value of a column has changed, as far as the digits shown tell.
    pub(super) fn of(before: f64, after: f64, column: &Column) -> Option<Self> {
        let (before, after) = (rounded(before, column.decimals), rounded(after, column.decimals));
        let higher = after > before;
        let improved = higher == (column.better? == Better::Higher);
        (before != after).then_some(if improved { Self::Improved } else { Self::Degraded })
    }

    /// The sign that stands for it.
    pub fn sign(self) -> &'static str {
        match self {
            Self::Improved => "+",
            Self::Degraded => "-",
        }
    }
}

impl Cell {
    /// The value as shown: mean, and deviation where there are several runs.
    pub(super) fn parts(&self, column: &Column) -> Option<(String, Option<String>)> {
        let Spread { mean, deviation, .. } = self.value?;
        let text = |value: f64| format!("{value:.*}", column.decimals);
        Some((text(mean), deviation.map(text)))
    }
}

/// In units of the last digit shown.
fn rounded(value: f64, decimals: usize) -> i64 {
    (value * 10_f64.powi(decimals as i32)).round() as i64
}
