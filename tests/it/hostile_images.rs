//! Files that no camera wrote: damaged, truncated, misnamed, enormous.
//!
//! Whatever a file holds, reading it ends in pixels or in a message that names
//! the file, the problem and the remedy. It never ends the process.

use std::{
    fs,
    io::Cursor,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::LazyLock,
    thread,
    time::{Duration, Instant},
};

use image::{
    DynamicImage, ImageBuffer, ImageFormat, Luma, Rgb, RgbImage, Rgba, codecs::bmp::BmpEncoder,
};
use pinpoint::{
    config::PreprocessConfig,
    data::{
        MaskRule, Truth,
        image::{read_rgb, read_size},
        loader::EvalImages,
        mask,
    },
};
use proptest::prelude::*;
use tempfile::TempDir;

use crate::hostile_inputs::blank_webp;

const LIMIT: u32 = 200;

/// Every format that is read, with the way it is encoded.
const FORMATS: [ImageFormat; 6] = [
    ImageFormat::Png,
    ImageFormat::Jpeg,
    ImageFormat::Bmp,
    ImageFormat::Tiff,
    ImageFormat::Gif,
    ImageFormat::WebP,
];

const FIXTURES: [&str; 9] = [
    "cmyk.jpg",
    "cmyk.tif",
    "flower.jpg",
    "palette-2bit.png",
    "palette-8bit.png",
    "palette.bmp",
    "square-lossy.webp",
    "square-of-ones-lossless.webp",
    "ycck.jpg",
];

#[test]
fn what_is_not_an_image_file_is_named_with_its_remedy() {
    let folder = TempDir::new().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::create_dir(path("folder.png")).unwrap();
    fs::write(path("empty.png"), "").unwrap();
    fs::write(path("text.png"), "a,b,c\n1,2,3\n").unwrap();
    fs::write(path("short.png"), "x").unwrap();
    for (name, problem) in [
        ("missing.png", "no such image file"),
        ("folder.png", "folder where an image file should be"),
        ("empty.png", "empty file"),
        ("empty.png/below.png", "no such image file"),
        ("text.png", "not an image in a supported format"),
        ("short.png", "not an image in a supported format"),
    ] {
        assert_refused(&path(name), problem);
    }
}

#[test]
fn an_image_of_one_pixel_is_an_image() {
    let folder = TempDir::new().unwrap();
    for format in FORMATS {
        let path = written(&folder, &encoded(&RgbImage::new(1, 1), format));
        assert_eq!(read_size(&path, LIMIT).unwrap(), (1, 1), "{format:?}");
        assert_eq!(read_rgb(&path, LIMIT).unwrap().dimensions(), (1, 1), "{format:?}");
    }
}

#[test]
fn an_enormous_image_is_refused_from_its_header() {
    let folder = TempDir::new().unwrap();
    let mut png = Vec::new();
    png::Encoder::new(&mut png, 20_000, 20_000).write_header().unwrap();
    // Just the header: were more than that read, the message would be another one.
    let png = [&png[..33], b"\0\0\0\0IDAT\x35\xAF\x06\x1E"].concat();

    let mut bmp = encoded(&RgbImage::new(1, 1), ImageFormat::Bmp);
    bmp[18..22].copy_from_slice(&20_000_u32.to_le_bytes());
    bmp[22..26].copy_from_slice(&20_000_u32.to_le_bytes());

    let mut gif = encoded(&RgbImage::new(1, 1), ImageFormat::Gif);
    gif[6..8].copy_from_slice(&20_000_u16.to_le_bytes());
    gif[8..10].copy_from_slice(&20_000_u16.to_le_bytes());

    let mut jpeg = encoded(&RgbImage::new(1, 1), ImageFormat::Jpeg);
    let frame = jpeg.windows(2).position(|pair| pair == [0xFF, 0xC0]).unwrap();
    jpeg[frame + 5..frame + 7].copy_from_slice(&20_000_u16.to_be_bytes());
    jpeg[frame + 7..frame + 9].copy_from_slice(&20_000_u16.to_be_bytes());

    for bytes in [png, bmp, gif, jpeg] {
        let path = written(&folder, &bytes);
        assert_refused(&path, "image of 20000×20000 pixels is above the limit of 200 megapixels");
        let message = read_size(&path, LIMIT).unwrap_err().to_string();
        assert!(message.contains("`data.max_megapixels`"), "{message}");
    }
}

#[test]
fn the_limit_itself_is_allowed() {
    let folder = TempDir::new().unwrap();
    let path = written(&folder, &encoded(&RgbImage::new(1000, 1000), ImageFormat::Png));
    assert_eq!(read_rgb(&path, 1).unwrap().dimensions(), (1000, 1000));
    let path = written(&folder, &encoded(&RgbImage::new(1000, 1001), ImageFormat::Png));
    assert!(read_rgb(&path, 1).is_err());
}

#[test]
fn a_frame_much_larger_than_its_picture_is_refused() {
    let folder = TempDir::new().unwrap();
    let mut gif = encoded(&RgbImage::new(2, 2), ImageFormat::Gif);
    let descriptor = gif.iter().rposition(|&byte| byte == 0x2C).unwrap();
    gif[descriptor + 5..descriptor + 9].fill(0xFF); // 65535×65535
    assert!(read_rgb(&written(&folder, &gif), LIMIT).is_err());
}

#[test]
fn a_file_too_long_for_any_image_is_refused_unread() {
    let folder = TempDir::new().unwrap();
    let path = written(&folder, &encoded(&RgbImage::new(1, 1), ImageFormat::Jpeg));
    fs::File::options().write(true).open(&path).unwrap().set_len(1 << 40).unwrap();
    assert_refused(&path, "larger than any image allowed");
}

#[test]
fn colours_that_no_decoder_knows_come_with_a_way_out() {
    let path = fixtures().join("palette.tif");
    let message = read_rgb(&path, LIMIT).unwrap_err().to_string();
    assert!(message.contains("unsupported") && message.contains("8-bit PNG"), "{message}");
}

#[test]
fn a_truncated_file_is_refused_unless_all_pixels_are_there() {
    let folder = TempDir::new().unwrap();
    for bytes in &*SAMPLES {
        let whole = read_rgb(&written(&folder, bytes), LIMIT).unwrap();
        for length in (0..bytes.len()).step_by(1 + bytes.len() / 200) {
            let path = written(&folder, &bytes[..length]);
            if let Ok(image) = read_rgb(&path, LIMIT) {
                assert!(image == whole, "{length} of {} bytes gave other pixels", bytes.len());
            }
        }
        assert!(read_rgb(&written(&folder, &bytes[..bytes.len() / 2]), LIMIT).is_err());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_damaged_file_ends_in_pixels_or_in_a_message(
        sample in 0..SAMPLES.len(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        kept in any::<Option<prop::sample::Index>>(),
    ) {
        let mut bytes = SAMPLES[sample].clone();
        for (place, value) in damage {
            let place = place.index(bytes.len());
            bytes[place] = value;
        }
        if let Some(kept) = kept {
            bytes.truncate(1 + kept.index(bytes.len()));
        }
        let folder = TempDir::new().unwrap();
        read_every_way(&written(&folder, &bytes));
    }

    #[test]
    fn noise_behind_a_signature_ends_in_pixels_or_in_a_message(
        sample in 0..SAMPLES.len(),
        kept in 2..40_usize,
        noise in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        let bytes = [&SAMPLES[sample][..kept], &noise].concat();
        let folder = TempDir::new().unwrap();
        read_every_way(&written(&folder, &bytes));
    }
}

#[test]
fn whoever_waits_for_an_image_may_stop_waiting() {
    let folder = TempDir::new().unwrap();
    let path = written(&folder, &blank_webp(4000, 4000 * 4000 / 1000));
    let loader = || EvalImages::new(vec![path.clone()], PreprocessConfig::default(), LIMIT, 1);
    assert!(loader().next_unless(|| true).is_none());
    let mut images = loader();
    assert_eq!(images.next_unless(|| false).unwrap().unwrap().rgb.dimensions(), (4000, 4000));
    assert!(images.next_unless(|| false).is_none(), "there was one image");
}

/// The wait is compared with what decoding takes here and now, so that a busy machine may be slow.
#[test]
#[cfg(unix)]
fn a_signal_does_not_wait_for_the_image_that_a_probe_looks_at() {
    let folder = TempDir::new().unwrap();
    let path = |name: &str| folder.path().join(name);
    for class in ["a", "b"] {
        fs::create_dir_all(path(&format!("data/{class}"))).unwrap();
        for number in 0..2 {
            let image = RgbImage::from_fn(40, 40, |x, y| Rgb([x as u8 * 6, y as u8 * 6, number]));
            image.save(path(&format!("data/{class}/{number}.png"))).unwrap();
        }
    }
    let slow = path("data/b/slow.webp");
    fs::write(&slow, blank_webp(14_000, 14_000 * 14_000 / 1000)).unwrap();
    let started = Instant::now();
    read_rgb(&slow, LIMIT).unwrap();
    let decoding = started.elapsed();
    if decoding < Duration::from_secs(2) {
        eprintln!("skipped: this machine decodes 196 megapixels in {decoding:?}");
        return;
    }
    let mut child = Command::new(assert_cmd::cargo::cargo_bin!("pinpoint"))
        .args(["train", "--method", "probe", "--set", "model.backbone=tiny"])
        .args(["--threads", "1", "--data"])
        .arg(path("data"))
        .arg("--out")
        .arg(path("run"))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // Written right before the first image is looked at; the four small ones take no time.
    while !path("run/state/checkpoint.safetensors").exists() {
        assert!(child.try_wait().unwrap().is_none(), "nothing ends it before");
        thread::sleep(Duration::from_millis(10));
    }
    thread::sleep(decoding / 8);
    let asked = Instant::now();
    Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap();
    let status = child.wait().unwrap();
    let waited = asked.elapsed();
    assert_eq!(status.code(), Some(130), "interrupted");
    assert!(waited < decoding / 2, "{waited:?} of {decoding:?}");
}

/// Reads a file as an image and as a mask; a panic fails the test.
fn read_every_way(path: &Path) {
    let truth = Truth { masks: vec![path.to_owned()], ..Truth::default() };
    let size = read_size(path, 1);
    if let Ok(image) = read_rgb(path, 1) {
        assert_eq!(image.dimensions(), size.unwrap(), "the header tells the size");
    }
    let rules = [MaskRule::NonZero, MaskRule::Votes, MaskRule::NotBlue];
    for rule in rules.into_iter().chain([MaskRule::Void255, MaskRule::Trimap]) {
        let size = read_size(path, 1).unwrap_or((1, 1));
        let _ = mask::read(&truth, rule, size, 1);
    }
}

fn assert_refused(path: &Path, problem: &str) {
    let truth = Truth { masks: vec![path.to_owned()], ..Truth::default() };
    let errors = [
        read_rgb(path, LIMIT).unwrap_err(),
        read_size(path, LIMIT).unwrap_err(),
        mask::read(&truth, MaskRule::NonZero, (1, 1), LIMIT).unwrap_err(),
    ];
    for message in errors.map(|error| error.to_string()) {
        let named = message.contains(&format!("`{}`", path.display()));
        assert!(named && message.contains(problem) && message.contains("\nhint: "), "{message}");
    }
}

/// One small file of every kind.
static SAMPLES: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let texture = |x: u32, y: u32| (x * 37 + y * 91) as u8;
    let plain = RgbImage::from_fn(19, 11, |x, y| Rgb([texture(x, y), texture(y, x), x as u8]));
    let deep = ImageBuffer::from_fn(19, 11, |x, y| Luma([u16::from(texture(x, y)) * 251]));
    let clear = ImageBuffer::from_fn(19, 11, |x, y| Rgba([texture(x, y), 1, 2, x as u8 * 13]));
    let mut files: Vec<_> = FORMATS.map(|format| encoded(&plain, format)).into();
    files.push(encoded(&DynamicImage::from(deep.clone()), ImageFormat::Png));
    files.push(encoded(&DynamicImage::from(deep), ImageFormat::Tiff));
    files.push(encoded(&DynamicImage::from(clear), ImageFormat::WebP));
    files.push(indexed_bmp());
    files.extend(FIXTURES.map(|name| fs::read(fixtures().join(name)).unwrap()));
    files
});

fn indexed_bmp() -> Vec<u8> {
    let mut bytes = Vec::new();
    let palette: Vec<[u8; 3]> = (0..=255).map(|i| [i, 255 - i, 7]).collect();
    let indices: Vec<u8> = (0..19 * 11).map(|i| i as u8).collect();
    BmpEncoder::new(&mut bytes)
        .encode_with_palette(&indices, 19, 11, image::ExtendedColorType::L8, Some(&palette))
        .unwrap();
    bytes
}

fn encoded(image: &(impl Clone + Into<DynamicImage>), format: ImageFormat) -> Vec<u8> {
    let mut bytes = Cursor::new(Vec::new());
    image.clone().into().write_to(&mut bytes, format).unwrap();
    bytes.into_inner()
}

fn written(folder: &TempDir, bytes: &[u8]) -> PathBuf {
    let path = folder.path().join("image");
    fs::write(&path, bytes).unwrap();
    path
}

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/fixtures/images")
}
