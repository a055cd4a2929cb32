//! The metadata folders of wsolevaluation.
//!
//! ```text
//! train/image_ids.txt       one path per line, relative to the images
//! train/class_labels.txt    path,label          labels are numbers
//! test/localization.txt     path,x0,y0,x1,y1    or  path,mask,ignore
//! ```
//!
//! Splits are `train`, `val` and `test`; the survey of histology data divides
//! `val` into `valcl` and `valpx`, which are read as one.

use std::{collections::BTreeMap, path::Path};

use super::{
    Layout, OpenOptions,
    builder::Builder,
    folds::use_images,
    list::{self, Row},
};
use crate::data::{PixelBox, Split, Truth, problem::ProblemKind};

const FOLDERS: [(&str, Split); 5] = [
    ("train", Split::Train),
    ("val", Split::Valid),
    ("valcl", Split::Valid),
    ("valpx", Split::Valid),
    ("test", Split::Test),
];

/// What the lists say about one image.
struct Listed {
    /// Of the list of images.
    row: Row,
    split: Split,
    label: String,
    place: Place,
}

/// What `localization.txt` says about one image, with paths as they are written there.
#[derive(Default, Clone, PartialEq)]
struct Place {
    boxes: Vec<PixelBox>,
    masks: Vec<String>,
    ignore: String,
}

pub(super) fn read(path: &Path, options: &OpenOptions) -> Option<Builder> {
    let mut folders = FOLDERS.map(|(name, split)| (path.join(name), split)).to_vec();
    folders.retain(|(folder, _)| folder.join("image_ids.txt").is_file());
    if folders.is_empty() {
        return None;
    }
    let mut builder = Builder::new(Layout::Wsol, path);
    let mut listed: Vec<Listed> = Vec::new();
    for (folder, split) in &folders {
        let found = read_folder(&mut builder, folder, *split);
        if folder.ends_with("valpx") {
            merge(&mut listed, found);
        } else {
            listed.extend(found);
        }
    }
    let written: Vec<&str> = listed.iter().map(|image| image.row.get(0)).collect();
    use_images(&mut builder, path, options, &written);
    for image in listed {
        add(&mut builder, image);
    }
    Some(builder)
}

/// Adds the images of `valpx`; those that `valcl` has too are the same images, with ground truth.
fn merge(listed: &mut Vec<Listed>, found: Vec<Listed>) {
    let valid = listed.iter().enumerate().filter(|(_, known)| known.split == Split::Valid);
    let index: BTreeMap<String, usize> =
        valid.map(|(at, known)| (known.row.get(0).to_owned(), at)).collect();
    for new in found {
        match index.get(new.row.get(0)) {
            Some(&at) if listed[at].place == Place::default() => listed[at].place = new.place,
            Some(_) => {}
            None => listed.push(new),
        }
    }
}

fn read_folder(builder: &mut Builder, folder: &Path, split: Split) -> Vec<Listed> {
    let labels = folder.join("class_labels.txt");
    let rows = list::separated(builder, &labels, b',', b'"');
    let label_of: BTreeMap<&str, &str> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
    let places = read_localizations(builder, &folder.join("localization.txt"));
    let listed = |row: Row| {
        let label = label_of.get(row.get(0)).copied().unwrap_or_default().to_owned();
        let place = places.get(row.get(0)).cloned().unwrap_or_default();
        Listed { row, split, label, place }
    };
    let ids = list::separated(builder, &folder.join("image_ids.txt"), b',', b'"');
    ids.into_iter().map(listed).collect()
}

fn read_localizations(builder: &mut Builder, list: &Path) -> BTreeMap<String, Place> {
    let mut places: BTreeMap<String, Place> = BTreeMap::new();
    if !list.is_file() {
        return places;
    }
    for row in list::separated(builder, list, b',', b'"') {
        let place = places.entry(row.get(0).to_owned()).or_default();
        if place.add(&row).is_none() {
            let text = "expected `image,x0,y0,x1,y1` or `image,mask,ignore`";
            builder.problem(&row.origin, ProblemKind::BadRow, text);
        }
    }
    places
}

impl Place {
    /// Adds a row; nothing if it is not one of a box or a mask.
    fn add(&mut self, row: &Row) -> Option<()> {
        match &row.fields[1..] {
            [mask] | [mask, _] if !mask.is_empty() => {
                self.masks.push(mask.clone());
                if !row.get(2).is_empty() {
                    row.get(2).clone_into(&mut self.ignore);
                }
            }
            [_, _, _, _] => {
                let corner = |at: usize| row.get(at).parse().ok().filter(|n: &f32| n.is_finite());
                let (x0, y0, x1, y1) = (corner(1)?, corner(2)?, corner(3)?, corner(4)?);
                self.boxes.push(PixelBox { x0, y0, x1, y1 });
            }
            _ => return None,
        }
        Some(())
    }
}

fn add(builder: &mut Builder, Listed { row, split, label, place }: Listed) -> Option<()> {
    let root = builder.root.clone();
    let mut resolve = |written: &str| builder.resolve(&root, written, &row.origin);
    let image = resolve(row.get(0))?;
    let masks = place.masks.iter().map(|mask| resolve(mask)).collect::<Option<_>>()?;
    let ignore = match place.ignore.as_str() {
        "" => None,
        ignore => Some(resolve(ignore)?),
    };
    let truth = Truth { masks, ignore, boxes: place.boxes, ..Truth::default() };
    builder.add(&row.origin, split, &label, &image, truth)
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
            .text("metadata/Birds/train/image_ids.txt", "a/1.jpg\nb/2.jpg\n")
            .text("metadata/Birds/train/class_labels.txt", "a/1.jpg,0\nb/2.jpg,10\n")
            .text("metadata/Birds/test/image_ids.txt", "a/3.jpg\n")
            .text("metadata/Birds/test/class_labels.txt", "a/3.jpg,0\n")
            .text("metadata/Birds/test/localization.txt", "a/3.jpg,1,2,3,4\na/3.jpg,5,6,7,8\n")
            .png("dataset/Birds/a/1.jpg", 9, 9)
            .png("dataset/Birds/b/2.jpg", 9, 9)
            .png("dataset/Birds/a/3.jpg", 9, 9)
    }

    #[test]
    fn metadata_finds_its_images_and_boxes() {
        let dataset = tree().open_at("metadata/Birds", &OpenOptions::default()).unwrap();
        assert_eq!(dataset.layout, Layout::Wsol);
        assert_eq!(dataset.classes, ["0", "10"]);
        assert_eq!((dataset.train.len(), dataset.test.len()), (2, 1));
        assert_eq!(dataset.test[0].truth.boxes.len(), 2);
        assert_eq!(kinds(&dataset), [] as [&str; 0]);
    }

    #[test]
    fn masks_of_one_image_are_united_and_the_survey_split_is_read_as_valid() {
        let rows = "a/4.jpg,m/1.png,m/i.png\na/4.jpg,m/2.png,m/i.png\n";
        let tree = tree()
            .png("dataset/Birds/a/4.jpg", 9, 9)
            .mask("dataset/Birds/m/1.png", 9, 9)
            .mask("dataset/Birds/m/2.png", 9, 9)
            .mask("dataset/Birds/m/i.png", 9, 9)
            .text("metadata/Birds/valcl/image_ids.txt", "a/4.jpg\n")
            .text("metadata/Birds/valcl/class_labels.txt", "a/4.jpg,0\n")
            .text("metadata/Birds/valpx/image_ids.txt", "a/4.jpg\n")
            .text("metadata/Birds/valpx/class_labels.txt", "a/4.jpg,0\n")
            .text("metadata/Birds/valpx/localization.txt", rows);
        let dataset = tree.open_at("metadata/Birds", &OpenOptions::default()).unwrap();
        let [valid] = &dataset.valid[..] else { panic!("{:?}", dataset.valid) };
        assert_eq!(valid.truth.masks.len(), 2);
        assert_eq!(valid.truth.ignore, Some(tree.path("dataset/Birds/m/i.png")));
        assert_eq!(kinds(&dataset), [] as [&str; 0]);
    }

    #[test]
    fn rows_that_cannot_be_placed_are_problems() {
        let tree = tree()
            .text("metadata/Birds/test/localization.txt", "a/3.jpg,1,2,x,4\na/3.jpg\n")
            .text("metadata/Birds/test/class_labels.txt", "\n");
        let dataset = tree.open_at("metadata/Birds", &OpenOptions::default()).unwrap();
        assert_eq!(kinds(&dataset), ["bad-row", "bad-row", "bad-row"]);
    }
}
