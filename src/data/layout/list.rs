//! Lenient reading of list files.
//!
//! Any line end, a byte-order mark, spaces around fields, quotes that were not
//! needed: all are read. A list that cannot be read is a problem, not a stop.

use std::{io, path::Path};

use csv::{ReaderBuilder, Trim};

use super::builder::{Builder, Origin};
use crate::regular::read_bounded;

/// Longer lists are refused: this is some ten million rows.
const MAX_BYTES: u64 = 512 << 20;

/// One line of a list.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) origin: Origin,
    /// Without surrounding spaces and quotes.
    pub(super) fields: Vec<String>,
}

impl Row {
    /// The field at `index`; empty if the row is too short.
    pub(super) fn get(&self, index: usize) -> &str {
        self.fields.get(index).map_or("", String::as_str)
    }
}

/// The rows of a separated file; none, and a problem, if it cannot be read.
///
/// Fields may be quoted by `quote`, and by `"` as a whole.
pub(super) fn separated(builder: &mut Builder, path: &Path, delimiter: u8, quote: u8) -> Vec<Row> {
    let Some(text) = read_text(builder, path) else { return Vec::new() };
    let mut reader = ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .trim(Trim::All)
        .delimiter(delimiter)
        .quote(quote)
        .from_reader(text.as_bytes());
    let records = reader.records().flatten();
    let row = |record: csv::StringRecord| Row {
        origin: Origin::line(path, record.position().map_or(0, csv::Position::line)),
        fields: record.iter().map(|field| unquoted(field).to_owned()).collect(),
    };
    records.map(row).collect()
}

/// The rows `key rest` of a list whose keys hold no spaces; empty lines are skipped.
pub(super) fn keyed(builder: &mut Builder, path: &Path) -> Vec<Row> {
    let Some(text) = read_text(builder, path) else { return Vec::new() };
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let row = |(index, line): (usize, &str)| {
        let (key, rest) = line.trim().split_once(char::is_whitespace).unwrap_or((line.trim(), ""));
        let fields = vec![key.to_owned(), rest.trim().to_owned()];
        Row { origin: Origin::line(path, index as u64 + 1), fields }
    };
    text.split('\n').enumerate().map(row).filter(|row| !row.get(0).is_empty()).collect()
}

/// The text of a list without its byte-order mark; nothing, and a problem, if it is not text.
pub(super) fn read_text(builder: &mut Builder, path: &Path) -> Option<String> {
    let read = read_bounded(path, MAX_BYTES)
        .and_then(|bytes| String::from_utf8(bytes).map_err(|_| io::Error::other("not UTF-8 text")));
    let read = read.map_err(|error| format!("list cannot be read ({error})"));
    let mut text = builder.readable(&Origin::file(path), read)?;
    if text.starts_with('\u{FEFF}') {
        text.remove(0);
        builder.note(format!("skipped the byte-order mark of `{}`", path.display()));
    }
    Some(text)
}

fn unquoted(field: &str) -> &str {
    let inner = field.strip_prefix('"').and_then(|field| field.strip_suffix('"'));
    inner.map_or(field, str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{
        layout::{Layout, tree::Tree},
        problem::ProblemKind,
    };

    fn rows(content: &[u8]) -> (Vec<Vec<String>>, Builder) {
        let tree = Tree::new().bytes("list.csv", content);
        let mut builder = Builder::new(Layout::Table, &tree.path(""));
        let rows = separated(&mut builder, &tree.path("list.csv"), b',', b'|');
        (rows.into_iter().map(|row| row.fields).collect(), builder)
    }

    #[test]
    fn every_line_end_ends_a_row() {
        for content in ["a,b\rc,d\r", "a,b\nc,d", "a,b\r\nc,d\r\n", "a,b\r\n\r\nc,d\n\n"] {
            assert_eq!(rows(content.as_bytes()).0, [["a", "b"], ["c", "d"]], "{content:?}");
        }
    }

    #[test]
    fn quotes_and_spaces_do_not_belong_to_a_field() {
        assert_eq!(rows(b" a , \"b c\" ,|d,e|").0, [["a", "b c", "d,e"]]);
    }

    #[test]
    fn a_byte_order_mark_is_skipped_and_mentioned() {
        let (rows, builder) = rows(b"\xEF\xBB\xBFa,b");
        assert_eq!(rows, [["a", "b"]]);
        assert!(builder.notes[0].contains("byte-order mark"));
    }

    #[test]
    fn bytes_that_are_not_text_are_a_problem() {
        let (rows, builder) = rows(b"\xFF\xFEa\0,\0b\0");
        assert!(rows.is_empty());
        assert_eq!(builder.problems[0].kind, ProblemKind::UnreadableList);
    }

    #[test]
    fn a_keyed_list_keeps_the_spaces_of_its_values() {
        let tree = Tree::new().text("images.txt", "7 a b.jpg\r\n\r\n 9   c.jpg \n");
        let mut builder = Builder::new(Layout::Cub, &tree.path(""));
        let rows = keyed(&mut builder, &tree.path("images.txt"));
        assert_eq!(
            (rows[0].get(0), rows[0].get(1), rows[0].origin.line),
            ("7", "a b.jpg", Some(1))
        );
        assert_eq!((rows[1].get(0), rows[1].get(1), rows[1].origin.line), ("9", "c.jpg", Some(3)));
    }
}
