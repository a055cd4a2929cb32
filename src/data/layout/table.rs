//! A CSV file with a header, the simplest way to list one's own images.
//!
//! ```text
//! image,label,mask,split         mask and split may be left out, or empty (mask)
//! scans/1.png,sick,masks/1.png,train
//! scans/2.png,healthy,,test
//! ```
//!
//! Columns may come in any order and be separated by `,`, `;` or tabs. A folder
//! with several such files is read as one table.

use std::{
    io::Read,
    path::{Path, PathBuf},
};

use super::{
    Layout, OpenOptions,
    builder::Builder,
    list::{self, Row},
    path, split_named, split_of_file,
};
use crate::{
    data::{Split, problem::ProblemKind},
    regular,
};

/// A header row longer than this is none.
const MAX_HEADER: u64 = 64 << 10;

/// What a column of image files may be called.
pub(super) const IMAGE: [&str; 8] =
    ["image", "file", "filename", "path", "file_name", "filepath", "image_path", "img"];
/// What a column of classes may be called.
pub(super) const LABEL: [&str; 4] = ["label", "class", "class_name", "category"];
/// What a column of mask files may be called.
pub(super) const MASK: [&str; 2] = ["mask", "mask_path"];
/// What a column of splits may be called.
pub(super) const SPLIT: [&str; 2] = ["split", "set"];

/// Which column holds what.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Columns {
    delimiter: u8,
    image: usize,
    label: usize,
    mask: Option<usize>,
    split: Option<usize>,
}

impl Columns {
    /// The columns named by the first line of a file; nothing if it is not a header.
    pub(super) fn of_file(path: &Path) -> Option<Self> {
        let header = first_line(path)?;
        DELIMITERS.into_iter().find_map(|delimiter| Self::of_header(&header, delimiter))
    }

    fn of_header(header: &str, delimiter: u8) -> Option<Self> {
        let names: Vec<String> =
            fields(header, delimiter).iter().map(|name| name.to_ascii_lowercase()).collect();
        let column = |known: &[&str]| names.iter().position(|name| known.contains(&name.as_str()));
        Some(Self {
            delimiter,
            image: column(&IMAGE)?,
            label: column(&LABEL)?,
            mask: column(&MASK),
            split: column(&SPLIT),
        })
    }
}

const DELIMITERS: [u8; 3] = [b',', b';', b'\t'];

/// The first line of a file, without a byte-order mark.
fn first_line(path: &Path) -> Option<String> {
    let mut start = Vec::new();
    regular::open(path).ok()?.take(MAX_HEADER).read_to_end(&mut start).ok()?;
    let text = String::from_utf8_lossy(&start);
    let line = text.trim_start_matches('\u{FEFF}').lines().next()?.split('\r').next()?;
    Some(line.to_owned())
}

fn fields(line: &str, delimiter: u8) -> Vec<&str> {
    line.split(char::from(delimiter)).map(|name| name.trim().trim_matches('"').trim()).collect()
}

/// Whether the first line of a list names no image, as the header of a table of other columns.
pub(super) fn is_headed_otherwise(path: &Path) -> bool {
    let names_image = |field: &&str| path::is_image(Path::new(field.trim_matches('|')));
    first_line(path)
        .is_some_and(|line| !line.trim().is_empty() && !fields(&line, b',').iter().any(names_image))
}

/// The first list at `path` that has a header of other columns, with these.
pub(super) fn other_columns(path: &Path) -> Option<(PathBuf, Vec<String>)> {
    let list = list_files(path)
        .into_iter()
        .find(|list| Columns::of_file(list).is_none() && is_headed_otherwise(list))?;
    let line = first_line(&list)?;
    let columns = DELIMITERS.map(|delimiter| fields(&line, delimiter));
    let columns =
        columns.into_iter().max_by_key(Vec::len)?.into_iter().map(str::to_owned).collect();
    Some((list, columns))
}

/// The files at `path` that may be lists: itself, or those in it.
fn list_files(path: &Path) -> Vec<PathBuf> {
    let files = if path.is_dir() { path::entries(path) } else { vec![path.to_owned()] };
    let is_list = |path: &PathBuf| {
        let end = path.extension().and_then(|end| end.to_str()).unwrap_or_default();
        path.is_file() && ["csv", "tsv", "txt"].iter().any(|known| end.eq_ignore_ascii_case(known))
    };
    files.into_iter().filter(is_list).collect()
}

pub(super) fn read(path: &Path, options: &OpenOptions) -> Option<Builder> {
    let with_columns = |path: PathBuf| Columns::of_file(&path).map(|columns| (path, columns));
    let lists: Vec<_> = list_files(path).into_iter().filter_map(with_columns).collect();
    let folder = lists.first()?.0.parent()?;
    let mut builder = Builder::new(Layout::Table, options.images.as_deref().unwrap_or(folder));
    if options.images.is_some() {
        builder.note(format!("images are read from `{}`", builder.root.display()));
    }
    for (list, columns) in &lists {
        let split = split_of_file(list).unwrap_or(Split::Train);
        let rows = list::separated(&mut builder, list, columns.delimiter, b'"');
        // The first row is the header.
        for row in rows.iter().skip(1) {
            add(&mut builder, columns, split, row);
        }
    }
    Some(builder)
}

fn add(builder: &mut Builder, columns: &Columns, split: Split, row: &Row) -> Option<()> {
    let image = row.get(columns.image);
    let split_name = columns.split.map(|column| row.get(column));
    let Some(split) = split_name.map_or(Some(split), split_named) else {
        let name = split_name.unwrap_or_default();
        let text = format!("split `{name}` is not train, valid or test");
        return builder.problem(&row.origin, ProblemKind::BadRow, text);
    };
    if image.is_empty() {
        return builder.problem(&row.origin, ProblemKind::BadRow, "there is no image in this row");
    }
    let masks = columns.mask.map_or("", |column| row.get(column));
    builder.add_written(&row.origin, split, row.get(columns.label), image, masks)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::layout::{
        OpenOptions,
        tree::{Tree, kinds},
    };
    use proptest::prelude::*;

    fn tree(table: &str) -> Tree {
        Tree::new()
            .text("labels.csv", table)
            .png("scans/1.png", 4, 4)
            .png("scans/2.png", 4, 4)
            .mask("masks/1.png", 4, 4)
    }

    #[test]
    fn a_table_is_read_by_the_names_of_its_columns() {
        let tree = tree(
            "split,label,image,mask\ntrain,sick,scans/1.png,masks/1.png\nval,well,scans/2.png,\n",
        );
        for path in ["", "labels.csv"] {
            let dataset = tree.open_at(path, &OpenOptions::default()).unwrap();
            assert_eq!(dataset.layout, Layout::Table);
            assert_eq!(dataset.classes, ["sick", "well"]);
            assert_eq!((dataset.train.len(), dataset.valid.len()), (1, 1));
            assert_eq!(dataset.train[0].truth.masks, [tree.path("masks/1.png")]);
        }
    }

    #[test]
    fn a_row_may_name_several_masks() {
        let tree = tree(
            "image,label,mask\nscans/1.png,sick,masks/1.png; masks/2.png\nscans/2.png,well,\n",
        )
        .mask("masks/2.png", 4, 4);
        let dataset = tree.open().unwrap();
        let both = [tree.path("masks/1.png"), tree.path("masks/2.png")];
        assert_eq!(dataset.train[0].truth.masks, both);
        assert_eq!(kinds(&dataset), [] as [&str; 0]);
    }

    #[test]
    fn spreadsheets_of_other_habits_are_read_too() {
        let dataset =
            tree("\u{FEFF}\"Image\" ; Label\r\n\"scans\\1.png\" ; sick \r\nscans\\2.png;well")
                .open()
                .unwrap();
        assert_eq!((dataset.train.len(), kinds(&dataset).len()), (2, 0));
        assert!(dataset.notes.iter().any(|note| note.contains("in place of `\\`: 2")));
    }

    #[test]
    fn every_bad_row_is_told_by_line() {
        let dataset = tree("image,label,split\nscans/1.png,sick,train\nscans/2.png,,train\nscans/2.png,well,exam\n,well,train\nscans,well,train\nscans/3.png,well,test\n")
            .open()
            .unwrap();
        assert_eq!(
            kinds(&dataset),
            ["bad-row", "bad-row", "bad-row", "not-a-file", "missing-image", "single-class"]
        );
        let lines: Vec<_> = dataset.problems.iter().filter_map(|problem| problem.line).collect();
        assert_eq!(lines, [3, 4, 5, 6, 7]);
    }

    #[test]
    fn images_elsewhere_are_found_where_the_user_says() {
        let tree = tree("").text("lists/labels.csv", "image,label\n1.png,sick\n2.png,well\n");
        let options = OpenOptions { images: Some(tree.path("scans")), ..OpenOptions::default() };
        let dataset = tree.open_at("lists/labels.csv", &options).unwrap();
        assert_eq!(dataset.train.len(), 2);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn no_bytes_make_a_table_panic(rows in prop::collection::vec(any::<u8>(), 0..300)) {
            let mut content = b"image,label,mask,split\n".to_vec();
            content.extend(rows);
            let _ = Tree::new().bytes("labels.csv", &content).open();
        }
    }
}
