//! Matches masks to images.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use super::{File, Shape, mixed, names};
use crate::data::{
    layout::{
        builder::{Builder, Origin},
        grouped,
    },
    problem::ProblemKind,
};

/// The masks of a dataset of class folders, matched to their images.
#[derive(Debug, Default)]
pub(super) struct Masks {
    /// Mask files by the index of their image.
    pub(super) of_image: BTreeMap<usize, Vec<PathBuf>>,
    /// Pictures of mask folders that no image was found for.
    orphans: Vec<usize>,
    /// Pictures among the images that are masks.
    mixed: BTreeSet<usize>,
    /// Pictures among the images that look like masks and have no image.
    without_image: BTreeSet<usize>,
}

impl Masks {
    /// Finds the images of the pictures in mask folders.
    pub(super) fn in_folders(shape: &Shape, images: &[File], masks: &[File]) -> Self {
        let by_stem = grouped(images.iter().map(|image| image.stem.as_str()).zip(0..));
        let mut found = Self::default();
        for (index, mask) in masks.iter().enumerate() {
            let stems = [Some(mask.stem.as_str()), names::image_stem(&mask.stem)];
            let place = shape.meaning(&mask.folders);
            let image = stems.into_iter().flatten().find_map(|stem| {
                let named = by_stem.get(stem)?;
                let at = |index: &&usize| shape.meaning(&images[**index].folders) == place;
                let around =
                    |index: &&usize| is_part(&place, &shape.meaning(&images[**index].folders));
                let mut near = named.iter().filter(around);
                // Mask folders may have fewer levels, if only one image then fits.
                let only = near.next().filter(|_| near.next().is_none());
                named.iter().find(at).or(only)
            });
            match image {
                Some(image) => {
                    found.of_image.entry(*image).or_default().push(mask.path.clone());
                }
                None => found.orphans.push(index),
            }
        }
        found
    }

    /// Finds masks among the images themselves.
    pub(super) fn add_mixed(&mut self, images: &[File]) {
        let by_folder = grouped(images.iter().map(|image| &image.folders).zip(0..));
        for folder in by_folder.into_values() {
            let (masks, without_image) = mixed::sort(images, &folder);
            for (mask, image) in masks {
                self.mixed.insert(mask);
                self.of_image.entry(image).or_default().push(images[mask].path.clone());
            }
            self.without_image.extend(without_image);
        }
    }

    /// Notes the masks found among the images, and records masks without an image as problems.
    pub(super) fn report(&self, builder: &mut Builder, images: &[File], masks: &[File]) {
        if let Some(first) = self.mixed.first() {
            builder.note(format!(
                "pictures beside their images that are read as masks: {}, the first is `{}`",
                self.mixed.len(),
                images[*first].path.display()
            ));
        }
        for index in &self.without_image {
            let stem = names::image_stem(&images[*index].stem).unwrap_or_default();
            let text =
                format!("looks like a mask, by name and by pixels, but there is no image `{stem}`");
            let image = Origin::file(&images[*index].path);
            builder.problem(&image, ProblemKind::MaskAmongImages, text);
        }
        for index in &self.orphans {
            let text = "mask has no image of its name in the same place";
            let mask = Origin::file(&masks[*index].path);
            builder.problem(&mask, ProblemKind::OrphanMask, text);
        }
    }

    /// Whether a picture among the images is an image, not a mask.
    pub(super) fn is_image(&self, index: usize) -> bool {
        !self.mixed.contains(&index) && !self.without_image.contains(&index)
    }

    /// Where the mask of an image without one is expected; empty if the dataset has no masks.
    pub(super) fn expected(&self, home: &Path, shape: &Shape, image: &File) -> Vec<PathBuf> {
        let name = |end: &str| format!("{}{end}.png", image.stem);
        if !self.mixed.is_empty() {
            return vec![image.path.with_file_name(name("_mask"))];
        }
        let is_near = |folder: &&Vec<String>| {
            folder.split_last().is_some_and(|(_, above)| image.folders.starts_with(above))
        };
        let Some(folder) = shape.mask_folders.iter().find(is_near) else { return Vec::new() };
        let rest = shape.meaning(&image.folders[folder.len() - 1..]);
        let path: PathBuf = folder.iter().map(String::as_str).chain(rest).collect();
        vec![home.join(path).join(name(""))]
    }
}

/// Whether all of `part` is in `whole`, in this order.
fn is_part(part: &[&str], whole: &[&str]) -> bool {
    let mut whole = whole.iter();
    part.iter().all(|name| whole.any(|other| other == name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_keeps_the_order_of_the_whole() {
        let whole = ["train", "cat", "deep"];
        for part in [&[][..], &["cat"], &["train", "deep"], &whole] {
            assert!(is_part(part, &whole));
        }
        for other in [&["dog"][..], &["cat", "train"], &["cat", "cat"]] {
            assert!(!is_part(other, &whole));
        }
    }
}
