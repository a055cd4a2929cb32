//! Masks that are in the class folders, beside their images.
//!
//! ```text
//! benign/1.png  1_mask.png  1_mask_1.png     by name
//! cat/1.jpg     1.png                        by name and, since photos are named so too, by pixels
//! ```

use std::{collections::BTreeSet, path::Path};

use super::{File, names};
use crate::data::{image, layout::grouped};

/// Finds the masks among the pictures of one folder.
///
/// Gives the masks, each with the image that it belongs to, and the pictures that look like masks
/// by name and content but have no image.
pub(super) fn sort(pictures: &[File], folder: &[usize]) -> (Vec<(usize, usize)>, Vec<usize>) {
    let by_stem = grouped(folder.iter().map(|&index| (pictures[index].stem.as_str(), index)));
    let partner = |stem: Option<&str>| stem.and_then(|stem| by_stem.get(stem)).map(|of| of[0]);
    let (mut named, mut doubtful, mut without_image) = (Vec::new(), Vec::new(), Vec::new());
    for &index in folder {
        let stem = &pictures[index].stem;
        if let Some(image) = partner(names::image_stem(stem)) {
            named.push((index, image));
        } else if let Some(image) = partner(names::doubtful_image_stem(stem)) {
            doubtful.push((index, image));
        } else if names::ends_like_mask(stem) {
            without_image.push(index);
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
    // Pairs of the same extensions are likely to be alike.
    let ends = |(mask, image)| [mask, image].map(|index: usize| pictures[index].path.extension());
    for pairs in grouped(doubtful.into_iter().map(|pair| (ends(pair), pair))).into_values() {
        masks.extend(those_that(&pairs, is_pair));
    }
    let without_image = those_that(&without_image, |&index| is_drawn(index));

    // A picture that is a mask is not an image of another mask.
    let of: BTreeSet<usize> = masks.iter().map(|(mask, _)| *mask).collect();
    masks.retain(|(_, image)| !of.contains(image));
    masks.sort_unstable();
    masks.dedup_by_key(|(mask, _)| *mask);
    (masks, without_image)
}

/// A picture of at most this many colours was drawn, not taken.
const FEW_COLOURS: usize = 32;
/// Channels that differ by no more than this are grey, also after JPEG.
const GREY_SPREAD: u8 = 24;
/// Levels of grey that are taken for one, since JPEG and smooth borders blur them.
const LEVELS: usize = 16;
/// Share of the pixels that two levels must have between them.
const TWO_LEVELS: f64 = 0.97;
/// Larger pictures are not decoded to find out what they are.
const MAX_MEGAPIXELS: u32 = 50;
/// Files of a kind that are decoded; if they agree, all of the kind are taken to be alike.
const SAMPLE: usize = 6;

/// What a picture looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Content {
    /// Few colours, or two levels of grey: what masks look like.
    Drawn,
    /// Many levels of grey: an X-ray or an ultrasound image, but also a soft mask.
    Grey,
    /// Many colours.
    Photo,
}

impl Content {
    /// What a file looks like; nothing if it cannot be read.
    fn of_file(path: &Path) -> Option<Self> {
        let pixels = image::read_rgb(path, MAX_MEGAPIXELS).ok()?;
        let mut colours = BTreeSet::new();
        let (mut levels, mut colourful) = ([0_usize; 256 / LEVELS], 0_usize);
        let total = pixels.len() / 3;
        for pixel in pixels.pixels() {
            if colours.len() <= FEW_COLOURS {
                colours.insert(pixel.0);
            }
            let [low, high] = [pixel.0.iter().min()?, pixel.0.iter().max()?];
            colourful += usize::from(high - low > GREY_SPREAD);
            levels[usize::from(*high) / LEVELS] += 1;
        }
        if colours.len() <= FEW_COLOURS {
            return Some(Self::Drawn);
        }
        if colourful as f64 > (1.0 - TWO_LEVELS) * total as f64 {
            return Some(Self::Photo);
        }
        levels.sort_unstable();
        let most = levels[levels.len() - 2..].iter().sum::<usize>() as f64;
        Some(if most >= TWO_LEVELS * total as f64 { Self::Drawn } else { Self::Grey })
    }
}

/// The `items` for which `holds` is true: some are tested, and all of them if those disagree.
///
/// A file that cannot be read counts as true, since it was chosen by its name.
fn those_that<T: Copy>(items: &[T], holds: impl Fn(&T) -> Option<bool>) -> Vec<T> {
    let step = items.len().div_ceil(SAMPLE).max(1);
    let tried: Vec<bool> = items.iter().step_by(step).filter_map(&holds).collect();
    match tried.first() {
        Some(first) if tried.iter().any(|other| other != first) => {
            items.iter().copied().filter(|item| holds(item).unwrap_or(true)).collect()
        }
        Some(false) => Vec::new(),
        _ => items.to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use ::image::{GrayImage, Luma, Rgb, RgbImage};

    use super::*;

    #[test]
    fn drawn_grey_and_taken_pictures_are_told_apart() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.png");
        let content = || Content::of_file(&path);
        GrayImage::from_fn(64, 64, |x, _| Luma([if x < 20 { 255 } else { 0 }]))
            .save(&path)
            .unwrap();
        assert_eq!(content(), Some(Content::Drawn));
        GrayImage::from_fn(64, 64, |x, y| Luma([(x * 4) as u8 ^ y as u8])).save(&path).unwrap();
        assert_eq!(content(), Some(Content::Grey));
        RgbImage::from_fn(64, 64, |x, y| Rgb([x as u8 * 4, y as u8 * 4, 9])).save(&path).unwrap();
        assert_eq!(content(), Some(Content::Photo));
        assert_eq!(Content::of_file(&folder.path().join("gone.png")), None);
    }

    #[test]
    fn a_mask_saved_as_jpeg_still_looks_drawn() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.jpg");
        let disk = |x: u32, y: u32| x.abs_diff(60).pow(2) + y.abs_diff(60).pow(2) < 900;
        GrayImage::from_fn(128, 128, |x, y| Luma([if disk(x, y) { 255 } else { 0 }]))
            .save(&path)
            .unwrap();
        assert_eq!(Content::of_file(&path), Some(Content::Drawn));
    }

    #[test]
    fn a_sample_decides_for_all_unless_it_disagrees() {
        let numbers: Vec<usize> = (0..100).collect();
        let tried = std::cell::Cell::new(0);
        let counted = |holds: bool| {
            tried.set(tried.get() + 1);
            Some(holds)
        };
        assert_eq!(those_that(&numbers, |_| counted(true)), numbers);
        assert!(tried.get() <= SAMPLE);
        let odd = those_that(&numbers, |number| Some(number % 2 == 1));
        assert_eq!(odd.len(), 50);
        let late = those_that(&numbers, |number| Some(*number >= 50));
        assert_eq!(late, numbers[50..]);
    }
}
