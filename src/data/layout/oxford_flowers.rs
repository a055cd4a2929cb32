//! Oxford flowers 102 as distributed.
//!
//! ```text
//! jpg/image_00001.jpg           segmim/segmim_00001.jpg    blue background
//! imagelabels.mat               labels: 1…102, one per image
//! setid.mat                     trnid, valid, tstid: numbers of images
//! ```
//!
//! Classes are named as in the paper's folds: by number, from 0.

use std::path::Path;

use super::{
    Layout,
    builder::{Builder, Origin},
    mat, path,
};
use crate::data::{MaskRule, Split, Truth, problem::ProblemKind};

const SPLITS: [(&str, Split); 3] =
    [("trnid", Split::Train), ("valid", Split::Valid), ("tstid", Split::Test)];

pub(super) fn read(path: &Path) -> Option<Builder> {
    let root = path::here_or_below(path, |folder| {
        ["imagelabels.mat", "setid.mat"].iter().all(|list| folder.join(list).is_file())
    })?;
    let mut builder = Builder::new(Layout::OxfordFlowers, &root);
    builder.mask_rule = MaskRule::NotBlue;
    let has_masks = root.join("segmim").is_dir();
    if !has_masks {
        builder.note("no `segmim/` found; it is a download of its own, to be put beside `jpg/`");
    }
    let labels = read_array(&mut builder, &Origin::file(&root.join("imagelabels.mat")), "labels");
    let sets = Origin::file(&root.join("setid.mat"));
    let mut listed = 0;
    for (name, split) in SPLITS {
        for number in read_array(&mut builder, &sets, name) {
            listed += 1;
            add(&mut builder, &sets, split, number, &labels, has_masks);
        }
    }
    if listed < labels.len() {
        builder.note(format!("labelled images that are in no split: {}", labels.len() - listed));
    }
    Some(builder)
}

/// One array of a list file; none, and a problem, if it cannot be read.
fn read_array(builder: &mut Builder, list: &Origin, name: &str) -> Vec<f64> {
    let missing = || format!("has no array `{name}`");
    let array =
        mat::read(&list.file).and_then(|mut arrays| arrays.remove(name).ok_or_else(missing));
    builder.readable(list, array).unwrap_or_default()
}

fn add(
    builder: &mut Builder,
    sets: &Origin,
    split: Split,
    number: f64,
    labels: &[f64],
    has_masks: bool,
) -> Option<()> {
    // Not a number, negative or fractional: all compare unequal to what they are cut to.
    let index = number as usize;
    let label = labels.get(index.wrapping_sub(1)).copied().filter(|_| index as f64 == number);
    let Some(label) = label else {
        let text = format!("image {number} of `{split}` has no label in `imagelabels.mat`");
        return builder.problem(sets, ProblemKind::BadRow, text);
    };
    if !(1.0..=1e6).contains(&label) || label.fract() != 0.0 {
        let text = format!("image {number} has label {label}, not a class number");
        return builder.problem(sets, ProblemKind::UnknownClass, text);
    }
    let image = builder.root.join(format!("jpg/image_{index:05}.jpg"));
    let mask = has_masks.then(|| builder.root.join(format!("segmim/segmim_{index:05}.jpg")));
    let class = (label as u64 - 1).to_string();
    let truth = Truth { masks: mask.into_iter().collect(), ..Truth::default() };
    builder.add(sets, split, &class, &image, truth)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::layout::tree::{Tree, kinds};

    const LISTS: &[u8] = include_bytes!("../../../tests/it/fixtures/mat/compressed.mat");

    /// Labels 77, 2, 102, 1, 5; train 1, 3; valid −2.5; test 300, 70000, 4.
    fn tree() -> Tree {
        Tree::new()
            .bytes("flowers/imagelabels.mat", LISTS)
            .bytes("flowers/setid.mat", LISTS)
            .png("flowers/jpg/image_00001.jpg", 4, 4)
            .png("flowers/jpg/image_00003.jpg", 4, 4)
            .png("flowers/jpg/image_00004.jpg", 4, 4)
            .png("flowers/segmim/segmim_00001.jpg", 4, 4)
            .png("flowers/segmim/segmim_00003.jpg", 4, 4)
    }

    #[test]
    fn labels_and_splits_come_from_the_mat_files() {
        let dataset = tree().open().unwrap();
        assert_eq!((dataset.layout, dataset.mask_rule), (Layout::OxfordFlowers, MaskRule::NotBlue));
        assert_eq!(dataset.classes, ["0", "76", "101"]);
        assert_eq!(dataset.train.iter().map(|s| s.label).collect::<Vec<_>>(), [1, 2]);
        assert_eq!(dataset.test[0].id, "jpg/image_00004.jpg");
    }

    #[test]
    fn numbers_without_a_label_are_problems() {
        let dataset = tree().open().unwrap();
        assert_eq!(
            kinds(&dataset),
            ["bad-row", "bad-row", "bad-row", "missing-mask", "unseen-class"]
        );
    }

    #[test]
    fn a_damaged_list_is_an_error_that_names_it() {
        let message =
            tree().bytes("flowers/setid.mat", &LISTS[..150]).open().unwrap_err().to_string();
        assert!(message.contains("setid.mat: is truncated"), "{message}");
    }
}
