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
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use super::{
    Layout,
    builder::{Builder, Entry, Origin},
    detect,
    list::{self, Row},
    path,
};
use crate::{
    data::{MaskRule, PixelBox, Split, problem::ProblemKind},
    error::Result,
};

/// Where the parts of the tree are.
#[derive(Debug)]
pub(super) struct Home {
    /// The folder of the list files.
    lists: PathBuf,
    segmentations: Option<PathBuf>,
}

/// The lists that say something about an image, by its number.
struct Lists {
    class_of: BTreeMap<String, String>,
    split_of: BTreeMap<String, String>,
    box_of: BTreeMap<String, String>,
    class_names: BTreeMap<String, String>,
}

impl Home {
    pub(super) fn find(path: &Path) -> Option<Self> {
        let is_home = |folder: &PathBuf| {
            ["images.txt", "image_class_labels.txt"].iter().all(|list| folder.join(list).is_file())
        };
        let lists = [path.join("CUB_200_2011"), path.to_owned()].into_iter().find(is_home)?;
        let around = [Some(path), Some(&lists), lists.parent()];
        let segmentations = around
            .into_iter()
            .flatten()
            .map(|folder| folder.join("segmentations"))
            .find(|folder| folder.is_dir());
        Some(Self { lists, segmentations })
    }

    /// What samples are named relative to: the same whichever folder was given.
    fn root(&self) -> &Path {
        match self.lists.parent() {
            Some(parent) if path::name(&self.lists) == "CUB_200_2011" => parent,
            _ => &self.lists,
        }
    }
}

pub(super) fn read(path: &Path) -> Result<Builder> {
    let home = Home::find(path).ok_or_else(|| detect::lacks(path, Layout::Cub))?;
    let mut builder = Builder::new(Layout::Cub, home.root());
    builder.mask_rule = MaskRule::Votes;
    if home.segmentations.is_none() {
        builder.note("no `segmentations/` found; it is a download of its own, to be put beside `CUB_200_2011/`");
    }
    let lists = Lists::read(&mut builder, &home);
    builder.classes = Some(official_order(&lists.class_names));
    let images = home.lists.join("images.txt");
    for row in list::keyed(&mut builder, &images) {
        let origin = Origin::line(&images, row.line);
        if let Some(entry) = entry(&mut builder, &home, &lists, &row, origin) {
            builder.add(entry);
        }
    }
    Ok(builder)
}

impl Lists {
    fn read(builder: &mut Builder, home: &Home) -> Self {
        let mut read = |name: &str| by_number(builder, &home.lists.join(name));
        let class_of = read("image_class_labels.txt");
        let split_of = read("train_test_split.txt");
        let class_names = read("classes.txt");
        // Boxes are scored where they are known; nobody needs them for masks.
        let has_boxes = home.lists.join("bounding_boxes.txt").is_file();
        let box_of = if has_boxes { read("bounding_boxes.txt") } else { BTreeMap::new() };
        Self { class_of, split_of, box_of, class_names }
    }
}

/// A list as a map; a number that is listed twice is a problem.
fn by_number(builder: &mut Builder, list: &Path) -> BTreeMap<String, String> {
    let mut values: BTreeMap<String, String> = BTreeMap::new();
    for Row { line, fields } in list::keyed(builder, list) {
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
        builder.problem(Origin::line(list, line).problem(kind, text));
    }
    values
}

fn official_order(class_names: &BTreeMap<String, String>) -> Vec<String> {
    let mut numbered: Vec<_> = class_names.iter().collect();
    numbered.sort_by_key(|(number, _)| (number.parse::<u64>().unwrap_or(u64::MAX), *number));
    let mut names: Vec<String> = Vec::new();
    for (_, name) in numbered {
        if !names.contains(name) {
            names.push(name.clone());
        }
    }
    names
}

fn entry(
    builder: &mut Builder,
    home: &Home,
    lists: &Lists,
    row: &Row,
    origin: Origin,
) -> Option<Entry> {
    let (number, written) = (row.get(0), row.get(1));
    let parsed = split(lists, number)
        .and_then(|split| Ok((split, class(lists, number)?, boxes(lists, number)?)));
    let (split, class, boxes) = match parsed {
        Ok(parsed) => parsed,
        Err((kind, text)) => {
            return builder.reject(&origin, kind, format!("image {number} {text}"));
        }
    };
    let image = builder.resolve(&home.lists.join("images"), written, &origin)?;
    let masks = match &home.segmentations {
        Some(folder) => vec![builder.resolve(folder, written, &origin)?.with_extension("png")],
        None => Vec::new(),
    };
    Some(Entry { boxes, ..Entry::new(split, class, image, masks, origin) })
}

type Parsed<T> = Result<T, (ProblemKind, String)>;

fn split(lists: &Lists, number: &str) -> Parsed<Split> {
    match lists.split_of.get(number).map(String::as_str) {
        Some("1") => Ok(Split::Train),
        Some("0") => Ok(Split::Test),
        _ => Err((ProblemKind::BadRow, "has no 0 or 1 in `train_test_split.txt`".to_owned())),
    }
}

fn class(lists: &Lists, number: &str) -> Parsed<String> {
    let Some(class) = lists.class_of.get(number) else {
        return Err((ProblemKind::BadRow, "is not in `image_class_labels.txt`".to_owned()));
    };
    let name = lists.class_names.get(class).cloned();
    name.ok_or_else(|| {
        (ProblemKind::UnknownClass, format!("has class {class}, not in `classes.txt`"))
    })
}

fn boxes(lists: &Lists, number: &str) -> Parsed<Vec<PixelBox>> {
    let Some(text) = lists.box_of.get(number) else { return Ok(Vec::new()) };
    let numbers: Vec<f32> = text.split_whitespace().flat_map(str::parse).collect();
    match numbers[..] {
        [x, y, width, height] if numbers.iter().all(|n| n.is_finite()) => {
            Ok(vec![PixelBox { x0: x, y0: y, x1: x + width, y1: y + height }])
        }
        _ => Err((ProblemKind::BadRow, format!("has box `{text}`, not `x y width height`"))),
    }
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
        assert!(kinds(&tree.open().unwrap()).contains(&"outside-root"));
    }
}
