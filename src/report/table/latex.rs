//! Tables for papers.

use super::{Cell, Column, Marks, Table, directed};

const MARKS: Marks =
    Marks { best: ("\\mathbf{", "}"), change: ("^{+}", "^{-}"), deviation: "\\pm" };

/// Tables that need `\usepackage{booktabs}`; `reading` says how to read their cells.
pub(in crate::report) fn document(
    tables: &[Table],
    conditions: &[String],
    reading: &str,
) -> String {
    let mut text = String::from("% Needs \\usepackage{booktabs}.\n");
    for sentence in conditions {
        // A line break would end the comment.
        text.push_str(&format!("% {}\n", sentence.replace(char::is_control, " ")));
    }
    for table in tables {
        text.push('\n');
        write(&mut text, table, reading);
    }
    text
}

fn write(text: &mut String, table: &Table, reading: &str) {
    let note =
        if table.note.is_empty() { String::new() } else { format!(" {}.", escape(&table.note)) };
    let align = |column: &Column| if column.words { 'l' } else { 'r' };
    text.push_str(&format!(
        "\\begin{{table}}\n  \\caption{{{}. {}.{note}}}\n  \\label{{tab:{}}}\n  \\centering\n  \
         \\begin{{tabular}}{{l{}}}\n    \\toprule\n",
        escape(&table.title),
        escape(reading),
        table.key,
        table.columns.iter().map(align).collect::<String>(),
    ));
    let heading = |column: &Column| escape(&directed(column.heading, column.better));
    let headings = table.columns.iter().map(heading);
    line(text, std::iter::once(table.rows_are.to_owned()).chain(headings));
    text.push_str("    \\midrule\n");
    for (row, first) in table.grouped() {
        if first {
            text.push_str("    \\midrule\n");
        }
        let cells = row.cells.iter().zip(&table.columns).map(|(cell, column)| value(cell, column));
        line(text, std::iter::once(escape(&row.label)).chain(cells));
    }
    text.push_str("    \\bottomrule\n  \\end{tabular}\n\\end{table}\n");
}

fn line(text: &mut String, cells: impl Iterator<Item = String>) {
    text.push_str(&format!("    {} \\\\\n", cells.collect::<Vec<_>>().join(" & ")));
}

fn value(cell: &Cell, column: &Column) -> String {
    match cell.render(column, &MARKS, escape) {
        None => "--".to_owned(),
        Some(text) if column.words => text,
        Some(number) => format!("${number}$"),
    }
}

/// Text that LaTeX shows as it is.
fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' | '%' | '$' | '#' | '_' | '{' | '}' => safe.extend(['\\', letter]),
            '\\' => safe.push_str("\\textbackslash{}"),
            '~' => safe.push_str("\\textasciitilde{}"),
            '^' => safe.push_str("\\textasciicircum{}"),
            '<' => safe.push_str("\\textless{}"),
            '>' => safe.push_str("\\textgreater{}"),
            '⁺' => safe.push_str("$^{+}$"),
            '⁻' => safe.push_str("$^{-}$"),
            '±' => safe.push_str("$\\pm$"),
            '×' => safe.push_str("$\\times$"),
            '−' => safe.push_str("$-$"),
            '↑' => safe.push_str("$\\uparrow$"),
            '↓' => safe.push_str("$\\downarrow$"),
            _ if letter.is_control() => safe.push(' '),
            _ => safe.push(letter),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_become_commands() {
        assert_eq!(escape("a_b & 50 % {x}"), "a\\_b \\& 50 \\% \\{x\\}");
        assert_eq!(escape("\\input{x}\n$"), "\\textbackslash{}input\\{x\\} \\$");
        assert_eq!(escape("F1⁺"), "F1$^{+}$");
    }
}
