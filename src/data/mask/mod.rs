//! Decoding of ground-truth masks.
//!
//! Files differ in what marks the object: 1, 255, an instance's number, a palette's entry, a share
//! of votes, anything but blue. A [`MaskRule`] says how files are read; a [`Mask`] always means the
//! same. See `docs/data.md`.

mod outline;
mod pixel_label;

use std::{collections::BTreeSet, path::Path};

pub use outline::{Outline, Outlines, Shape};
use pixel_label::PixelLabel;
use serde::{Deserialize, Serialize};

use super::Truth;
use crate::error::Result;

/// What counts as foreground in a mask file.
///
/// Alpha never counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MaskRule {
    /// Everything but 0: binary masks, instance ids, palette indices.
    ///
    /// In colour, one channel above 0 is enough. In a palette (PNG, BMP) the index
    /// decides, not its colour. JPEG and lossy WebP blur 0 into small numbers, so
    /// there a channel must exceed half of the range.
    NonZero,
    /// Grey is the share of annotators who marked the pixel; a majority decides (> 127.5).
    ///
    /// In colour, the mean of the channels is taken; in a palette, its colours.
    Votes,
    /// Everything far enough from Oxford's blue background.
    NotBlue,
    /// Everything but 0, as Pascal VOC has it: 255 is undecided and therefore not scored.
    Void255,
    /// 1 is foreground, 2 background, 3 undecided and therefore not scored.
    ///
    /// Any other number is an error, 0 included: such a file is not a trimap of this
    /// kind, and would be misread.
    Trimap,
}

/// Ground truth of one image: 1 is foreground, 0 background.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mask {
    /// Width in pixels, equal to the image's.
    pub width: u32,
    /// Height in pixels, equal to the image's.
    pub height: u32,
    /// Row by row, `true` where the object is.
    pub foreground: Vec<bool>,
    /// Row by row, `true` where the truth is undecided; such pixels are not scored.
    ///
    /// Never `true` where the object is; `None` if every pixel is scored.
    pub ignored: Option<Vec<bool>>,
}

impl Mask {
    /// Whether the truth is undecided at a pixel.
    pub fn is_ignored(&self, at: usize) -> bool {
        self.ignored.as_ref().is_some_and(|ignored| ignored[at])
    }

    /// Share of the scored pixels that are foreground; 0 if none is scored.
    pub fn foreground_fraction(&self) -> f64 {
        let count = |flags: &[bool]| flags.iter().filter(|&&flag| flag).count();
        let scored = self.foreground.len() - self.ignored.as_deref().map_or(0, count);
        if scored == 0 { 0.0 } else { count(&self.foreground) as f64 / scored as f64 }
    }
}

/// Reads what `truth` says about an image of `size` (width, height), if it has masks or outlines.
///
/// The foreground is the union of all masks and outlines. Foreground pixels are scored even if a
/// trimap or the ignore file marks them as undecided, as in wsolevaluation. Masks are rotated by
/// their own EXIF orientation, never by that of their image.
pub fn read(
    truth: &Truth,
    rule: MaskRule,
    size: (u32, u32),
    max_megapixels: u32,
) -> Result<Option<Mask>> {
    if !truth.has_mask() {
        return Ok(None);
    }
    let pixels = size.0 as usize * size.1 as usize;
    let (mut foreground, mut ignored) = (vec![false; pixels], vec![false; pixels]);
    for path in &truth.masks {
        for (i, pixel_label) in
            pixel_label::read(path, rule, size, max_megapixels)?.into_iter().enumerate()
        {
            foreground[i] |= pixel_label == PixelLabel::Foreground;
            ignored[i] |= pixel_label == PixelLabel::Undecided;
        }
    }
    if let Some(outlines) = &truth.outlines {
        outlines.draw(size, &mut foreground, &mut ignored)?;
    }
    if let Some(path) = &truth.ignore {
        let marks = pixel_label::read(path, MaskRule::NonZero, size, max_megapixels)?;
        for (ignored, mark) in ignored.iter_mut().zip(marks) {
            *ignored |= mark == PixelLabel::Foreground;
        }
    }
    for (ignored, foreground) in ignored.iter_mut().zip(&foreground) {
        *ignored &= !foreground;
    }
    let ignored = ignored.contains(&true).then_some(ignored);
    Ok(Some(Mask { width: size.0, height: size.1, foreground, ignored }))
}

/// Mask files that are read to guess the rule of all.
const SAMPLE: usize = 8;

/// Whether mask files hold the numbers of a trimap and no others, by some of them.
pub(crate) fn are_trimaps(masks: &[&Path], max_megapixels: u32) -> bool {
    let read = sample(masks).map(|path| pixel_label::trimap_numbers(path, max_megapixels));
    let Some(numbers) = read.collect::<Option<Vec<BTreeSet<u32>>>>() else { return false };
    let seen: BTreeSet<u32> = numbers.into_iter().flatten().collect();
    // Without background they are ordinary masks that cover everything.
    seen.contains(&1) && seen.contains(&2)
}

/// Whether mask files hold shades between black and white, as soft edges and shares of votes are,
/// judged by some of them.
///
/// Shades of both halves must be there: numbers of classes or instances are small.
pub(crate) fn have_shades(masks: &[&Path], max_megapixels: u32) -> bool {
    let levels = sample(masks).filter_map(|path| pixel_label::grey_levels(path, max_megapixels));
    let seen: BTreeSet<u32> = levels.flatten().collect();
    let within = |range: std::ops::Range<u32>| seen.range(range).next().is_some();
    seen.contains(&0) && seen.contains(&255) && within(1..128) && within(128..255)
}

/// Some of the files, evenly spread.
fn sample<'a>(masks: &'a [&Path]) -> impl Iterator<Item = &'a Path> {
    masks.iter().copied().step_by(masks.len().div_ceil(SAMPLE).max(1))
}

#[cfg(test)]
mod tests;
