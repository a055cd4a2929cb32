//! The fold files published with the paper: no header, `image,mask,class`.
//!
//! ```text
//! train_s_0_f_0.csv  valid_s_0_f_0.csv  test_s_0_f_0.csv
//! encoding.yaml      optional, {benign: 0, malignant: 1}
//! ```
//!
//! The images need not be near: see [`search`](super::search).

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use super::{
    Layout, OpenOptions,
    builder::{Builder, Origin},
    list::{self, Row},
    path, search, split_of_file, table,
};
use crate::data::{MaskRule, Split, problem::ProblemKind};

pub(super) fn read(folder: &Path, options: &OpenOptions) -> Option<Builder> {
    let is_fold = |path: &PathBuf| {
        path.extension().is_some_and(|end| end.eq_ignore_ascii_case("csv"))
            && path.is_file()
            && table::Columns::of_file(path).is_none()
            && !table::is_headed_otherwise(path)
    };
    let candidates = path::entries(folder).into_iter().filter(is_fold);
    let mut lists: Vec<_> =
        candidates.filter_map(|path| Some((split_of_file(&path)?, path))).collect();
    if lists.is_empty() {
        return None;
    }
    lists.sort();
    let mut builder = Builder::new(Layout::Folds, folder);
    let mut rows = Vec::new();
    for (split, list) in &lists {
        let of_list = list::separated(&mut builder, list, b',', b'|').into_iter();
        rows.extend(of_list.map(|row| (*split, row)));
    }
    let written: Vec<&str> = rows.iter().map(|(_, row)| row.get(0)).collect();
    use_images(&mut builder, folder, options, &written);
    choose_rule(&mut builder, rows.iter().map(|(_, row)| row.get(1)));
    builder.classes = read_encoding(&mut builder, &folder.join("encoding.yaml"));
    for (split, row) in &rows {
        add(&mut builder, *split, row);
    }
    Some(builder)
}

/// Finds the folder that `written` paths are relative to, and notes it if it is not that of the
/// lists.
pub(super) fn use_images(
    builder: &mut Builder,
    lists: &Path,
    options: &OpenOptions,
    written: &[&str],
) {
    builder.root = search::image_root(lists, options.images.as_deref(), written);
    if builder.root != lists {
        builder.note(format!("images are read from `{}`", builder.root.display()));
    }
}

/// The mask rule of the dataset whose folder the masks are in.
fn choose_rule<'a>(builder: &mut Builder, mut masks: impl Iterator<Item = &'a str>) {
    let Some(mask) = masks.find(|mask| !mask.is_empty()) else { return };
    let tree = mask.split(['/', '\\']).next().unwrap_or_default();
    let (rule, meaning) = match tree {
        "segmentations" => (MaskRule::Votes, "the votes of annotators (`votes`)"),
        "segmim" => (MaskRule::NotBlue, "Oxford's blue background (`not-blue`)"),
        _ => return,
    };
    builder.mask_rule = rule;
    builder.note(format!("masks are in `{tree}/` and therefore read as {meaning}"));
}

fn add(builder: &mut Builder, split: Split, row: &Row) -> Option<()> {
    if row.fields.len() != 3 || row.get(0).is_empty() {
        let text = format!("found {} fields in place of `image,mask,class`", row.fields.len());
        return builder.problem(&row.origin, ProblemKind::BadRow, text);
    }
    builder.add_written(&row.origin, split, row.get(2), row.get(0), row.get(1))
}

/// The class names in the order of their codes, if there is an encoding.
fn read_encoding(builder: &mut Builder, file: &Path) -> Option<Vec<String>> {
    if !file.is_file() {
        return None;
    }
    let text = list::read_text(builder, file)?;
    builder.readable(&Origin::file(file), parse_encoding(&text))
}

/// Reads `{name: code, …}` over any number of lines, or one `name: code` a line: all that such a
/// file holds of YAML.
fn parse_encoding(text: &str) -> Result<Vec<String>, String> {
    let mut names = BTreeMap::new();
    let text = text.trim().trim_start_matches('{').trim_end_matches('}');
    for pair in text.split([',', '\n', '\r']).map(str::trim).filter(|pair| !pair.is_empty()) {
        let expected = || format!("`{pair}` is not `class: code`");
        let (name, code) = pair.rsplit_once(':').ok_or_else(expected)?;
        let code: u32 = code.trim().parse().map_err(|_| expected())?;
        let name = name.trim().trim_matches(['\'', '"']).to_owned();
        if names.values().any(|other| *other == name) {
            return Err(format!("class `{name}` has two codes"));
        }
        if let Some(other) = names.insert(code, name) {
            return Err(format!("code {code} is given to `{other}` and to another class"));
        }
    }
    let codes_have_gaps = names.keys().zip(0..).any(|(code, expected)| *code != expected);
    if names.is_empty() || codes_have_gaps {
        return Err("codes are not 0, 1, 2, … without gaps".to_owned());
    }
    Ok(names.into_values().collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::layout::{
        OpenOptions,
        tree::{Tree, kinds},
    };
    use proptest::prelude::*;

    fn tree() -> Tree {
        Tree::new()
            .text(
                "folds/birds/train_s_0_f_0.csv",
                "images/b.bmp,segmentations/b.bmp,B\r\nimages/a.bmp,,A\r\n",
            )
            .text("folds/birds/valid_s_0_f_0.csv", "images/c.bmp,|segmentations/c.bmp|,A\n")
            .png("birds/images/a.jpg", 4, 4)
            .png("birds/images/b.jpg", 4, 4)
            .png("birds/images/c.jpg", 4, 4)
            .mask("birds/segmentations/b.png", 4, 4)
            .mask("birds/segmentations/c.png", 4, 4)
    }

    #[test]
    fn folds_find_their_images_and_keep_the_order_of_rows() {
        let dataset = tree().open_at("folds/birds", &OpenOptions::default()).unwrap();
        assert_eq!((dataset.layout, dataset.mask_rule), (Layout::Folds, MaskRule::Votes));
        let ids: Vec<_> = dataset.samples().map(|(_, sample)| sample.id.as_str()).collect();
        assert_eq!(ids, ["images/b.jpg", "images/a.jpg", "images/c.jpg"]);
        assert_eq!(dataset.classes, ["A", "B"]);
        assert_eq!(kinds(&dataset), [] as [&str; 0]);
        assert!(dataset.notes.iter().any(|note| note.contains("another extension: 5")));
    }

    #[test]
    fn an_encoding_orders_the_classes_and_bounds_them() {
        let tree = tree()
            .text("folds/birds/encoding.yaml", "{B: 0,\n  A: 1}\n")
            .text("folds/birds/test.csv", "images/a.bmp,,C\n");
        let dataset = tree.open_at("folds/birds", &OpenOptions::default()).unwrap();
        assert_eq!(dataset.classes, ["B", "A"]);
        assert_eq!(kinds(&dataset), ["unknown-class"]);
    }

    #[test]
    fn encodings_are_read_in_both_yaml_styles_and_otherwise_refused() {
        assert_eq!(parse_encoding("{a: 1, 'b': 0}").unwrap(), ["b", "a"]);
        assert_eq!(parse_encoding("019.x: 0\r\nb c: 1\r\n").unwrap(), ["019.x", "b c"]);
        for bad in [
            "",
            "{}",
            "{a: 0, b: 0}",
            "{a: 0, a: 1}",
            "{a: 1}",
            "{a}",
            "{a: -1}",
            "{a: 99999999999}",
        ] {
            assert!(parse_encoding(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn rows_that_lead_elsewhere_or_have_other_fields_are_problems() {
        let tree = tree().text(
            "folds/birds/test.csv",
            "../../x.png,,A\n/etc/passwd,,A\nC:\\x.png,,A\nimages\\a.bmp\nimages,,A\n",
        );
        let dataset = tree.open_at("folds/birds", &OpenOptions::default()).unwrap();
        let expected = ["outside-root", "outside-root", "outside-root", "bad-row", "not-a-file"];
        assert_eq!(kinds(&dataset), expected);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn no_bytes_make_folds_panic(rows in prop::collection::vec(any::<u8>(), 0..300), encoding in ".{0,60}") {
            let tree = Tree::new().bytes("train.csv", &rows).text("encoding.yaml", &encoding);
            let options = OpenOptions { layout: Some(Layout::Folds), ..OpenOptions::default() };
            let _ = tree.open_at("", &options);
        }
    }
}
