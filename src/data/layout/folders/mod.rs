//! One folder per class, in one folder per split; the simplest layout of all.
//!
//! ```text
//! train/<class>/1.png        masks/train/<class>/1.png      optional
//! valid/<class>/2.png        also `val`, `validation`; optional
//! test/<class>/3.png
//! ```
//!
//! Without split folders, `<class>/1.png` and `masks/<class>/1.png`, all images
//! are for training. A folder `images/` may be anywhere on the way and means nothing.
//! Masks may be in `train/masks/` and `<class>/masks/` as well, in a folder of another
//! name, or beside their images; several masks of an image are united.

mod mixed;
mod names;
mod shape;
mod truth;

use std::{
    fs,
    path::{Path, PathBuf},
};

use self::{shape::Shape, truth::Masks};
use super::{
    Layout, OpenOptions,
    builder::{Builder, Origin},
    finish::in_order,
    path,
};
use crate::data::{Truth, problem::ProblemKind};

/// Folders are followed this far.
const MAX_DEPTH: usize = 10;

/// A file below the dataset's folder.
#[derive(Debug)]
struct File {
    path: PathBuf,
    stem: String,
    /// The names of the folders it is in, from the dataset's on.
    folders: Vec<String>,
}

/// What is below the dataset's folder, sorted.
#[derive(Debug, Default)]
struct Tree {
    /// Files that are called images.
    pictures: Vec<File>,
    others: Vec<File>,
    folders: Vec<Vec<String>>,
}

pub(super) fn read(path: &Path, options: &OpenOptions) -> Option<Builder> {
    let only = match &path::entries(path)[..] {
        [entry] if entry.is_dir() => Some(entry.clone()),
        _ => None,
    };
    // The only folder first: taken for a class of its own it would be one class with everything.
    let (home, tree, shape) = only.into_iter().chain([path.to_owned()]).find_map(|folder| {
        let tree = Tree::below(&folder);
        let shape = Shape::of(&tree.pictures);
        let is_home = tree.pictures.iter().any(|file| shape.is_in_class_folder(file));
        is_home.then_some((folder, tree, shape))
    })?;
    let Tree { pictures, others, folders } = tree;
    let mut builder = Builder::new(Layout::Folders, &home);
    let classes = folders.iter().filter_map(|folders| shape.place(folders)?.1);
    builder.classes = Some(in_order(classes.map(str::to_owned)));

    let (masks, images): (Vec<File>, Vec<File>) =
        pictures.into_iter().partition(|file| shape.holds_masks(&file.folders));
    let (mut images, outside): (Vec<File>, Vec<File>) =
        images.into_iter().partition(|file| shape.place(&file.folders).is_some());
    note_left_out(&mut builder, "pictures outside of the folders of classes", &outside);
    images.sort_by_key(|file| shape.place(&file.folders).map(|(split, _)| split));

    let mut found = Masks::in_folders(&shape, &images, &masks);
    if !options.no_mask_names {
        found.add_mixed(&images);
    }
    found.report(&mut builder, &images, &masks);
    for (index, file) in images.iter().enumerate().filter(|(index, _)| found.is_image(*index)) {
        let (split, class) = shape.place(&file.folders).expect("others were left out");
        let origin = Origin::file(&file.path);
        let Some(class) = class else {
            let text = "image is not in the folder of a class";
            builder.problem(&origin, ProblemKind::UnlabelledImage, text);
            continue;
        };
        let masks = found.of_image.get(&index).cloned();
        let masks = masks.unwrap_or_else(|| found.expected(&home, &shape, file));
        let truth = Truth { masks, ..Truth::default() };
        builder.add(&origin, split, class, &file.path, truth);
    }
    let is_within = |file: &File| matches!(shape.place(&file.folders), Some((_, Some(_))));
    let others: Vec<File> = others.into_iter().filter(is_within).collect();
    note_left_out(&mut builder, "what is not an image", &others);
    Some(builder)
}

fn note_left_out(builder: &mut Builder, what: &str, files: &[File]) {
    if let [first, ..] = files {
        let (count, path) = (files.len(), first.path.display());
        builder.note(format!("left out {what}: {count}, the first is `{path}`"));
    }
}

impl Tree {
    fn below(folder: &Path) -> Self {
        let mut tree = Self::default();
        tree.walk(folder, &mut Vec::new(), &[]);
        tree
    }

    fn walk(&mut self, folder: &Path, above: &mut Vec<PathBuf>, names: &[String]) {
        // A link back to a folder above would repeat all of its images.
        let Ok(real) = fs::canonicalize(folder) else { return };
        if above.len() >= MAX_DEPTH || above.contains(&real) {
            return;
        }
        above.push(real);
        for path in path::entries(folder) {
            if path.is_dir() {
                let names = [names, &[path::name(&path)]].concat();
                self.folders.push(names.clone());
                self.walk(&path, above, &names);
                continue;
            }
            let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let list = if path::is_image(&path) { &mut self.pictures } else { &mut self.others };
            list.push(File { path, stem, folders: names.to_vec() });
        }
        above.pop();
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
            .png("train/cat/1.jpg", 4, 4)
            .png("train/cat/2.jpg", 4, 4)
            .png("train/dog/1.jpg", 4, 4)
            .png("val/cat/3.jpg", 4, 4)
            .png("test/dog/4.jpg", 4, 4)
    }

    #[test]
    fn split_and_class_are_the_names_of_folders() {
        let dataset = tree().open().unwrap();
        assert_eq!(dataset.layout, Layout::Folders);
        assert_eq!(dataset.classes, ["cat", "dog"]);
        let sizes = [dataset.train.len(), dataset.valid.len(), dataset.test.len()];
        assert_eq!(sizes, [3, 1, 1]);
        assert_eq!(dataset.train[2].id, "train/dog/1.jpg");
        assert_eq!(kinds(&dataset), [] as [&str; 0]);
    }

    #[test]
    fn masks_are_matched_by_place_and_stem() {
        let tree = tree()
            .mask("masks/train/cat/1.png", 4, 4)
            .mask("masks/train/cat/2_mask.png", 4, 4)
            .mask("masks/train/dog/9.png", 4, 4);
        let dataset = tree.open().unwrap();
        assert_eq!(dataset.train[1].truth.masks, [tree.path("masks/train/cat/2_mask.png")]);
        assert_eq!(kinds(&dataset), ["orphan-mask", "missing-mask", "missing-mask"]);
        let missing = &dataset.problems[1].text;
        let expected = tree.path("masks/val/cat/3.png").display().to_string();
        assert!(missing.contains(&expected), "{missing}");
    }

    #[test]
    fn class_folders_alone_are_for_training() {
        for prefix in ["", "images/"] {
            let tree = Tree::new()
                .png(&format!("{prefix}cat/a.png"), 4, 4)
                .png(&format!("{prefix}dog/deeper/b.png"), 4, 4)
                .mask("masks/cat/a.png", 4, 4)
                .mask("masks/dog/deeper/b.png", 4, 4);
            let dataset = tree.open().unwrap();
            assert_eq!(dataset.classes, ["cat", "dog"]);
            assert_eq!(dataset.train.len(), 2);
            assert_eq!(kinds(&dataset), [] as [&str; 0]);
        }
    }

    #[test]
    fn empty_classes_stray_images_and_other_files_are_told() {
        let tree =
            tree().folder("train/emu").png("train/stray.png", 4, 4).text("train/cat/notes.md", "");
        let dataset = tree.open().unwrap();
        assert_eq!(kinds(&dataset), ["unlabelled-image", "empty-class"]);
        assert!(dataset.notes[0].contains("notes.md"), "{:?}", dataset.notes);
    }

    #[test]
    #[cfg(unix)]
    fn a_link_to_a_folder_above_does_not_repeat_its_images() {
        let tree = tree();
        std::os::unix::fs::symlink(tree.path("train/cat"), tree.path("train/cat/again")).unwrap();
        assert_eq!(tree.open().unwrap().train.len(), 3);
    }

    #[test]
    fn breast_ultrasound_as_shipped_is_images_with_masks() {
        let tree = Tree::new()
            .noise("BUSI/benign/benign (1).png", 40, 40)
            .mask("BUSI/benign/benign (1)_mask.png", 40, 40)
            .mask("BUSI/benign/benign (1)_mask_1.png", 40, 40)
            .noise("BUSI/malignant/malignant (1).png", 40, 40)
            .mask("BUSI/malignant/malignant (1)_mask.png", 40, 40)
            .noise("BUSI/normal/normal (1).png", 40, 40)
            .grey("BUSI/normal/normal (1)_mask.png", 40, 40, 0);
        for path in ["", "BUSI"] {
            let dataset = tree.open_at(path, &OpenOptions::default()).unwrap();
            assert_eq!(dataset.classes, ["benign", "malignant", "normal"]);
            assert_eq!(dataset.train.len(), 3);
            assert_eq!(dataset.train[0].id, "benign/benign (1).png");
            let masks: Vec<usize> = dataset.train.iter().map(|s| s.truth.masks.len()).collect();
            assert_eq!(masks, [2, 1, 1]);
            assert_eq!(kinds(&dataset), [] as [&str; 0]);
            assert!(dataset.notes[0].contains("read as masks: 4"), "{:?}", dataset.notes);
        }
    }

    #[test]
    fn a_mask_without_an_image_is_asked_about_and_a_photo_of_such_a_name_is_not() {
        let tree = Tree::new()
            .noise("a/1.png", 40, 40)
            .mask("a/2_mask.png", 40, 40)
            .noise("b/with_mask_1.png", 40, 40)
            .noise("b/with_mask_2.png", 40, 40);
        let dataset = tree.open().unwrap();
        assert_eq!(kinds(&dataset), ["mask-among-images"]);
        assert_eq!(dataset.train.len(), 3);
        assert!(dataset.require_usable().unwrap_err().to_string().contains("--no-mask-names"));
        let options = OpenOptions { no_mask_names: true, ..OpenOptions::default() };
        let dataset = tree.open_at("", &options).unwrap();
        assert_eq!((dataset.train.len(), kinds(&dataset).len()), (4, 0));
    }

    #[test]
    fn pictures_of_one_name_are_image_and_mask_if_one_is_drawn() {
        let tree = Tree::new()
            .noise("a/1.jpg", 40, 40)
            .mask("a/1.png", 40, 40)
            .noise("b/2.jpg", 40, 40)
            .noise("b/2.png", 40, 41)
            .noise("b/3.jpg", 40, 40)
            .mask("b/3_label.png", 40, 40);
        let dataset = tree.open().unwrap();
        let ids: Vec<_> = dataset.train.iter().map(|sample| sample.id.as_str()).collect();
        assert_eq!(ids, ["a/1.jpg", "b/2.jpg", "b/2.png", "b/3.jpg"]);
        assert_eq!(dataset.train[0].truth.masks, [tree.path("a/1.png")]);
        assert_eq!(dataset.train[3].truth.masks, [tree.path("b/3_label.png")]);
    }

    #[test]
    fn masks_are_found_in_folders_of_many_names_and_places() {
        for (image, mask) in [
            ("train/cat/1.jpg", "labels/train/cat/1.png"),
            ("train/cat/1.jpg", "train/masks/cat/1.png"),
            ("train/images/cat/1.jpg", "train/labels/cat/1.png"),
            ("images/train/cat/1.jpg", "annotations/train/cat/1_mask.png"),
            ("train/cat/images/1.jpg", "train/cat/masks/1.png"),
            ("train/cat/1.jpg", "gt/cat/1.png"),
            ("train/cat/1.jpg", "Ground_Truth/1.png"),
            ("train/cat/1.jpg", "annotations/trimaps/1.png"),
        ] {
            let dog = image.replace("cat", "dog").replace('1', "2");
            let tree = Tree::new().noise(image, 40, 40).noise(&dog, 40, 40).mask(mask, 40, 40);
            let dataset = tree.open().unwrap();
            assert_eq!(dataset.classes, ["cat", "dog"], "{mask}");
            assert_eq!(dataset.train.len(), 2, "{mask}");
            assert_eq!(dataset.train[0].truth.masks, [tree.path(mask)], "{mask}");
            assert_eq!(kinds(&dataset), [] as [&str; 0], "{mask}");
        }
    }

    #[test]
    fn a_class_may_be_called_as_a_folder_of_masks_is() {
        let tree = Tree::new().noise("mask/1.jpg", 40, 40).noise("no_mask/2.jpg", 40, 40);
        assert_eq!(tree.open().unwrap().classes, ["mask", "no_mask"]);
    }

    #[test]
    fn what_is_beside_the_splits_or_the_images_is_left_out_and_told() {
        for tree in [tree().png("docs/figure.png", 4, 4), {
            let inner = Tree::new().png("images/cat/1.png", 4, 4).png("images/dog/2.png", 4, 4);
            inner.png("docs/figure.png", 4, 4)
        }] {
            let dataset = tree.open().unwrap();
            assert_eq!(dataset.classes, ["cat", "dog"]);
            assert!(dataset.notes[0].contains("figure.png"), "{:?}", dataset.notes);
        }
    }
}
