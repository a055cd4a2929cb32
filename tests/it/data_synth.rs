//! The synthetic set: laws of its pictures, and `pinpoint data synth`.

use std::{collections::BTreeMap, fs, path::Path};

use assert_cmd::Command;
use pinpoint::data::{
    Dataset, OpenOptions, Split,
    synthetic::{SyntheticSample, SyntheticSpec, contact_sheet, write},
};
use proptest::prelude::*;

fn tiny() -> SyntheticSpec {
    SyntheticSpec { classes: 3, train: 9, valid: 4, test: 5, side: 48, seed: 7 }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn masks_have_the_size_of_their_images_and_hold_some_but_not_all_pixels(
        seed in any::<u64>(),
        index in 0_usize..1_000_000,
        side in 32_u32..100,
    ) {
        let spec = SyntheticSpec { side, seed, classes: 8, ..SyntheticSpec::small() };
        let SyntheticSample { image, mask, label } = spec.draw(Split::Train, index);
        prop_assert_eq!(image.dimensions(), (side, side));
        prop_assert_eq!((mask.width, mask.height), (side, side));
        prop_assert_eq!(label, index % 8);
        let share = foreground_share(&mask.foreground);
        prop_assert!((0.03..0.5).contains(&share), "{}", share);
    }
}

#[test]
fn pictures_depend_on_seed_split_and_index_alone() {
    let spec = tiny();
    let again = SyntheticSpec { train: 99, ..tiny() };
    assert_eq!(spec.draw(Split::Train, 4), again.draw(Split::Train, 4));
    assert_ne!(spec.draw(Split::Train, 4), spec.draw(Split::Test, 4));
    assert_ne!(spec.draw(Split::Train, 4), spec.draw(Split::Train, 7));
    let other = SyntheticSpec { seed: 8, ..tiny() };
    assert_ne!(spec.draw(Split::Train, 4), other.draw(Split::Train, 4));
}

#[test]
fn foreground_varies_but_not_with_the_class() {
    let spec = SyntheticSpec { side: 32, classes: 8, ..SyntheticSpec::small() };
    let mut shares = vec![Vec::new(); 8];
    for index in 0..1600 {
        let sample = spec.draw(Split::Train, index);
        shares[sample.label].push(foreground_share(&sample.mask.foreground));
    }
    for shares in shares {
        let mean = shares.iter().sum::<f64>() / shares.len() as f64;
        // Shares are spread over about 0.06 to 0.38, so a mean of 200 errs by 0.006.
        assert!((mean - 0.205).abs() < 0.03, "{mean}");
        assert!(shares.iter().any(|&share| share < 0.1) && shares.iter().any(|&share| share > 0.3));
    }
}

/// Colour must not tell the classes: neither of the whole picture nor of the object.
#[test]
fn a_classifier_that_sees_mean_colours_is_near_chance() {
    let spec = SyntheticSpec { side: 32, ..SyntheticSpec::small() };
    let features = |split, count: usize| -> Vec<(usize, [f64; 9])> {
        (0..count).map(|index| colour_features(&spec.draw(split, index))).collect()
    };
    let (train, test) = (features(Split::Train, 1200), features(Split::Test, 1200));
    let mut centres = vec![[0.0; 9]; spec.classes];
    for (label, feature) in &train {
        for (centre, value) in centres[*label].iter_mut().zip(feature) {
            *centre += value / 300.0;
        }
    }
    let nearest = |feature: &[f64; 9]| {
        let gap = |centre: &[f64; 9]| -> f64 {
            centre.iter().zip(feature).map(|(a, b)| (a - b).powi(2)).sum()
        };
        (0..spec.classes).min_by(|&a, &b| gap(&centres[a]).total_cmp(&gap(&centres[b]))).unwrap()
    };
    let hits = test.iter().filter(|(label, feature)| nearest(feature) == *label).count();
    // Chance is 25 %; four standard deviations of 1200 guesses are 5 points.
    assert!((hits as f64 / 1200.0 - 0.25).abs() < 0.05, "{hits} of 1200");
}

#[test]
fn any_number_of_threads_writes_the_same_files() {
    let dir = tempfile::tempdir().unwrap();
    let trees: Vec<_> = [1, 2, 7]
        .into_iter()
        .map(|threads| {
            let target = dir.path().join(threads.to_string());
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| write(&target, &tiny(), || {})).unwrap();
            files(&target)
        })
        .collect();
    assert_eq!(trees[0].len(), 2 * (9 + 4 + 5));
    assert!(trees[0] == trees[1] && trees[0] == trees[2]);
}

#[test]
fn a_written_set_is_read_back_as_class_folders_with_masks() {
    let dir = tempfile::tempdir().unwrap();
    let target = dir.path().join("set");
    synth(&target, &["--classes", "3", "--train", "9", "--valid", "4", "--test", "5"])
        .args(["--size", "40", "--sheet"])
        .assert()
        .success()
        .stdout("");
    let dataset = Dataset::open(&target, &OpenOptions::default()).unwrap();
    let spec = SyntheticSpec { classes: 3, side: 40, ..SyntheticSpec::small() };
    assert_eq!(dataset.classes, spec.class_names());
    let counts = [dataset.train.len(), dataset.valid.len(), dataset.test.len()];
    assert_eq!(counts, [9, 4, 5]);
    assert!(dataset.samples().all(|(_, sample)| sample.truth.masks.len() == 1));
    assert!(dataset.problems.is_empty(), "{:?}", dataset.problems);

    let image = image::open(target.join("train/checkered-star/00003.png")).unwrap().into_rgb8();
    let mask = image::open(target.join("masks/train/checkered-star/00003.png")).unwrap();
    let drawn = spec.draw(Split::Train, 3);
    assert_eq!(image, drawn.image);
    let foreground: Vec<u8> = drawn.mask.foreground.iter().map(|&f| u8::from(f) * 255).collect();
    assert_eq!(mask.into_luma8().into_raw(), foreground);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "nothing is left beside the set");
}

#[test]
fn a_folder_with_files_is_never_drawn_into() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("thesis.tex"), "").unwrap();
    let output = synth(dir.path(), &[]).assert().code(2).get_output().clone();
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(message.contains("folder is not empty") && message.contains("hint:"), "{message}");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
}

#[test]
fn what_cannot_be_drawn_is_refused_with_all_reasons() {
    let dir = tempfile::tempdir().unwrap();
    let target = dir.path().join("set");
    let output = synth(&target, &["--classes", "9", "--size", "1000000", "--train", "1"])
        .assert()
        .code(2)
        .get_output()
        .clone();
    let message = String::from_utf8(output.stderr).unwrap();
    for part in ["2..=8", "32..=4096", "training image of each class"] {
        assert!(message.contains(part), "{message}");
    }
    assert!(!target.exists());
}

#[test]
fn a_contact_sheet_has_a_row_per_class() {
    // Tiles of 2 × 48 pixels, 4 pixels apart, image and marked image side by side.
    assert_eq!(contact_sheet(&tiny(), 5).dimensions(), (2 * 5 * 100 + 4, 3 * 100 + 4));
}

fn synth(target: &Path, flags: &[&str]) -> Command {
    let mut command = Command::cargo_bin("pinpoint").unwrap();
    command.args(["data", "synth"]).arg(target).args(flags);
    command
}

fn foreground_share(foreground: &[bool]) -> f64 {
    foreground.iter().filter(|&&object| object).count() as f64 / foreground.len() as f64
}

/// Mean colours of picture, object and surroundings.
fn colour_features(sample: &SyntheticSample) -> (usize, [f64; 9]) {
    let mut sums = [0.0; 9];
    let mut counts = [0.0; 3];
    for (pixel, &object) in sample.image.pixels().zip(&sample.mask.foreground) {
        for region in [0, if object { 1 } else { 2 }] {
            counts[region] += 1.0;
            for channel in 0..3 {
                sums[3 * region + channel] += f64::from(pixel.0[channel]);
            }
        }
    }
    (sample.label, std::array::from_fn(|i| sums[i] / counts[i / 3]))
}

fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if path.is_dir() {
            let inner = files(&path).into_iter();
            found.extend(inner.map(|(rest, bytes)| (format!("{name}/{rest}"), bytes)));
        } else {
            found.insert(name, fs::read(&path).unwrap());
        }
    }
    found
}
