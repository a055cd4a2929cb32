use std::{fs::File, path::PathBuf};

use image::{
    GrayAlphaImage, GrayImage, ImageBuffer, ImageEncoder, ImageFormat, Luma, LumaA, Rgb, Rgba,
    codecs::{jpeg::JpegEncoder, png::PngEncoder, webp::WebPEncoder},
    imageops,
};
use proptest::prelude::*;
use tempfile::TempDir;

use super::*;

const LIMIT: u32 = 1;

#[test]
fn grey_becomes_three_equal_channels() {
    let grey = GrayImage::from_pixel(1, 1, Luma([77]));
    assert_eq!(reread(grey, ImageFormat::Png).into_raw(), [77, 77, 77]);
}

#[test]
fn sixteen_bits_are_scaled_to_eight_and_rounded() {
    let deep = ImageBuffer::<Luma<u16>, _>::from_raw(4, 1, vec![0, 128, 129, 65535]).unwrap();
    let grey: Vec<u8> = reread(deep, ImageFormat::Png).pixels().map(|pixel| pixel[0]).collect();
    assert_eq!(grey, [0, 0, 1, 255]);

    let colour = ImageBuffer::from_pixel(1, 1, Rgb([0x1234_u16, 0x8080, 0xFFFF]));
    assert_eq!(reread(colour, ImageFormat::Tiff).into_raw(), [18, 128, 255]);
}

#[test]
fn alpha_is_dropped_not_composited() {
    let clear = RgbaOne::from_pixel(1, 1, Rgba([10, 20, 30, 0]));
    assert_eq!(reread(clear, ImageFormat::Png).into_raw(), [10, 20, 30]);
    let clear = GrayAlphaImage::from_pixel(1, 1, LumaA([40, 0]));
    assert_eq!(reread(clear, ImageFormat::Png).into_raw(), [40, 40, 40]);
}

type RgbaOne = ImageBuffer<Rgba<u8>, Vec<u8>>;

#[test]
fn a_palette_gives_its_colours_even_where_it_is_transparent() {
    const W: [u8; 3] = [255; 3];
    const K: [u8; 3] = [0; 3];
    const R: [u8; 3] = [255, 0, 0];
    const G: [u8; 3] = [0, 255, 0];
    for (name, last) in [
        ("palette-2bit.png", W),
        ("palette-8bit.png", W),
        ("palette-transparent.png", G),
        ("palette.bmp", G),
    ] {
        let expected = [W, K, R, last, W, W].concat();
        assert_eq!(read_rgb(&fixture(name), LIMIT).unwrap().into_raw(), expected, "{name}");
    }
}

#[test]
fn four_ink_files_agree_with_pillow() {
    // JPEG: two inverse transforms and two products, each rounded its own way. TIFF: one product.
    for (name, tolerance) in [("cmyk.jpg", 2), ("ycck.jpg", 3), ("cmyk.tif", 1)] {
        let ours = read_rgb(&fixture(name), LIMIT).unwrap();
        let pillow = read_rgb(&fixture(&format!("{name}.expected.png")), LIMIT).unwrap();
        let differences = ours.as_raw().iter().zip(pillow.as_raw()).map(|(a, b)| a.abs_diff(*b));
        let worst = differences.max().unwrap();
        assert!(worst <= tolerance, "{name} differs by {worst}");
    }
}

#[test]
fn exif_orientation_is_applied_to_pixels_and_size() {
    let upright = RgbImage::from_fn(2, 3, |x, y| Rgb([x as u8 * 90, y as u8 * 90, 7]));
    // What a camera stores: the turn that EXIF undoes, undone.
    let stored = |orientation| match orientation {
        2 => imageops::flip_horizontal(&upright),
        3 => imageops::rotate180(&upright),
        4 => imageops::flip_vertical(&upright),
        5 => imageops::rotate270(&imageops::flip_horizontal(&upright)),
        6 => imageops::rotate270(&upright),
        7 => imageops::rotate90(&imageops::flip_horizontal(&upright)),
        8 => imageops::rotate90(&upright),
        _ => upright.clone(),
    };
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("turned");
    for orientation in 0..=9 {
        let stored = stored(orientation);
        let file = || File::create(&path).unwrap();
        encode(PngEncoder::new(file()), &stored, orientation);
        assert_eq!(read_rgb(&path, LIMIT).unwrap(), upright, "PNG, {orientation}");
        encode(WebPEncoder::new_lossless(file()), &stored, orientation);
        assert_eq!(read_rgb(&path, LIMIT).unwrap(), upright, "WebP, {orientation}");
        encode(JpegEncoder::new(file()), &stored, orientation);
        assert_eq!(read_rgb(&path, LIMIT).unwrap().dimensions(), (2, 3), "JPEG, {orientation}");
        assert_eq!(read_size(&path, LIMIT).unwrap(), (2, 3), "size, {orientation}");
    }
}

#[test]
fn the_content_tells_the_format_not_the_name() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("really-a-bitmap.jpg");
    let image = RgbImage::from_pixel(3, 2, Rgb([1, 2, 3]));
    image.save_with_format(&path, ImageFormat::Bmp).unwrap();
    assert_eq!(read_rgb(&path, LIMIT).unwrap(), image);
}

#[test]
fn floating_point_pixels_are_refused() {
    let image = ImageBuffer::from_pixel(1, 1, Rgb([200.0_f32, 0.0, 0.0]));
    let (_folder, path) = written(image, ImageFormat::Tiff);
    let message = read_rgb(&path, LIMIT).unwrap_err().to_string();
    assert!(message.contains("floating-point"), "{message}");
}

proptest! {
    #[test]
    fn lossless_files_give_back_what_was_written(
        (width, height, pixels) in (1..9_u32, 1..9_u32).prop_flat_map(|(width, height)| {
            let bytes = (width * height * 3) as usize;
            (Just(width), Just(height), prop::collection::vec(any::<u8>(), bytes))
        })
    ) {
        let image = RgbImage::from_raw(width, height, pixels).unwrap();
        for format in [ImageFormat::Png, ImageFormat::Bmp, ImageFormat::Tiff, ImageFormat::WebP] {
            let (_folder, path) = written(image.clone(), format);
            prop_assert_eq!(&read_rgb(&path, LIMIT).unwrap(), &image);
            prop_assert_eq!(read_size(&path, LIMIT).unwrap(), (width, height));
        }
    }
}

fn reread(image: impl Into<DynamicImage>, format: ImageFormat) -> RgbImage {
    let (_folder, path) = written(image, format);
    read_rgb(&path, LIMIT).unwrap()
}

fn written(image: impl Into<DynamicImage>, format: ImageFormat) -> (TempDir, PathBuf) {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("image");
    image.into().save_with_format(&path, format).unwrap();
    (folder, path)
}

fn encode(mut encoder: impl ImageEncoder, image: &RgbImage, orientation: u8) {
    let exif =
        [b"II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0".as_slice(), &[orientation], &[0; 7]];
    encoder.set_exif_metadata(exif.concat()).unwrap();
    let (width, height) = image.dimensions();
    encoder.write_image(image, width, height, image::ExtendedColorType::Rgb8).unwrap();
}

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/fixtures/images").join(name)
}
