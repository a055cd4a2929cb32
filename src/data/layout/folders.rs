//! One folder per class, in one folder per split; the simplest layout of all.
//!
//! ```text
//! train/<class>/1.png        masks/train/<class>/1.png      optional
//! valid/<class>/2.png        also `val`, `validation`; optional
//! test/<class>/3.png
//! ```
//!
//! Without split folders, `<class>/1.png` and `masks/<class>/1.png`, all images
//! are for training. All of it may lie in `images/`, with `masks/` beside.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use super::{
    Layout, detect,
    draft::{Draft, Entry, Origin},
    path, split_named,
    whole::in_order,
};
use crate::{
    data::{
        Split,
        problem::{Problem, ProblemKind},
    },
    error::Result,
};

/// Folders within class folders are followed this far.
const MAX_DEPTH: usize = 8;
/// What a mask may be called after its image `1.png`: `1.png`, `1_mask.png`, `1_anno.png`.
const MASK_SUFFIXES: [&str; 3] = ["", "_mask", "_anno"];

/// The folder that holds the split or class folders: `path`, or `images/` in it.
pub(super) fn home(path: &Path) -> Option<PathBuf> {
    let holds_classes = |folder: &Path| {
        let has_images =
            |folder: &PathBuf| path::entries(folder).iter().any(|file| path::is_image(file));
        let has_splits = |folder: &Path| {
            split_folders(folder).iter().any(|(_, split)| !path::subfolders(split).is_empty())
        };
        has_splits(folder) || class_folders(folder).iter().any(has_images)
    };
    // `images/` first: taken for a class of its own it would be one class with everything.
    [path.join("images"), path.to_owned()].into_iter().find(|folder| holds_classes(folder))
}

pub(super) fn read(path: &Path) -> Result<Draft> {
    let home = home(path).ok_or_else(|| detect::lacks(path, Layout::Folders))?;
    let mut draft = Draft::new(Layout::Folders, path);
    let mut splits = split_folders(&home);
    if splits.is_empty() {
        splits.push((Split::Train, home.clone()));
    }
    let classes = splits.iter().flat_map(|(_, folder)| class_folders(folder));
    draft.classes = Some(in_order(classes.map(|folder| path::name(&folder))));

    let masks = Some(path.join("masks")).filter(|masks| masks.is_dir());
    let mut reader = Reader { draft, home, masks, used: BTreeSet::new(), others: Vec::new() };
    for (split, folder) in &splits {
        reader.read_split(*split, folder);
    }
    Ok(reader.finish())
}

/// The folders named after splits, in the order of the splits.
fn split_folders(folder: &Path) -> Vec<(Split, PathBuf)> {
    let named = |folder: PathBuf| Some((split_named(&path::name(&folder))?, folder));
    let mut splits: Vec<_> = path::subfolders(folder).into_iter().filter_map(named).collect();
    splits.sort();
    splits
}

fn class_folders(folder: &Path) -> Vec<PathBuf> {
    let mut folders = path::subfolders(folder);
    folders.retain(|folder| path::name(folder) != "masks");
    folders
}

struct Reader {
    draft: Draft,
    home: PathBuf,
    masks: Option<PathBuf>,
    /// Masks that belong to an image.
    used: BTreeSet<PathBuf>,
    /// Files that are not images.
    others: Vec<PathBuf>,
}

impl Reader {
    fn read_split(&mut self, split: Split, folder: &Path) {
        for class_folder in class_folders(folder) {
            let class = path::name(&class_folder);
            for file in files_below(&class_folder) {
                if path::is_image(&file) {
                    self.add(split, &class, file);
                } else {
                    self.others.push(file);
                }
            }
        }
        for image in
            path::entries(folder).iter().filter(|file| file.is_file() && path::is_image(file))
        {
            let text = "image is not in the folder of a class";
            self.draft.problem(Problem::of_file(ProblemKind::UnlabelledImage, image, text));
        }
    }

    fn add(&mut self, split: Split, class: &str, image: PathBuf) {
        let masks = self.mask_of(&image).into_iter().collect();
        let origin = Origin::file(&image);
        let (ignore, boxes) = (None, Vec::new());
        self.draft.add(Entry {
            split,
            class: class.to_owned(),
            image,
            masks,
            ignore,
            boxes,
            origin,
        });
    }

    /// Where the mask is, or should be if there are masks at all.
    fn mask_of(&mut self, image: &Path) -> Option<PathBuf> {
        let below = image.strip_prefix(&self.home).ok()?;
        let folder = self.masks.as_ref()?.join(below.parent()?);
        let stem = image.file_stem()?.to_string_lossy();
        let mut names = MASK_SUFFIXES.iter().map(|suffix| format!("{stem}{suffix}"));
        let mask = names.find_map(|name| self.draft.image_named(&folder, &name));
        self.used.extend(mask.clone());
        Some(mask.unwrap_or_else(|| folder.join(format!("{stem}.png"))))
    }

    fn finish(self) -> Draft {
        let Self { mut draft, masks, used, others, .. } = self;
        for mask in masks.iter().flat_map(|masks| files_below(masks)) {
            if path::is_image(&mask) && !used.contains(&mask) {
                let text = "mask has no image of its name in the same place";
                draft.problem(Problem::of_file(ProblemKind::OrphanMask, &mask, text));
            }
        }
        if let [first, ..] = &others[..] {
            let count = others.len();
            draft.note(format!(
                "left out what is not an image: {count}, the first is `{}`",
                first.display()
            ));
        }
        draft
    }
}

/// All files in `folder` and the folders in it, sorted.
fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    walk(folder, &mut Vec::new(), &mut files);
    files
}

fn walk(folder: &Path, above: &mut Vec<PathBuf>, files: &mut Vec<PathBuf>) {
    // A link back to a folder above would repeat all of its images.
    let Ok(real) = fs::canonicalize(folder) else { return };
    if above.len() >= MAX_DEPTH || above.contains(&real) {
        return;
    }
    above.push(real);
    for entry in path::entries(folder) {
        if entry.is_dir() {
            walk(&entry, above, files);
        } else {
            files.push(entry);
        }
    }
    above.pop();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::layout::tree::{Tree, kinds};

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
        assert_eq!(
            kinds(&dataset),
            ["missing-mask", "missing-mask", "missing-mask", "orphan-mask"]
        );
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
}
