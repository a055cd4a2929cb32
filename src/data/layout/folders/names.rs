//! What the names of files and folders say about masks.

/// Folders whose pictures are masks of pictures elsewhere, in lower case.
const MASK_FOLDERS: [&str; 21] = [
    "masks",
    "mask",
    "labels",
    "annotations",
    "annotation",
    "annos",
    "gt",
    "gts",
    "ground_truth",
    "ground_truths",
    "groundtruth",
    "groundtruths",
    "ground-truth",
    "ground truth",
    "segmentations",
    "segmentation",
    "segmentation_masks",
    "segs",
    "seg",
    "trimaps",
    "annotated",
];

/// Folders that say no more than that there are images in them.
const IMAGE_FOLDERS: [&str; 5] = ["images", "image", "imgs", "img", "jpegimages"];

/// Words that a mask is called by after the name of its image, as in `1_mask.png`.
const MASK_WORDS: [&str; 12] = [
    "mask",
    "masks",
    "seg",
    "segmentation",
    "gt",
    "groundtruth",
    "ground_truth",
    "anno",
    "annotation",
    "trimap",
    "segmask",
    "manual",
];

/// Words that photos are called by as well, so that the picture has to tell.
const DOUBTFUL_WORDS: [&str; 6] = ["label", "labels", "binary", "roi", "l", "bw"];

const SEPARATORS: [char; 4] = ['_', '-', '.', ' '];

/// Whether a folder may hold masks of the images in other folders.
pub(super) fn may_hold_masks(folder: &str) -> bool {
    MASK_FOLDERS.contains(&folder.to_lowercase().as_str())
}

/// Whether a folder says no more than that there are images in it.
pub(super) fn says_images(folder: &str) -> bool {
    IMAGE_FOLDERS.contains(&folder.to_lowercase().as_str())
}

/// The stem of the image that a mask called `stem` belongs to, by the name alone.
///
/// `1_mask`, `1_mask_2`, `1-seg` and `mask_1` belong to `1`.
pub(super) fn image_stem(stem: &str) -> Option<&str> {
    without_word(stem, &MASK_WORDS).or_else(|| {
        let rest = stem.strip_prefix("mask")?.strip_prefix(SEPARATORS)?;
        (!rest.is_empty()).then_some(rest)
    })
}

/// Whether a name ends like that of a mask, as in `1_mask` and `1_mask_2`.
pub(super) fn ends_like_mask(stem: &str) -> bool {
    without_word(stem, &MASK_WORDS).is_some()
}

/// The stem of the image that `stem` may be a mask of, or another picture of the same thing.
pub(super) fn doubtful_image_stem(stem: &str) -> Option<&str> {
    without_word(stem, &DOUBTFUL_WORDS)
}

/// What stands before one of the words and the number that may follow it.
fn without_word<'a>(stem: &'a str, words: &[&str]) -> Option<&'a str> {
    let numberless = stem.trim_end_matches(|c: char| c.is_ascii_digit());
    let numberless = if numberless.len() < stem.len() {
        numberless.strip_suffix(SEPARATORS).unwrap_or(numberless)
    } else {
        stem
    };
    [stem, numberless].into_iter().find_map(|name| {
        words.iter().find_map(|word| {
            let start = name.len().checked_sub(word.len())?;
            let ends = name.get(start..)?.eq_ignore_ascii_case(word);
            let before = name.get(..start)?.strip_suffix(SEPARATORS)?;
            (ends && !before.is_empty()).then_some(before)
        })
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_mask_is_named_after_its_image() {
        for (mask, image) in [
            ("benign (1)_mask", "benign (1)"),
            ("benign (1)_mask_1", "benign (1)"),
            ("7-seg", "7"),
            ("7_GT", "7"),
            ("a.mask2", "a"),
            ("x_ground_truth", "x"),
            ("mask_12", "12"),
        ] {
            assert_eq!(image_stem(mask), Some(image), "{mask}");
        }
        for photo in ["mask", "masked", "1_masked", "unmask", "1", "_mask", "face_without", ""] {
            assert_eq!(image_stem(photo), None, "{photo}");
        }
        assert_eq!(doubtful_image_stem("1_label"), Some("1"));
    }

    proptest! {
        #[test]
        fn any_name_is_read_without_a_panic(stem in "\\PC*") {
            if let Some(image) = image_stem(&stem) {
                prop_assert!(!image.is_empty() && image.len() < stem.len());
            }
            let _ = doubtful_image_stem(&stem);
        }
    }
}
