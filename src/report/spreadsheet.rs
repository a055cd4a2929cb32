//! Names in tables that spreadsheets open.

use std::borrow::Cow;

/// A name that no spreadsheet takes for a formula: one that starts like one gets an apostrophe,
/// which spreadsheets take for "this is text".
pub(super) fn name(text: &str) -> Cow<'_, str> {
    match text.starts_with(['=', '+', '-', '@', '\t', '\r', '\n']) {
        true => Cow::Owned(format!("'{text}")),
        false => Cow::Borrowed(text),
    }
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
