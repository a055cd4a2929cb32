//! Tables for papers.

use super::{Cell, Column, Marks, Table};

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
    let note = match table.note.as_str() {
        "" => String::new(),
        note => format!(" {}.", escape(note)),
    };
    let align = |column: &Column| if column.words { 'l' } else { 'r' };
    text.push_str(&format!(
        "\\begin{{table}}\n  \\caption{{{}. {}.{note}}}\n  \\label{{tab:{}}}\n  \\centering\n  \
         \\begin{{tabular}}{{l{}}}\n    \\toprule\n",
        escape(&table.title),
        escape(reading),
        table.key,
        table.columns.iter().map(align).collect::<String>(),
    ));
    line(text, table.headings().map(|heading| escape(&heading)));
    text.push_str("    \\midrule\n");
    for (row, first) in table.grouped() {
        if first {
            text.push_str("    \\midrule\n");
        }
        let label = std::iter::once(escape(&row.label));
        line(text, label.chain(table.cells(row).map(value)));
    }
    text.push_str("    \\bottomrule\n  \\end{tabular}\n\\end{table}\n");
}

fn line(text: &mut String, cells: impl Iterator<Item = String>) {
    text.push_str(&format!("    {} \\\\\n", cells.collect::<Vec<_>>().join(" & ")));
}

fn value((cell, column): (&Cell, &Column)) -> String {
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
