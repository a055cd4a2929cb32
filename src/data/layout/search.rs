//! Finds the images of lists that are not beside them.
//!
//! Published folds are handed around without their images, which then lie
//! wherever the user unpacked them, often near by:
//!
//! ```text
//! data/folds/glas/train.csv        names train_1.bmp
//! data/glas/Warwick…/train_1.jpg
//! ```

use std::path::{Path, PathBuf};

use super::path::{self, Files, PathKind};

/// How many folders above the lists are searched: enough for `folds/<name>/split_0/fold_0`.
const LEVELS: usize = 4;
/// How many folders of a folder are searched.
const MAX_SUBFOLDERS: usize = 64;
/// How many of the written paths are tried in each folder.
const PROBES: usize = 16;

/// The folder in which most of the `written` paths exist; `lists` if none does anywhere.
///
/// Searched are `images` if the user gave it, otherwise `lists` and what surrounds it.
pub(super) fn image_root(lists: &Path, images: Option<&Path>, written: &[&str]) -> PathBuf {
    let candidates = match images {
        Some(images) => with_subfolders(images.to_owned()),
        None => around(lists),
    };
    let step = written.len().div_ceil(PROBES).max(1);
    let probes: Vec<&str> = written.iter().copied().step_by(step).collect();
    let mut files = Files::default();
    let mut best = (0, candidates.first().cloned().unwrap_or_else(|| lists.to_owned()));
    for folder in candidates {
        let hits = probes.iter().filter(|path| exists(&mut files, &folder, path)).count();
        if hits > best.0 {
            best = (hits, folder);
        }
        if best.0 == probes.len() {
            break;
        }
    }
    best.1
}

fn exists(files: &mut Files, folder: &Path, written: &str) -> bool {
    let found = path::inside(folder, written).map(|path| files.find(&path));
    matches!(found, Some(PathKind::File(_) | PathKind::OtherExtension(_)))
}

/// `lists`, the folders above it, and in each of those the folders named like one on the way.
fn around(lists: &Path) -> Vec<PathBuf> {
    let mut folders = vec![lists.to_owned()];
    let mut names = vec![path::name(lists)];
    for above in lists.ancestors().skip(1).take(LEVELS) {
        folders.push(above.to_owned());
        for name in &names {
            for place in ["", "data", "dataset"] {
                let folder: PathBuf = above.join(place).join(name).components().collect();
                if folder.is_dir() && !lists.starts_with(&folder) {
                    folders.extend(with_subfolders(folder));
                }
            }
        }
        names.push(path::name(above));
    }
    folders
}

fn with_subfolders(folder: PathBuf) -> Vec<PathBuf> {
    let below = path::subfolders(&folder).into_iter().take(MAX_SUBFOLDERS);
    std::iter::once(folder.clone()).chain(below).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::layout::tree::Tree;

    #[test]
    fn images_are_found_beside_the_lists_before_anywhere_else() {
        let tree = Tree::new().png("folds/glas/a.png", 1, 1).png("glas/a.png", 1, 1);
        let lists = tree.path("folds/glas");
        assert_eq!(image_root(&lists, None, &["a.png"]), lists);
    }

    #[test]
    fn images_are_found_in_the_namesake_of_a_folder_above() {
        let tree = Tree::new().png("glas/Warwick/a.jpg", 1, 1).folder("folds/glas/split_0/fold_0");
        for lists in ["folds/glas", "folds/glas/split_0/fold_0"] {
            let root = image_root(&tree.path(lists), None, &["a.bmp"]);
            assert_eq!(root, tree.path("glas/Warwick"), "{lists}");
        }
    }

    #[test]
    fn the_users_word_is_final() {
        let tree = Tree::new().png("lists/a.png", 1, 1).folder("empty");
        let (lists, empty) = (tree.path("lists"), tree.path("empty"));
        assert_eq!(image_root(&lists, Some(&empty), &["a.png"]), empty);
    }

    #[test]
    fn lists_whose_images_are_nowhere_keep_their_own_folder() {
        let tree = Tree::new().folder("lists");
        assert_eq!(image_root(&tree.path("lists"), None, &["a.png"]), tree.path("lists"));
    }
}
