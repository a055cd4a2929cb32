//! Checks of a dataset, which report all problems at once.
//!
//! [`Dataset::open`] finds the problems of lists and file names. [`inspect`] decodes every image
//! and mask as well, and [`Summary`] is shown to the user.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use ::image::DynamicImage;
use rayon::prelude::*;
use serde::Serialize;

use super::{
    Dataset, Layout, MaskRule, Sample, Split, image, mask,
    preprocess::MIN_SIDE,
    problem::{self, Problem, ProblemGroup, ProblemKind},
    split::FoldPlan,
};
use crate::{digest::Digest, error::Error};

/// The result of decoding a dataset.
#[derive(Debug)]
pub struct Inspection {
    /// Width and height of each readable image, in the order of the samples.
    pub sizes: Vec<(u32, u32)>,
    /// Share of foreground in each readable mask, in the order of the samples.
    pub foreground: Vec<f64>,
    /// All problems: those found on opening, then those of pixels.
    pub problems: Vec<Problem>,
    /// What is unusual, but no problem.
    pub notes: Vec<String>,
}

/// Counts, problems and notes of a dataset.
#[derive(Debug, Serialize)]
pub struct Summary {
    /// How it was read.
    pub layout: Layout,
    /// What each split that has images holds.
    pub splits: BTreeMap<Split, SplitSummary>,
    /// What is wrong, by kind.
    pub problems: Vec<ProblemGroup>,
    /// How it was read, where that is not obvious.
    pub notes: Vec<String>,
}

/// What one split holds.
#[derive(Debug, Serialize)]
pub struct SplitSummary {
    /// Images that exist.
    pub images: usize,
    /// Images that have a mask.
    pub masks: usize,
    /// Images of each class.
    pub classes: BTreeMap<String, usize>,
}

/// The result of decoding one sample.
struct Decoded<'a> {
    split: Split,
    sample: &'a Sample,
    size: Option<(u32, u32)>,
    foreground: Option<f64>,
    /// Equal for equal pixels.
    fingerprint: Option<String>,
    /// Whether it has 16 bits, of which the upper two are unused.
    is_dim: bool,
    problems: Vec<Problem>,
}

/// Decodes every image and mask, in parallel; the outcome is in the order of the samples.
///
/// Calls `progress` once per sample, from any thread.
pub fn inspect(dataset: &Dataset, max_megapixels: u32, progress: impl Fn() + Sync) -> Inspection {
    let samples: Vec<(Split, &Sample)> = dataset.samples().collect();
    let samples: Vec<Decoded<'_>> = samples
        .into_par_iter()
        .map(|(split, sample)| {
            let decoded = Decoded::read(split, sample, dataset.mask_rule, max_megapixels);
            progress();
            decoded
        })
        .collect();
    let mut problems = dataset.problems.clone();
    let objectless = classes_without_object(&samples);
    for Decoded { sample, problems: found, .. } in &samples {
        let is_meant = |problem: &&Problem| {
            problem.kind != ProblemKind::EmptyMask || !objectless.contains(&sample.label)
        };
        problems.extend(found.iter().filter(is_meant).cloned());
    }
    problems.extend(repeated_images(&samples));
    let dim: Vec<&Path> = samples
        .iter()
        .filter(|decoded| decoded.is_dim)
        .map(|decoded| decoded.sample.image.as_path())
        .collect();
    let dim_note = dim.first().map(|first| {
        format!(
            "{} of the images have 16 bits and use less than a quarter of their range, such as \
             `{}`: they are seen nearly black, so scale their values (of 12 bits, by 16)",
            dim.len(),
            first.display()
        )
    });
    let note = |label: &usize| {
        format!(
            "the masks of class `{}` are all empty, as of images without an object: a map that \
             marks nothing is right there",
            dataset.classes[*label]
        )
    };
    Inspection {
        sizes: samples.iter().filter_map(|decoded| decoded.size).collect(),
        foreground: samples.iter().filter_map(|decoded| decoded.foreground).collect(),
        problems,
        notes: objectless.iter().map(note).chain(dim_note).collect(),
    }
}

/// The highest value of an image of 16 bits without transparency.
fn highest_of_16_bits(image: &DynamicImage) -> Option<u16> {
    match image {
        DynamicImage::ImageLuma16(grey) => grey.as_raw().iter().copied().max(),
        DynamicImage::ImageRgb16(colours) => colours.as_raw().iter().copied().max(),
        _ => None,
    }
}

/// Classes whose masks are all empty, while those of others are not.
///
/// Such a class stands for the absence of an object, as `normal` beside `benign` and
/// `malignant`; where all masks are empty, the rule by which they are read is wrong.
fn classes_without_object(samples: &[Decoded<'_>]) -> BTreeSet<usize> {
    let [mut with, mut without] = [const { BTreeSet::new() }; 2];
    for Decoded { sample, foreground, .. } in samples {
        if let Some(foreground) = *foreground {
            let set = if foreground > 0.0 { &mut with } else { &mut without };
            set.insert(sample.label);
        }
    }
    if with.is_empty() { BTreeSet::new() } else { without.difference(&with).copied().collect() }
}

impl<'a> Decoded<'a> {
    fn read(split: Split, sample: &'a Sample, rule: MaskRule, max_megapixels: u32) -> Self {
        let (size, foreground, fingerprint, is_dim) = (None, None, None, false);
        let mut decoded =
            Self { split, sample, size, foreground, fingerprint, is_dim, problems: Vec::new() };
        let outcome = decoded
            .read_image(max_megapixels)
            .and_then(|size| decoded.read_mask(rule, size, max_megapixels));
        decoded.problems.extend(outcome.err());
        decoded
    }

    fn read_image(&mut self, max_megapixels: u32) -> Result<(u32, u32), Problem> {
        let path = &self.sample.image;
        let unreadable = |error| unreadable(ProblemKind::UnreadableImage, path, error);
        let (width, height) = image::read_size(path, u32::MAX).map_err(unreadable)?;
        if u64::from(width) * u64::from(height) > u64::from(max_megapixels) * 1_000_000 {
            let text =
                format!("image is {width}×{height}, over the limit of {max_megapixels} megapixels");
            return Err(Problem::of_file(ProblemKind::ImageTooLarge, path, text));
        }
        let image = image::read(path, max_megapixels).map_err(unreadable)?;
        self.is_dim = highest_of_16_bits(&image).is_some_and(|highest| highest < 1 << 14);
        let pixels = image.into_rgb8();
        if width.min(height) < MIN_SIDE {
            let text = format!("image is only {width}×{height}");
            self.problems.push(Problem::of_file(ProblemKind::ImageTooSmall, path, text));
        }
        let mut digest = Digest::default();
        digest.add(&pixels.width().to_le_bytes());
        digest.add(pixels.as_raw());
        self.fingerprint = Some(digest.hex());
        self.size = Some(pixels.dimensions());
        Ok(pixels.dimensions())
    }

    fn read_mask(
        &mut self,
        rule: MaskRule,
        size: (u32, u32),
        max_megapixels: u32,
    ) -> Result<(), Problem> {
        let Sample { image, truth, .. } = self.sample;
        let unreadable = |path| move |error| unreadable(ProblemKind::UnreadableMask, path, error);
        for path in truth.masks.iter().chain(&truth.ignore) {
            let of_mask = image::read_size(path, max_megapixels).map_err(unreadable(path))?;
            if of_mask != size {
                let ((width, height), (of_image, by)) = (of_mask, size);
                let text = format!("mask is {width}×{height} but its image is {of_image}×{by}");
                return Err(Problem::of_file(ProblemKind::MaskSize, path, text));
            }
        }
        let first = truth.masks.first().unwrap_or(image);
        let read = mask::read(truth, rule, size, max_megapixels).map_err(unreadable(first))?;
        let Some(mask) = read else { return Ok(()) };
        let fraction = mask.foreground_fraction();
        self.foreground = Some(fraction);
        let (kind, text) = match fraction {
            0.0 => (ProblemKind::EmptyMask, "mask is empty"),
            1.0 => (ProblemKind::FullMask, "mask covers the whole image"),
            _ => return Ok(()),
        };
        Err(Problem::of_file(kind, first, text))
    }
}

/// A problem with the reason of an error; the problem itself says where, and what to do.
fn unreadable(kind: ProblemKind, path: &Path, error: Error) -> Problem {
    let reason = match error {
        Error::Image { problem, .. } => problem,
        Error::File { action, source, .. } => format!("cannot {action} it ({source})"),
        other => other.to_string(),
    };
    Problem::of_file(kind, path, reason)
}

/// Images with the same pixels as an earlier one.
fn repeated_images(samples: &[Decoded<'_>]) -> Vec<Problem> {
    let mut first_of: BTreeMap<&str, (Split, &Sample)> = BTreeMap::new();
    let mut problems = Vec::new();
    for Decoded { split, sample, fingerprint, .. } in samples {
        let Some(fingerprint) = fingerprint else { continue };
        let Some((first_split, first)) = first_of.get(fingerprint.as_str()) else {
            first_of.insert(fingerprint, (*split, sample));
            continue;
        };
        let kind = if first_split == split {
            ProblemKind::DuplicateImage
        } else {
            ProblemKind::SharedImage
        };
        let text = format!(
            "image of `{split}` has the same pixels as `{}` of `{first_split}`",
            first.image.display()
        );
        problems.push(Problem::of_file(kind, &sample.image, text));
    }
    problems
}

impl Inspection {
    /// The summary of the inspected dataset for the user.
    pub fn summarize(&self, dataset: &Dataset) -> Summary {
        let summary = |split: Split| {
            let samples = dataset.split(split);
            let summary = SplitSummary {
                images: samples.len(),
                masks: samples.iter().filter(|sample| sample.truth.has_mask()).count(),
                classes: dataset.classes.iter().cloned().zip(dataset.class_counts(split)).collect(),
            };
            (split, summary)
        };
        let splits = Split::ALL.map(summary).into_iter().filter(|(_, split)| split.images > 0);
        let mut notes = [&dataset.notes[..], &self.notes[..]].concat();
        notes.extend(without_validation(dataset));
        notes.extend(without_test(dataset));
        let problems = problem::group(&self.problems);
        Summary { layout: dataset.layout, splits: splits.collect(), problems, notes }
    }
}

/// A note on what cannot be done without a test split.
fn without_test(dataset: &Dataset) -> Option<String> {
    (!dataset.train.is_empty() && dataset.test.is_empty())
        .then(|| "no `test` split: there is nothing to evaluate a run on yet".to_owned())
}

/// A note on what training does without a validation split.
fn without_validation(dataset: &Dataset) -> Option<String> {
    if dataset.train.is_empty() || !dataset.valid.is_empty() {
        return None;
    }
    let plan = FoldPlan::default();
    let counts = dataset.class_counts(Split::Train);
    let cut: usize = counts.iter().map(|&count| plan.valid_count(count)).sum();
    Some(format!(
        "no `valid` split: methods that choose an epoch by one set aside {} % of each class of \
         `train`, {cut} of {} images; the probe learns from all of them",
        100.0 * plan.fraction,
        dataset.train.len()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::layout::tree::Tree;

    fn found(tree: &Tree) -> (Inspection, Vec<String>) {
        let dataset = tree.open().unwrap();
        let inspection = inspect(&dataset, 1, || ());
        let kinds = inspection.problems.iter().map(|problem| problem.kind.to_string()).collect();
        (inspection, kinds)
    }

    fn tree() -> Tree {
        Tree::new().png("a/1.png", 40, 32).png("b/2.png", 32, 33)
    }

    #[test]
    fn a_sound_dataset_has_sizes_fractions_and_no_problems() {
        let tree = tree().mask("masks/a/1.png", 40, 32).mask("masks/b/2.png", 32, 33);
        let (inspection, kinds) = found(&tree);
        assert_eq!(kinds, [] as [&str; 0]);
        assert_eq!(inspection.sizes, [(40, 32), (32, 33)]);
        assert_eq!(inspection.foreground, [0.5, 0.5]);
    }

    #[test]
    fn images_that_cannot_be_used_are_told_apart() {
        let tree = tree()
            .png("a/huge.png", 1001, 1000)
            .png("a/one.png", 1, 1)
            .text("b/broken.png", "no image")
            .bytes("b/empty.jpg", b"");
        let (_, kinds) = found(&tree);
        let expected =
            ["image-too-large", "image-too-small", "unreadable-image", "unreadable-image"];
        assert_eq!(kinds, expected);
    }

    #[test]
    fn a_truncated_image_is_unreadable() {
        let tree = tree().png("a/cut.png", 64, 64);
        let bytes = std::fs::read(tree.path("a/cut.png")).unwrap();
        let (_, kinds) = found(&tree.bytes("a/cut.png", &bytes[..bytes.len() / 2]));
        assert_eq!(kinds, ["unreadable-image"]);
    }

    #[test]
    fn masks_that_cannot_be_meant_are_told_apart() {
        let tree = tree()
            .png("b/3.png", 34, 34)
            .png("b/4.png", 35, 35)
            .mask("masks/a/1.png", 41, 32)
            .text("masks/b/2.png", "no image")
            .grey("masks/b/3.png", 34, 34, 0)
            .grey("masks/b/4.png", 35, 35, 1);
        let (_, kinds) = found(&tree);
        assert_eq!(kinds, ["mask-size", "unreadable-mask", "empty-mask", "full-mask"]);
    }

    #[test]
    fn a_class_of_images_without_an_object_has_empty_masks() {
        let tree = tree()
            .mask("masks/a/1.png", 40, 32)
            .grey("masks/b/2.png", 32, 33, 0)
            .png("b/3.png", 34, 34)
            .grey("masks/b/3.png", 34, 34, 0);
        let (inspection, kinds) = found(&tree);
        assert_eq!(kinds, [] as [&str; 0]);
        assert!(inspection.notes[0].contains("class `b`"), "{:?}", inspection.notes);
        // One object in the class, and the others are missing theirs.
        let (_, kinds) = found(&tree.mask("masks/b/3.png", 34, 34));
        assert_eq!(kinds, ["empty-mask"]);
    }

    #[test]
    fn where_all_masks_are_empty_they_are_misread() {
        let tree = tree().grey("masks/a/1.png", 40, 32, 0).grey("masks/b/2.png", 32, 33, 0);
        assert_eq!(found(&tree).1, ["empty-mask", "empty-mask"]);
    }

    #[test]
    fn copies_under_another_name_are_found() {
        let tree = Tree::new().png("train/a/1.png", 40, 40).png("train/b/2.png", 40, 40);
        let bytes = std::fs::read(tree.path("train/a/1.png")).unwrap();
        let tree = tree.bytes("train/a/copy.png", &bytes).bytes("test/a/copy.png", &bytes);
        assert_eq!(found(&tree).1, ["duplicate-image", "shared-image"]);
    }

    #[test]
    fn the_outcome_does_not_depend_on_the_number_of_threads() {
        let mut tree = tree();
        for name in 0..20 {
            tree = tree.text(&format!("a/bad{name:02}.png"), "no image");
        }
        let dataset = tree.open().unwrap();
        let with_threads = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| inspect(&dataset, 1, || ()).problems)
        };
        assert_eq!(with_threads(1), with_threads(7));
    }

    #[test]
    fn a_summary_leaves_out_splits_without_images() {
        let dataset = tree().open().unwrap();
        let summary = inspect(&dataset, 1, || ()).summarize(&dataset);
        let json = serde_json::to_value(&summary).unwrap();
        assert_eq!(json["layout"], "folders");
        assert_eq!(json["splits"]["train"]["classes"]["b"], 1);
        assert_eq!(json["splits"]["train"]["masks"], 0);
        assert!(json["splits"].get("valid").is_none());
    }
}
