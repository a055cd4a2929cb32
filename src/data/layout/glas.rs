//! GlaS (Warwick QU) as distributed.
//!
//! ```text
//! Warwick QU Dataset (Released 2016_07_08)/
//!   Grade.csv            name, patient, grade, …; any line end
//!   train_1.bmp          train_1_anno.bmp     0 background, 1, 2, 3… glands
//!   testA_1.bmp          testA_1_anno.bmp
//! ```

use std::{collections::BTreeSet, path::Path};

use super::{
    Layout,
    builder::{Builder, Origin},
    list::{self, Row},
    path,
};
use crate::data::{Split, Truth, problem::ProblemKind};

/// What a mask's stem has more than its image's.
const MASK_SUFFIX: &str = "_anno";

pub(super) fn read(path: &Path) -> Option<Builder> {
    let root = path::here_or_below(path, |folder| folder.join("Grade.csv").is_file())?;
    let grades = root.join("Grade.csv");
    let mut builder = Builder::new(Layout::Glas, &root);
    builder.classes = Some(vec!["benign".to_owned(), "malignant".to_owned()]);
    let rows = list::separated(&mut builder, &grades, b',', b'"');
    let mut listed = BTreeSet::new();
    // The first row is the header.
    for row in rows.iter().skip(1) {
        listed.insert(row.get(0));
        add(&mut builder, row);
    }
    for image in path::entries(&root) {
        let stem = image.file_stem().unwrap_or_default().to_string_lossy();
        let name = stem.strip_suffix(MASK_SUFFIX).unwrap_or(&stem);
        if path::is_image(&image) && !listed.contains(name) {
            let text = "is not listed in `Grade.csv`";
            builder.problem(&Origin::file(&image), ProblemKind::UnlabelledImage, text);
        }
    }
    Some(builder)
}

fn add(builder: &mut Builder, row: &Row) -> Option<()> {
    let name = row.get(0);
    let split = match name {
        name if name.starts_with("train") => Split::Train,
        name if name.starts_with("test") => Split::Test,
        _ => {
            let text = format!("name `{name}` starts with neither `train` nor `test`");
            return builder.problem(&row.origin, ProblemKind::BadRow, text);
        }
    };
    let root = builder.root.clone();
    let Some(image) = builder.image_named(&root, name) else {
        let text = format!("there is no image `{name}` in `{}`", root.display());
        return builder.problem(&row.origin, ProblemKind::MissingImage, text);
    };
    let mask_name = format!("{name}{MASK_SUFFIX}");
    let mask = builder.image_named(&root, &mask_name);
    // A name that does not exist either is reported as a missing mask.
    let mask = mask.unwrap_or_else(|| root.join(mask_name + ".bmp"));
    let truth = Truth { masks: vec![mask], ..Truth::default() };
    builder.add(&row.origin, split, row.get(2), &image, truth)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::layout::tree::{Tree, kinds};

    const HEADER: &str = "name,patient ID, grade (GlaS), grade (other)";

    fn tree(line_end: &str) -> Tree {
        let rows = [
            HEADER,
            "testA_1,4, benign, healthy",
            "train_1,1, malignant, poor",
            "train_2,2, benign, x",
        ];
        Tree::new()
            .text("Warwick/Grade.csv", &rows.join(line_end))
            .png("Warwick/testA_1.jpg", 4, 4)
            .mask("Warwick/testA_1_anno.png", 4, 4)
            .png("Warwick/train_1.bmp", 4, 4)
            .mask("Warwick/train_1_anno.bmp", 4, 4)
            .png("Warwick/train_2.TIF", 4, 4)
            .mask("Warwick/train_2_anno.tiff", 4, 4)
    }

    #[test]
    fn the_tree_is_read_with_any_line_end_and_extension() {
        for line_end in ["\r", "\n", "\r\n"] {
            let dataset = tree(line_end).open().unwrap();
            assert_eq!(dataset.layout, Layout::Glas);
            assert_eq!(dataset.classes, ["benign", "malignant"]);
            assert_eq!(dataset.train.iter().map(|s| s.label).collect::<Vec<_>>(), [1, 0]);
            assert_eq!(dataset.test[0].id, "testA_1.jpg");
            assert!(dataset.test[0].truth.masks[0].ends_with("testA_1_anno.png"));
            assert_eq!(kinds(&dataset), [] as [&str; 0]);
        }
    }

    #[test]
    fn whatever_is_wrong_is_reported_and_the_rest_is_read() {
        let tree = tree("\n")
            .text(
                "Warwick/Grade.csv",
                &[
                    HEADER,
                    "train_1,1,malignant",
                    "train_2,1,odd",
                    "train_3,1,benign",
                    "odd_1,1,benign",
                ]
                .join("\n"),
            )
            .png("Warwick/train_1.bmp", 4, 4);
        std::fs::remove_file(tree.path("Warwick/train_1_anno.bmp")).unwrap();
        let dataset = tree.open().unwrap();
        let expected = [
            "unknown-class",
            "missing-image",
            "bad-row",
            "unlabelled-image",
            "unlabelled-image",
            "empty-class",
        ];
        assert_eq!(kinds(&dataset), expected);
        assert_eq!(dataset.train.len(), 1);
    }
}
