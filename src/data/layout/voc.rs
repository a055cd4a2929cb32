//! Pascal VOC as distributed, as far as an image has one class.
//!
//! ```text
//! VOCdevkit/VOC2012/
//!   JPEGImages/2008_000002.jpg
//!   ImageSets/Main/dog_train.txt     2008_000002 -1     1 there, 0 hardly to be seen, -1 not there
//!   SegmentationClass/2007_000032.png                   0 background, 255 border; of some images
//! ```
//!
//! Images with objects of several classes are left out: one class per image is learned.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use super::{
    Layout,
    builder::{Builder, Origin},
    list, path, split_named,
};
use crate::data::{MaskRule, Split, Truth, problem::ProblemKind};

/// Classes of an image that the lists of a split name.
type Objects = BTreeMap<String, Vec<(String, bool)>>;

pub(super) fn read(path: &Path) -> Option<Builder> {
    let is_home = |folder: &PathBuf| {
        folder.join("JPEGImages").is_dir() && folder.join("ImageSets/Main").is_dir()
    };
    let root = path::here_or_below(path, is_home).or_else(|| {
        path::subfolders(path).iter().find_map(|below| path::here_or_below(below, is_home))
    })?;
    let mut builder = Builder::new(Layout::Voc, &root);
    builder.mask_rule = MaskRule::Void255;
    let sets = read_lists(&mut builder, &root.join("ImageSets/Main"));
    let splits: Vec<Split> = sets.keys().copied().collect();
    let scored = builder.scored_split(&splits, "there is no list of test images");
    let (mut several, mut images) = (0, 0);
    for (split, objects) in sets {
        let split = scored(split);
        for (name, classes) in objects {
            images += 1;
            let [(class, true)] = &classes[..] else {
                several += 1;
                continue;
            };
            add(&mut builder, split, &name, class);
        }
    }
    if several > 0 {
        builder.note(format!(
            "left out images with objects of several classes, or of one that is hardly to be \
             seen: {several} of {images}"
        ));
    }
    Some(builder)
}

/// What the lists `<class>_<split>.txt` say.
fn read_lists(builder: &mut Builder, folder: &Path) -> BTreeMap<Split, Objects> {
    let mut sets: BTreeMap<Split, Objects> = BTreeMap::new();
    for list in path::entries(folder) {
        let stem = list.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let Some((class, split)) = stem.rsplit_once('_') else { continue };
        // `trainval` repeats the others.
        let Some(split) = split_named(split) else { continue };
        for row in list::keyed(builder, &list) {
            let is_clear = match row.get(1) {
                "1" => true,
                "0" => false,
                "-1" => continue,
                other => {
                    let text = format!("`{other}` is not 1, 0 or -1");
                    builder.problem(&row.origin, ProblemKind::BadRow, text);
                    continue;
                }
            };
            let objects = sets.entry(split).or_default().entry(row.get(0).to_owned()).or_default();
            objects.push((class.to_owned(), is_clear));
        }
    }
    sets
}

fn add(builder: &mut Builder, split: Split, name: &str, class: &str) -> Option<()> {
    let root = builder.root.clone();
    let origin = Origin::file(&root.join("ImageSets/Main").join(format!("{class}_{split}.txt")));
    let image = builder.resolve(&root.join("JPEGImages"), &format!("{name}.jpg"), &origin)?;
    // Most images have none, and are not said to.
    let masks = ["SegmentationClass", "SegmentationObject"]
        .into_iter()
        .filter_map(|folder| builder.image_named(&root.join(folder), name));
    let masks = masks.take(1).collect();
    builder.add(&origin, split, class, &image, Truth { masks, ..Truth::default() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::layout::tree::{Tree, kinds};

    fn tree() -> Tree {
        let mut tree = Tree::new()
            .text("VOCdevkit/VOC2012/ImageSets/Main/cat_train.txt", "1  1\n2 -1\n3  1\n4  0\n")
            .text("VOCdevkit/VOC2012/ImageSets/Main/dog_train.txt", "1 -1\n2  1\n3  1\n4 -1\n")
            .text("VOCdevkit/VOC2012/ImageSets/Main/cat_val.txt", "5  1\n6 -1\n")
            .text("VOCdevkit/VOC2012/ImageSets/Main/dog_val.txt", "5 -1\n6  1\n")
            .text("VOCdevkit/VOC2012/ImageSets/Main/dog_trainval.txt", "2  1\n")
            .text("VOCdevkit/VOC2012/ImageSets/Main/train.txt", "1\n2\n3\n4\n")
            .mask("VOCdevkit/VOC2012/SegmentationClass/5.png", 4, 4);
        for name in 1..=6 {
            tree = tree.png(&format!("VOCdevkit/VOC2012/JPEGImages/{name}.jpg"), 4, 4);
        }
        tree
    }

    #[test]
    fn images_of_one_class_are_read_and_the_others_are_counted() {
        let tree = tree();
        let dataset = tree.open().unwrap();
        assert_eq!((dataset.layout, dataset.mask_rule), (Layout::Voc, MaskRule::Void255));
        assert_eq!(dataset.classes, ["cat", "dog"]);
        let ids = |samples: &[crate::data::Sample]| -> Vec<String> {
            samples.iter().map(|sample| sample.id.clone()).collect()
        };
        assert_eq!(ids(&dataset.train), ["JPEGImages/1.jpg", "JPEGImages/2.jpg"]);
        assert_eq!(ids(&dataset.test), ["JPEGImages/5.jpg", "JPEGImages/6.jpg"]);
        assert_eq!(dataset.test[0].truth.masks.len(), 1);
        assert_eq!(kinds(&dataset), [] as [&str; 0]);
        let notes = dataset.notes.join("\n");
        assert!(notes.contains("2 of 6") && notes.contains("`val` is scored"), "{notes}");
    }

    #[test]
    fn a_value_that_means_nothing_is_a_problem() {
        let tree = tree().text("VOCdevkit/VOC2012/ImageSets/Main/cat_val.txt", "5  7\n6 -1\n");
        assert_eq!(kinds(&tree.open().unwrap()), ["bad-row"]);
    }
}
