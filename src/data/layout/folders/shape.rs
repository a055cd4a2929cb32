//! What the folders of a dataset are: splits, classes, folders of masks.

use std::collections::BTreeSet;

use super::{File, names};
use crate::data::{
    Split,
    layout::{grouped, split_named},
};

/// What the folders of a dataset are.
#[derive(Debug)]
pub(super) struct Shape {
    /// Folders whose pictures are masks, each as the names of the folders that lead to it.
    pub(super) mask_folders: BTreeSet<Vec<String>>,
    /// The folder that all images are in, if there is one for them.
    images_folder: Option<String>,
    has_splits: bool,
}

impl Shape {
    pub(super) fn of(pictures: &[File]) -> Self {
        let mut shape =
            Self { mask_folders: mask_folders(pictures), images_folder: None, has_splits: false };
        let images = || pictures.iter().filter(|file| !shape.holds_masks(&file.folders));
        // `images/` first: folders beside it are not part of the dataset.
        let is_in_images_folder = |file: &&File| {
            file.folders.first().is_some_and(|name| names::says_images(name))
                && !shape.meaning(&file.folders).is_empty()
        };
        let images_folder = images().find(is_in_images_folder).map(|file| file.folders[0].clone());
        let is_in_split = |file: &File| match shape.meaning(&file.folders)[..] {
            [split, _, ..] => split_named(split).is_some(),
            _ => false,
        };
        let has_splits = images().any(is_in_split);
        (shape.images_folder, shape.has_splits) = (images_folder, has_splits);
        shape
    }

    /// Whether the pictures of a folder are masks of others.
    pub(super) fn holds_masks(&self, folders: &[String]) -> bool {
        (1..=folders.len()).any(|depth| self.mask_folders.contains(&folders[..depth]))
    }

    /// The folders without those, such as `images/`, that only say that images or masks are in
    /// them.
    pub(super) fn meaning<'a>(&self, folders: &'a [String]) -> Vec<&'a str> {
        let mut within_masks = false;
        let mut meaning = Vec::new();
        for (depth, name) in folders.iter().enumerate() {
            within_masks |= self.mask_folders.contains(&folders[..=depth]);
            let is_bare = names::says_images(name) || within_masks && names::may_hold_masks(name);
            if !is_bare {
                meaning.push(name.as_str());
            }
        }
        meaning
    }

    /// The split of the images in a folder, and their class if it is known; `None` if the folder is
    /// not part of the dataset.
    pub(super) fn place<'a>(&self, folders: &'a [String]) -> Option<(Split, Option<&'a str>)> {
        if self.holds_masks(folders)
            || self.images_folder.as_ref().is_some_and(|name| folders.first() != Some(name))
        {
            return None;
        }
        let meaning = self.meaning(folders);
        if !self.has_splits {
            return Some((Split::Train, meaning.first().copied()));
        }
        let split = meaning.first().and_then(|name| split_named(name))?;
        Some((split, meaning.get(1).copied()))
    }

    /// Whether a file is an image right in the folder of a class.
    pub(super) fn is_in_class_folder(&self, file: &File) -> bool {
        matches!(self.place(&file.folders), Some((_, Some(_))))
            && (self.has_splits || self.meaning(&file.folders).len() == 1)
    }
}

/// The folders that are named after masks and hold masks of images elsewhere.
fn mask_folders(pictures: &[File]) -> BTreeSet<Vec<String>> {
    let depth = |file: &File| file.folders.iter().position(|name| names::may_hold_masks(name));
    let candidates =
        pictures.iter().filter_map(|file| Some((&file.folders[..=depth(file)?], file)));
    let elsewhere = pictures.iter().filter(|file| depth(file).is_none());
    let stems: BTreeSet<&str> = elsewhere.map(|file| file.stem.as_str()).collect();
    let belongs = |file: &&File| {
        stems.contains(file.stem.as_str())
            || names::image_stem(&file.stem).is_some_and(|stem| stems.contains(stem))
    };
    let is_of_masks = |(folders, files): &(&[String], Vec<&File>)| {
        // A folder of this name holds masks, whatever their names.
        folders.last().is_some_and(|name| name == "masks") || files.iter().any(belongs)
    };
    grouped(candidates)
        .into_iter()
        .filter(is_of_masks)
        .map(|(folders, _)| folders.to_vec())
        .collect()
}
