use std::path::{Path, PathBuf};

use image::{
    DynamicImage, GrayAlphaImage, GrayImage, ImageBuffer, ImageFormat, Luma, Rgb, RgbImage,
    codecs::jpeg::JpegEncoder,
};
use proptest::prelude::*;
use tempfile::TempDir;

use super::*;

const LIMIT: u32 = 1;

impl Mask {
    /// A mask from rows of `#` (foreground), `.` (background) and `?` (ignored).
    pub(crate) fn drawn(rows: &[&str]) -> Self {
        let is = |wanted: char| rows.concat().chars().map(|letter| letter == wanted).collect();
        let (width, height) = (rows[0].len() as u32, rows.len() as u32);
        Self { width, height, foreground: is('#'), ignored: Some(is('?')) }
    }

    /// A row of pixels that are all scored.
    pub(crate) fn row(foreground: &[bool]) -> Self {
        let (width, foreground) = (foreground.len() as u32, foreground.to_vec());
        Self { width, height: 1, foreground, ignored: None }
    }
}

#[test]
fn a_sample_without_mask_files_has_no_mask_and_reads_nothing() {
    let truth = Truth { ignore: Some("missing.png".into()), ..Truth::default() };
    assert_eq!(read(&truth, MaskRule::NonZero, (1, 1), LIMIT).unwrap(), None);
}

#[test]
fn any_number_but_zero_is_foreground() {
    assert_eq!(marked(grey(&[0, 1, 255]), MaskRule::NonZero), [false, true, true]);
}

#[test]
fn sixteen_bit_ids_are_not_cut_to_eight() {
    let ids = ImageBuffer::<Luma<u16>, _>::from_raw(3, 1, vec![0, 256, 1]).unwrap();
    assert_eq!(marked(ids, MaskRule::NonZero), [false, true, true]);
}

#[test]
fn one_channel_is_enough_and_alpha_is_not() {
    let colours = RgbImage::from_raw(2, 1, vec![0, 0, 1, 0, 0, 0]).unwrap();
    assert_eq!(marked(colours, MaskRule::NonZero), [true, false]);
    let opaque_black_clear_white = GrayAlphaImage::from_raw(2, 1, vec![0, 255, 255, 0]).unwrap();
    assert_eq!(marked(opaque_black_clear_white, MaskRule::NonZero), [false, true]);
}

#[test]
fn a_palette_counts_by_index_not_by_colour() {
    for name in ["palette-2bit.png", "palette-8bit.png", "palette.bmp", "palette-transparent.png"] {
        let mask = read_file(&fixture(name), MaskRule::NonZero, (3, 2)).unwrap();
        assert_eq!(mask.foreground, [false, true, true, true, false, false], "{name}");
    }
}

#[test]
fn one_bit_files_are_masks_too() {
    let mask = read_file(&fixture("flower.png"), MaskRule::NonZero, (128, 128)).unwrap();
    assert!((0.2..0.5).contains(&mask.foreground_fraction()), "{}", mask.foreground_fraction());
}

#[test]
fn lossy_files_need_half_of_the_range() {
    let square = |x, y| (8..24).contains(&x) && (8..24).contains(&y);
    let truth: Vec<bool> = (0..32 * 32).map(|i| square(i % 32, i / 32)).collect();
    let image = GrayImage::from_fn(32, 32, |x, y| Luma([if square(x, y) { 255 } else { 0 }]));
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("mask.jpg");
    image.save(&path).unwrap();
    assert_eq!(read_file(&path, MaskRule::NonZero, (32, 32)).unwrap().foreground, truth);
    let lossy = read_file(&fixture("square-lossy.webp"), MaskRule::NonZero, (32, 32)).unwrap();
    assert_eq!(lossy.foreground, truth);
    let ones = fixture("square-of-ones-lossless.webp");
    assert_eq!(read_file(&ones, MaskRule::NonZero, (32, 32)).unwrap().foreground, truth);
}

#[test]
fn a_majority_of_votes_is_needed_in_any_layout() {
    assert_eq!(marked(grey(&[127, 128, 51, 153]), MaskRule::Votes), [false, true, false, true]);
    let colour = RgbImage::from_raw(2, 1, vec![127, 127, 127, 128, 128, 128]).unwrap();
    assert_eq!(marked(colour, MaskRule::Votes), [false, true]);
    let deep = ImageBuffer::<Luma<u16>, _>::from_raw(2, 1, vec![32767, 32768]).unwrap();
    assert_eq!(marked(deep, MaskRule::Votes), [false, true]);
    let palette = read_file(&fixture("palette-8bit.png"), MaskRule::Votes, (3, 2)).unwrap();
    assert_eq!(palette.foreground, [true, false, false, true, true, true]);
}

#[test]
fn jpeg_noise_does_not_leak_out_of_oxfords_flowers() {
    let petals = [[250, 220, 20], [250, 250, 250], [240, 120, 180], [120, 60, 190], [30, 20, 25]];
    let path_of = |folder: &TempDir| folder.path().join("flower.jpg");
    for petal in petals {
        let folder = TempDir::new().unwrap();
        let image = RgbImage::from_fn(128, 128, |x, y| {
            // Petals vary by a few levels so that they are not flat either.
            let shade = ((x * 7 + y * 13) % 11) as u8;
            Rgb(if in_flower(x, y) {
                petal.map(|v: u8| v.saturating_sub(shade))
            } else {
                [0, 0, 254]
            })
        });
        let file = std::fs::File::create(path_of(&folder)).unwrap();
        JpegEncoder::new_with_quality(file, 75).encode_image(&image).unwrap();
        assert_differs_only_at_the_border(&path_of(&folder), &in_flower);
    }
}

#[test]
fn halved_chroma_does_not_leak_out_of_oxfords_flowers() {
    let truth = read_file(&fixture("flower.png"), MaskRule::NonZero, (128, 128)).unwrap();
    let drawn = |x: u32, y: u32| truth.foreground[(y * 128 + x) as usize];
    assert_differs_only_at_the_border(&fixture("flower.jpg"), &drawn);
}

/// The mask is right wherever all pixels within two of it agree on what is drawn.
fn assert_differs_only_at_the_border(path: &Path, drawn: &dyn Fn(u32, u32) -> bool) {
    let mask = read_file(path, MaskRule::NotBlue, (128, 128)).unwrap();
    for (i, &found) in mask.foreground.iter().enumerate() {
        let (x, y) = (i as u32 % 128, i as u32 / 128);
        let mut around = (y.saturating_sub(2)..=(y + 2).min(127))
            .flat_map(|y| (x.saturating_sub(2)..=(x + 2).min(127)).map(move |x| (x, y)));
        let agreed = around.all(|(u, v)| drawn(u, v) == drawn(x, y));
        assert!(!agreed || found == drawn(x, y), "{} is wrong at {x}, {y}", path.display());
    }
}

/// Five petals around a centre, 128×128.
fn in_flower(x: u32, y: u32) -> bool {
    let (x, y) = (f64::from(x) - 64.0, f64::from(y) - 64.0);
    let angle = y.atan2(x);
    x.hypot(y) < 30.0 + 15.0 * (5.0 * angle).cos()
}

#[test]
fn a_trimap_has_foreground_background_and_doubt() {
    let mask = mask_of(grey(&[1, 2, 3]), MaskRule::Trimap).unwrap();
    assert_eq!(mask.foreground, [true, false, false]);
    assert_eq!(mask.ignored, Some(vec![false, false, true]));
    assert_eq!(mask.foreground_fraction(), 0.5);
}

#[test]
fn the_border_of_voc_is_not_scored() {
    let mask = mask_of(grey(&[0, 15, 255]), MaskRule::Void255).unwrap();
    assert_eq!(mask.foreground, [false, true, false]);
    assert_eq!(mask.ignored, Some(vec![false, false, true]));
}

/// What is found out about files of these levels of grey.
fn judged(files: &[&[u8]], judge: fn(&[&Path], u32) -> bool) -> bool {
    let folder = TempDir::new().unwrap();
    let paths: Vec<PathBuf> =
        (0..files.len()).map(|number| folder.path().join(format!("{number}.png"))).collect();
    for (levels, path) in files.iter().zip(&paths) {
        DynamicImage::from(grey(levels)).save(path).unwrap();
    }
    judge(&paths.iter().map(PathBuf::as_path).collect::<Vec<_>>(), LIMIT)
}

#[test]
fn shades_are_told_from_numbers() {
    let have = |files: &[&[u8]]| judged(files, have_shades);
    assert!(have(&[&[0, 51, 204, 255]]) && have(&[&[0, 255], &[0, 127], &[128, 255]]));
    for numbers in [&[0, 255][..], &[0, 1, 2, 20, 255], &[0, 100, 200], &[51, 204, 255]] {
        assert!(!have(&[numbers]), "{numbers:?}");
    }
    assert!(!have(&[]));
}

#[test]
fn trimaps_are_known_by_their_numbers() {
    let are = |files: &[&[u8]]| judged(files, are_trimaps);
    assert!(are(&[&[1, 2, 3]]) && are(&[&[1, 1], &[2, 3]]));
    assert!(!are(&[&[0, 1, 2]]) && !are(&[&[1, 2], &[0, 2]]) && !are(&[&[1, 1]]));
    assert!(!are(&[&[1, 2, 3, 4]]) && !are(&[&[0, 255]]) && !are(&[]));
}

#[test]
fn a_trimap_with_another_number_is_refused() {
    for value in [0, 4, 255] {
        let message = mask_of(grey(&[1, value]), MaskRule::Trimap).unwrap_err().to_string();
        assert!(message.contains(&format!("the value {value};")), "{message}");
        assert!(message.contains("`--mask-rule`"), "{message}");
    }
}

#[test]
fn a_two_bit_trimap_is_not_scaled() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("trimap.png");
    let mut encoder = png::Encoder::new(std::fs::File::create(&path).unwrap(), 3, 1);
    encoder.set_depth(png::BitDepth::Two);
    encoder.write_header().unwrap().write_image_data(&[0b01_10_11_00]).unwrap();
    let mask = read_file(&path, MaskRule::Trimap, (3, 1)).unwrap();
    assert_eq!(mask.foreground, [true, false, false]);
    assert_eq!(mask.ignored, Some(vec![false, false, true]));
}

#[test]
fn doubt_counts_only_where_no_mask_marks_the_object() {
    let folder = TempDir::new().unwrap();
    let file = |name: &str, values: &[u8]| saved(&folder, name, grey(values));
    let truth = Truth {
        masks: vec![file("a", &[1, 2, 2, 3]), file("b", &[3, 2, 2, 1])],
        ignore: Some(file("ignore", &[255, 255, 0, 0])),
        ..Truth::default()
    };
    let mask = read(&truth, MaskRule::Trimap, (4, 1), LIMIT).unwrap().unwrap();
    assert_eq!(mask.foreground, [true, false, false, true]);
    assert_eq!(mask.ignored, Some(vec![false, true, false, false]));
}

#[test]
fn a_mask_of_another_size_is_refused_with_both_sizes() {
    let (_folder, path) = written(GrayImage::new(5, 4));
    let message = read_file(&path, MaskRule::NonZero, (6, 4)).unwrap_err().to_string();
    assert!(message.contains("5×4") && message.contains("6×4"), "{message}");
    assert!(!message.contains("EXIF"), "{message}");
}

#[test]
fn a_mask_with_swapped_sides_points_at_the_images_orientation() {
    let (_folder, path) = written(GrayImage::new(5, 4));
    let message = read_file(&path, MaskRule::Votes, (4, 5)).unwrap_err().to_string();
    assert!(message.contains("EXIF"), "{message}");
}

#[test]
fn empty_and_full_speak_of_scored_pixels() {
    let mask = |foreground: &[bool], ignored: Option<&[bool]>| Mask {
        width: 2,
        height: 1,
        foreground: foreground.to_vec(),
        ignored: ignored.map(<[_]>::to_vec),
    };
    let empty = mask(&[false, false], None);
    assert_eq!(empty.foreground_fraction(), 0.0);
    let half = mask(&[true, false], None);
    assert_eq!(half.foreground_fraction(), 0.5);
    let full = mask(&[true, false], Some(&[false, true]));
    assert_eq!(full.foreground_fraction(), 1.0);
    let unscored = mask(&[false, false], Some(&[true, true]));
    assert_eq!(unscored.foreground_fraction(), 0.0);
    assert_eq!(unscored.foreground_fraction(), 0.0);
}

proptest! {
    #[test]
    fn ones_and_255_mean_the_same(bits in prop::collection::vec(any::<bool>(), 1..40)) {
        let of = |one: u8| marked(grey(&bits.iter().map(|&b| u8::from(b) * one).collect::<Vec<_>>()), MaskRule::NonZero);
        prop_assert_eq!(of(1), of(255));
        prop_assert_eq!(of(1), bits);
    }

    #[test]
    fn renumbering_the_instances_changes_nothing(
        ids in prop::collection::vec(0..6_u16, 1..40),
        names in Just((1..=600_u16).collect::<Vec<_>>()).prop_shuffle(),
    ) {
        let renamed = ids.iter().map(|&id| if id == 0 { 0 } else { names[usize::from(id)] });
        prop_assert_eq!(
            marked(deep(renamed.collect()), MaskRule::NonZero),
            marked(deep(ids), MaskRule::NonZero)
        );
    }

    #[test]
    fn more_votes_never_take_a_pixel_away(
        votes in prop::collection::vec((any::<u8>(), any::<u8>()), 1..40)
    ) {
        let fewer = votes.iter().map(|(a, b)| *a.min(b)).collect::<Vec<_>>();
        let more = votes.iter().map(|(a, b)| *a.max(b)).collect::<Vec<_>>();
        let (fewer, more) = (marked(grey(&fewer), MaskRule::Votes), marked(grey(&more), MaskRule::Votes));
        prop_assert!(fewer.iter().zip(&more).all(|(fewer, more)| fewer <= more));
    }

    #[test]
    fn the_order_of_masks_does_not_matter(
        values in prop::collection::vec((1..4_u8, 1..4_u8, 1..4_u8), 1..20)
    ) {
        let folder = TempDir::new().unwrap();
        let size = (values.len() as u32, 1);
        let file = |name: &str, values: Vec<u8>| saved(&folder, name, grey(&values));
        let a = file("a", values.iter().map(|v| v.0).collect());
        let b = file("b", values.iter().map(|v| v.1).collect());
        let c = file("c", values.iter().map(|v| v.2).collect());
        let union = |masks: Vec<PathBuf>| {
            let truth = Truth { masks, ..Truth::default() };
            read(&truth, MaskRule::Trimap, size, LIMIT).unwrap().unwrap()
        };
        let forward = union(vec![a.clone(), b.clone(), c.clone()]);
        prop_assert_eq!(&union(vec![c, a.clone(), b.clone()]), &forward);
        let (alone, other) = (union(vec![a]), union(vec![b]));
        let contains = |part: &Mask| part.foreground.iter().zip(&forward.foreground).all(|(p, f)| p <= f);
        prop_assert!(contains(&alone) && contains(&other));
    }
}

fn grey(values: &[u8]) -> GrayImage {
    GrayImage::from_raw(values.len() as u32, 1, values.to_vec()).unwrap()
}

fn deep(values: Vec<u16>) -> ImageBuffer<Luma<u16>, Vec<u16>> {
    ImageBuffer::from_raw(values.len() as u32, 1, values).unwrap()
}

fn marked(image: impl Into<DynamicImage>, rule: MaskRule) -> Vec<bool> {
    mask_of(image, rule).unwrap().foreground
}

fn mask_of(image: impl Into<DynamicImage>, rule: MaskRule) -> Result<Mask> {
    let image = image.into();
    let size = (image.width(), image.height());
    let (_folder, path) = written(image);
    read_file(&path, rule, size)
}

fn read_file(path: &Path, rule: MaskRule, size: (u32, u32)) -> Result<Mask> {
    let truth = Truth { masks: vec![path.to_owned()], ..Truth::default() };
    Ok(read(&truth, rule, size, LIMIT)?.expect("a file was named"))
}

fn written(image: impl Into<DynamicImage>) -> (TempDir, PathBuf) {
    let folder = TempDir::new().unwrap();
    let path = saved(&folder, "mask", image);
    (folder, path)
}

fn saved(folder: &TempDir, name: &str, image: impl Into<DynamicImage>) -> PathBuf {
    let path = folder.path().join(name);
    image.into().save_with_format(&path, ImageFormat::Png).unwrap();
    path
}

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/fixtures/images").join(name)
}
