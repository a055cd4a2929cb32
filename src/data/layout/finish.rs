//! What needs all rows of a dataset: the order of classes, the rule of masks, and notes on what is
//! missing.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use crate::data::{
    Dataset, MaskRule, Split, mask,
    problem::{Problem, ProblemKind},
};

/// Class names without repetition: as numbers if all of them are, otherwise by name.
pub(super) fn in_order(names: impl Iterator<Item = String>) -> Vec<String> {
    let names: BTreeSet<String> = names.collect();
    let mut names: Vec<String> = names.into_iter().collect();
    if names.iter().all(|name| name.parse::<u64>().is_ok()) {
        names.sort_by_key(|name| name.parse::<u64>().ok());
    }
    names
}

/// Finds classes without images, without training images, or without another class.
pub(super) fn check_classes(dataset: &mut Dataset) {
    let counts = Split::ALL.map(|split| dataset.class_counts(split));
    let mut found = Vec::new();
    for (label, name) in dataset.classes.iter().enumerate() {
        let [train, valid, test] = counts.each_ref().map(|counts| counts[label]);
        if train + valid + test == 0 {
            found.push((ProblemKind::EmptyClass, format!("class `{name}` has no image")));
        } else if train == 0 && !dataset.train.is_empty() {
            let text =
                format!("class `{name}` is in {valid} valid and {test} test but 0 train images");
            found.push((ProblemKind::UnseenClass, text));
        }
    }
    if let [name] = &dataset.classes[..] {
        found.push((ProblemKind::SingleClass, format!("all images are of class `{name}`")));
    }
    let found = found.into_iter().map(|(kind, text)| Problem::of_file(kind, &dataset.root, text));
    dataset.problems.extend(found);
}

/// Larger masks are not decoded to guess their rule.
const MAX_MEGAPIXELS: u32 = 50;

/// Reads masks as trimaps if they hold 1, 2 and 3 only, since by the usual rule every pixel would
/// be foreground; notes what the usual rule does with shades.
pub(super) fn guess_mask_rule(dataset: &mut Dataset) {
    let masks: Vec<&Path> = dataset
        .samples()
        .flat_map(|(_, sample)| sample.truth.masks.iter().map(PathBuf::as_path))
        .collect();
    let note = if mask::are_trimaps(&masks, MAX_MEGAPIXELS) {
        dataset.mask_rule = MaskRule::Trimap;
        "masks hold the numbers of trimaps, and are read so: 1 is the object, 2 background, 3 not \
         scored; `--mask-rule non-zero` says otherwise"
    } else if mask::have_shades(&masks, MAX_MEGAPIXELS) {
        "masks hold shades of grey, and all but black is read as the object; `--mask-rule votes` \
         counts what is brighter than half, as for soft edges and shares of annotators"
    } else {
        return;
    };
    dataset.notes.push(note.to_owned());
}

/// Notes what follows if splits or masks are missing.
pub(super) fn note_splits(dataset: &mut Dataset) {
    if dataset.train.is_empty() {
        dataset.notes.push("no `train` split: the dataset can be evaluated on only".to_owned());
    }
    if !dataset.samples().any(|(_, sample)| sample.truth.has_mask()) {
        dataset
            .notes
            .push("no masks: training needs none, but pixel scores cannot be computed".to_owned());
    }
}
