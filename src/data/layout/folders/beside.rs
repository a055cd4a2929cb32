//! Masks among the images of a class folder, side by side with what they are masks of.
//!
//! ```text
//! benign/1.png  1_mask.png  1_mask_1.png     by name
//! cat/1.jpg     1.png                        by name and, since photos are named so too, by pixels
//! ```

use std::collections::{BTreeMap, BTreeSet};

use super::{
    File,
    content::{Content, those_that},
    names,
};

/// What the pictures of one folder are.
#[derive(Debug, Default)]
pub(super) struct Sorted {
    /// Masks, with the image that each belongs to: indices into the pictures.
    pub(super) masks: Vec<(usize, usize)>,
    /// Pictures that look like masks in every way but have no image.
    pub(super) lonely: Vec<usize>,
}

/// Tells masks from images among the pictures of one folder.
pub(super) fn sort(pictures: &[&File]) -> Sorted {
    let mut by_stem: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (index, file) in pictures.iter().enumerate() {
        by_stem.entry(&file.stem).or_default().push(index);
    }
    let partner = |stem: Option<&str>| stem.and_then(|stem| by_stem.get(stem)).map(|of| of[0]);
    let (mut named, mut doubtful, mut lonely) = (Vec::new(), Vec::new(), Vec::new());
    for (index, file) in pictures.iter().enumerate() {
        if let Some(image) = partner(names::image_stem(&file.stem)) {
            named.push((index, image));
        } else if let Some(image) = partner(names::doubtful_image_stem(&file.stem)) {
            doubtful.push((index, image));
        } else if names::ends_like_mask(&file.stem) {
            lonely.push(index);
        }
    }
    for same in by_stem.values().filter(|same| same.len() > 1) {
        doubtful.extend(same.iter().flat_map(|&a| same.iter().map(move |&b| (a, b))));
    }
    doubtful.retain(|(mask, image)| mask != image);

    let content = |index: usize| Content::of_file(&pictures[index].path);
    // `person_mask.jpg` beside `person.jpg` may show the person with a mask on.
    let is_mask = |&(mask, _): &(usize, usize)| Some(content(mask)? != Content::Photo);
    let mut masks = those_that(&named, is_mask);
    let is_drawn = |index: usize| content(index).map(|found| found == Content::Drawn);
    let is_pair = |&(mask, image): &(usize, usize)| {
        Some(is_drawn(mask).unwrap_or(false) && !is_drawn(image).unwrap_or(true))
    };
    for pairs in by_extensions(pictures, &doubtful) {
        masks.extend(those_that(&pairs, is_pair));
    }
    let lonely = those_that(&lonely, |&index| is_drawn(index));

    // What is an image's mask is nobody's image.
    let of: BTreeSet<usize> = masks.iter().map(|(mask, _)| *mask).collect();
    masks.retain(|(_, image)| !of.contains(image));
    masks.sort_unstable();
    masks.dedup_by_key(|(mask, _)| *mask);
    Sorted { masks, lonely }
}

/// Pairs of files in groups that are likely to be alike.
fn by_extensions(pictures: &[&File], pairs: &[(usize, usize)]) -> Vec<Vec<(usize, usize)>> {
    let mut groups: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for &(mask, image) in pairs {
        let [mask_end, image_end] = [mask, image].map(|index| pictures[index].path.extension());
        groups.entry((mask_end, image_end)).or_default().push((mask, image));
    }
    groups.into_values().collect()
}
