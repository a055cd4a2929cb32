//! CUB-200-2011 as distributed, whole or any subset of its rows.
//!
//! ```text
//! CUB_200_2011/
//!   images.txt               998 019.Gray_Catbird/Gray_Catbird_0043_21008.jpg
//!   image_class_labels.txt   998 19
//!   train_test_split.txt     998 0           1 is training
//!   classes.txt              19 019.Gray_Catbird
//!   bounding_boxes.txt       998 86.0 87.0 201.0 161.0     x, y, width, height
//!   images/
//! segmentations/             beside or inside; grey is the share of annotators
//! ```

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use super::{
    Layout,
    builder::Builder,
    list::{self, Row},
};
use crate::data::{MaskRule, PixelBox, Split, Truth, problem::ProblemKind};

/// Where the files of images are, and the lists that say something about one by its number.
struct Lists {
    images: PathBuf,
    segmentations: Option<PathBuf>,
    class_of: BTreeMap<String, String>,
    split_of: BTreeMap<String, String>,
    box_of: BTreeMap<String, String>,
    class_names: BTreeMap<String, String>,
}

pub(super) fn read(path: &Path) -> Option<Builder> {
    let is_home = |folder: &PathBuf| {
        ["images.txt", "image_class_labels.txt"].iter().all(|list| folder.join(list).is_file())
    };
    let home = [path.join("CUB_200_2011"), path.to_owned()].into_iter().find(is_home)?;
    let around = [Some(path), Some(&home), home.parent()].into_iter().flatten();
    let segmentations =
        around.map(|folder| folder.join("segmentations")).find(|folder| folder.is_dir());
    // Samples are named in the same way whichever folder was given.
    let root = match home.parent() {
        Some(parent) if home.ends_with("CUB_200_2011") => parent,
        _ => &home,
    };
    let mut builder = Builder::new(Layout::Cub, root);
    builder.mask_rule = MaskRule::Votes;
    if segmentations.is_none() {
        builder.note("no `segmentations/` found; it is a download of its own, to be put beside `CUB_200_2011/`");
    }
    let mut read = |name: &str| by_number(&mut builder, &home.join(name));
    let lists = Lists {
        images: home.join("images"),
        segmentations,
        class_of: read("image_class_labels.txt"),
        split_of: read("train_test_split.txt"),
        class_names: read("classes.txt"),
        // Boxes are scored where they are known; nobody needs them for masks.
        box_of: match home.join("bounding_boxes.txt").is_file() {
            true => read("bounding_boxes.txt"),
            false => BTreeMap::new(),
        },
    };
    builder.classes = Some(official_order(&lists.class_names));
    for row in list::keyed(&mut builder, &home.join("images.txt")) {
        add(&mut builder, &lists, &row);
    }
    Some(builder)
}

/// A list as a map; a number that is listed twice is a problem.
fn by_number(builder: &mut Builder, list: &Path) -> BTreeMap<String, String> {
    let mut values: BTreeMap<String, String> = BTreeMap::new();
    for Row { origin, fields } in list::keyed(builder, list) {
        let [number, value] = fields.try_into().expect("a keyed row has two fields");
        let Some(first) = values.get(&number) else {
            values.insert(number, value);
            continue;
        };
        let (kind, text) = if *first == value {
            (ProblemKind::DuplicateRow, format!("number `{number}` is listed again"))
        } else {
            (ProblemKind::BadRow, format!("number `{number}` has `{value}` here, `{first}` before"))
        };
        builder.problem(&origin, kind, text);
    }
    values
}

fn official_order(class_names: &BTreeMap<String, String>) -> Vec<String> {
    let mut numbered: Vec<_> = class_names.iter().collect();
    numbered.sort_by_key(|(number, _)| (number.parse::<u64>().unwrap_or(u64::MAX), *number));
    let mut seen = BTreeSet::new();
    let names = numbered.into_iter().map(|(_, name)| name).filter(|name| seen.insert(*name));
    names.cloned().collect()
}

fn add(builder: &mut Builder, lists: &Lists, row: &Row) -> Option<()> {
    let (number, written) = (row.get(0), row.get(1));
    let mut refuse =
        |kind, text: &str| builder.problem(&row.origin, kind, format!("image {number} {text}"));
    let split = match lists.split_of.get(number).map(String::as_str) {
        Some("1") => Split::Train,
        Some("0") => Split::Test,
        _ => return refuse(ProblemKind::BadRow, "has no 0 or 1 in `train_test_split.txt`"),
    };
    let Some(class) = lists.class_of.get(number) else {
        return refuse(ProblemKind::BadRow, "is not in `image_class_labels.txt`");
    };
    let Some(class_name) = lists.class_names.get(class) else {
        let text = format!("has class {class}, not in `classes.txt`");
        return refuse(ProblemKind::UnknownClass, &text);
    };
    let mut boxes = Vec::new();
    if let Some(text) = lists.box_of.get(number) {
        let numbers: Vec<f32> = text.split_whitespace().flat_map(str::parse).collect();
        let Some(found) = PixelBox::of_corner_and_size(&numbers) else {
            let text = format!("has box `{text}`, not `x y width height`");
            return refuse(ProblemKind::BadRow, &text);
        };
        boxes.push(found);
    }
    let image = builder.resolve(&lists.images, written, &row.origin)?;
    let masks = match &lists.segmentations {
        Some(folder) => vec![builder.resolve(folder, written, &row.origin)?.with_extension("png")],
        None => Vec::new(),
    };
    let truth = Truth { masks, boxes, ..Truth::default() };
    builder.add(&row.origin, split, class_name, &image, truth)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::layout::{
        OpenOptions,
        tree::{Tree, kinds},
    };

    fn tree() -> Tree {
        Tree::new()
            .text("CUB_200_2011/images.txt", "7 019.A/a.jpg\n40 178.B/b.jpg\n41 178.B/c.jpg\n")
            .text("CUB_200_2011/image_class_labels.txt", "7 19\n40 178\n41 178\n")
            .text("CUB_200_2011/train_test_split.txt", "7 1\n40 1\n41 0\n")
            .text("CUB_200_2011/classes.txt", "178 178.B\n19 019.A\n")
            .text("CUB_200_2011/bounding_boxes.txt", "7 1.0 2.0 3.0 4.0\n")
            .png("CUB_200_2011/images/019.A/a.jpg", 4, 4)
            .png("CUB_200_2011/images/178.B/b.jpg", 4, 4)
            .png("CUB_200_2011/images/178.B/c.jpg", 4, 4)
            .mask("segmentations/019.A/a.png", 4, 4)
            .mask("segmentations/178.B/b.png", 4, 4)
    }

    #[test]
    fn numbers_may_have_gaps_and_classes_keep_the_official_order() {
        let dataset = tree().open().unwrap();
        assert_eq!((dataset.layout, dataset.mask_rule), (Layout::Cub, MaskRule::Votes));
        assert_eq!(dataset.classes, ["019.A", "178.B"]);
        assert_eq!((dataset.train.len(), dataset.test.len()), (2, 1));
        assert_eq!(dataset.train[0].truth.boxes, [PixelBox { x0: 1.0, y0: 2.0, x1: 4.0, y1: 6.0 }]);
        assert_eq!(kinds(&dataset), ["missing-mask"]);
    }

    #[test]
    fn the_inner_folder_gives_the_same_samples() {
        let tree = tree();
        let inner = tree.open_at("CUB_200_2011", &OpenOptions::default()).unwrap();
        let outer = tree.open().unwrap();
        assert_eq!((inner.train, inner.test), (outer.train, outer.test));
    }

    #[test]
    fn rows_that_do_not_fit_together_are_problems() {
        let dataset = tree()
            .text("CUB_200_2011/image_class_labels.txt", "7 19\n7 19\n7 178\n40 3\n41 178\n")
            .text("CUB_200_2011/train_test_split.txt", "7 1\n40 1\n")
            .open()
            .unwrap();
        let expected = ["duplicate-row", "bad-row", "unknown-class", "bad-row", "empty-class"];
        assert_eq!(kinds(&dataset), expected);
    }

    #[test]
    fn a_row_cannot_lead_out_of_the_images() {
        let tree = tree().text("CUB_200_2011/images.txt", "7 019.A/a.jpg\n40 ../../../b.jpg\n");
        assert!(kinds(&tree.open().unwrap()).contains(&"outside-root".to_owned()));
    }
}
