//! Tables that spreadsheets open.

/// A header and rows as CSV.
pub(super) fn csv<R: IntoIterator<Item = String>>(
    header: &[&str],
    rows: impl IntoIterator<Item = R>,
) -> String {
    let mut table = csv::Writer::from_writer(Vec::new());
    table.write_record(header).expect("memory takes any row");
    for row in rows {
        table.write_record(row).expect("memory takes rows of equal length");
    }
    text(table)
}

/// What was written into memory.
pub(super) fn text(table: csv::Writer<Vec<u8>>) -> String {
    let bytes = table.into_inner().expect("writing to memory does not fail");
    String::from_utf8(bytes).expect("text went in")
}

/// A number, or nothing where there is none.
pub(super) fn number(number: Option<impl ToString>) -> String {
    number.map_or_else(String::new, |number| number.to_string())
}

/// A name that no spreadsheet takes for a formula: one that starts like one gets an apostrophe,
/// which spreadsheets take for "this is text".
pub(super) fn name(text: &str) -> String {
    let mark = if text.starts_with(['=', '+', '-', '@', '\t', '\r', '\n']) { "'" } else { "" };
    format!("{mark}{text}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_starts_like_a_formula_is_marked_as_text() {
        for formula in ["=cmd|' /C calc'!A0", "+1", "-1", "@SUM(A1)", "\t=1"] {
            assert_eq!(name(formula), format!("'{formula}"));
        }
        assert_eq!(name("train/a=b.png"), "train/a=b.png");
        assert_eq!(name(""), "");
    }
}
