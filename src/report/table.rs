//! A table as data, and its forms: Markdown, CSV, LaTeX and HTML.

pub(super) mod csv;
pub(super) mod html;
pub(super) mod latex;
pub(super) mod markdown;

use crate::metrics::Spread;

/// Rows over common columns.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Table {
    /// Short name for programs and labels.
    pub(super) key: &'static str,
    pub(super) title: String,
    /// What a reader must know; may be empty.
    pub(super) note: String,
    /// What the rows are: methods, classes, scores.
    pub(super) rows_are: &'static str,
    pub(super) columns: Vec<Column>,
    pub(super) rows: Vec<Row>,
}

/// What a column holds.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Column {
    pub(super) key: &'static str,
    /// Its heading, unit included.
    pub(super) heading: &'static str,
    pub(super) decimals: usize,
    /// Which values are better; none if neither is.
    pub(super) better: Option<Better>,
    /// Whether it holds words, which are read from the left.
    pub(super) words: bool,
}

/// Which values are better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Better {
    Lower,
    Higher,
}

/// One row.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Row {
    pub(super) label: String,
    /// Rows of one group stand together; a line separates groups.
    pub(super) group: &'static str,
    /// Whether it can be the best of a column.
    pub(super) competes: bool,
    pub(super) cells: Vec<Cell>,
}

/// One value, and what is remarkable about it.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Cell {
    /// What it holds; none if that does not exist.
    pub(super) value: Option<Value>,
    /// Whether no competing row shows a better one.
    pub(super) best: bool,
    /// Against the value that the table is compared with.
    pub(super) change: Option<Change>,
}

/// What a cell holds.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    /// A number, over runs if there are several.
    Number(Spread),
    /// Words.
    Text(String),
}

/// How a value differs from the one it is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    Improved,
    Degraded,
}

impl From<Option<Spread>> for Cell {
    fn from(value: Option<Spread>) -> Self {
        Self { value: value.map(Value::Number), ..Self::default() }
    }
}

impl From<Option<f64>> for Cell {
    fn from(value: Option<f64>) -> Self {
        Spread::of([value]).into()
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self { value: Some(Value::Text(text)), ..Self::default() }
    }
}

impl Column {
    pub(super) const fn number(
        key: &'static str,
        heading: &'static str,
        decimals: usize,
        better: Option<Better>,
    ) -> Self {
        Self { key, heading, decimals, better, words: false }
    }

    pub(super) const fn words(key: &'static str, heading: &'static str) -> Self {
        Self { key, heading, decimals: 0, better: None, words: true }
    }
}

/// A heading with an arrow that says which values are better.
pub(super) fn directed(heading: &str, better: Option<Better>) -> String {
    match better {
        Some(better) => format!("{heading} {}", better.arrow()),
        None => heading.to_owned(),
    }
}

impl Better {
    /// An arrow: down if lower values are better, up if higher.
    pub fn arrow(self) -> &'static str {
        match self {
            Self::Lower => "↓",
            Self::Higher => "↑",
        }
    }

    /// The arrow in words.
    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Lower => "lower is better",
            Self::Higher => "higher is better",
        }
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

    /// Compares values as shown, so that several can be the best of a column.
    fn mark_best(&mut self, index: usize) {
        let Column { better: Some(better), decimals, .. } = self.columns[index] else { return };
        let shown = |row: &Row| {
            let value = row.cells[index].number().filter(|_| row.competes)?;
            let rounded = rounded(value.mean, decimals);
            Some(if better == Better::Lower { -rounded } else { rounded })
        };
        let best = self.rows.iter().filter_map(shown).max();
        // A value that is alone in its column is not called the best.
        if self.rows.iter().filter_map(shown).count() > 1 {
            for row in &mut self.rows {
                row.cells[index].best = shown(row) == best;
            }
        }
    }

    /// The rows, and whether each starts a group after the first.
    fn grouped(&self) -> impl Iterator<Item = (&Row, bool)> {
        let starts = self.rows.windows(2).map(|pair| pair[0].group != pair[1].group);
        self.rows.iter().zip(std::iter::once(false).chain(starts))
    }

    /// The headings of all columns, that of the labels first.
    fn headings(&self) -> impl Iterator<Item = String> {
        let headings = self.columns.iter().map(|column| directed(column.heading, column.better));
        std::iter::once(self.rows_are.to_owned()).chain(headings)
    }

    /// The cells of a row with their columns.
    fn cells<'a>(&'a self, row: &'a Row) -> impl Iterator<Item = (&'a Cell, &'a Column)> {
        row.cells.iter().zip(&self.columns)
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
    pub(super) fn sign(self) -> &'static str {
        match self {
            Self::Improved => "+",
            Self::Degraded => "-",
        }
    }
}

/// How a form writes the parts of a number.
struct Marks {
    /// Around the best.
    best: (&'static str, &'static str),
    /// After what improved, and after what degraded.
    change: (&'static str, &'static str),
    /// Before a deviation.
    deviation: &'static str,
}

impl Cell {
    fn number(&self) -> Option<Spread> {
        match self.value {
            Some(Value::Number(spread)) => Some(spread),
            _ => None,
        }
    }

    /// The cell in a form, or nothing if it is empty; `escape` makes words safe.
    fn render(&self, column: &Column, marks: &Marks, escape: fn(&str) -> String) -> Option<String> {
        let number = |value: f64| format!("{value:.*}", column.decimals);
        Some(match self.value.as_ref()? {
            Value::Text(text) => escape(text),
            Value::Number(Spread { mean, deviation, .. }) => {
                let (before, after) = if self.best { marks.best } else { ("", "") };
                let change = match self.change {
                    Some(Change::Improved) => marks.change.0,
                    Some(Change::Degraded) => marks.change.1,
                    None => "",
                };
                let deviation = deviation
                    .map_or_else(String::new, |d| format!(" {} {}", marks.deviation, number(d)));
                format!("{before}{}{after}{change}{deviation}", number(*mean))
            }
        })
    }
}

/// In units of the last digit shown.
fn rounded(value: f64, decimals: usize) -> i64 {
    (value * 10_f64.powi(decimals as i32)).round() as i64
}
