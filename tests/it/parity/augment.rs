//! Image operations; `fixtures/make_augment.py` says how the fixtures were made.
#![expect(clippy::unwrap_used, reason = "whatever fails here fails the test")]

use std::{collections::BTreeMap, path::PathBuf};

use image::RgbImage;
use pinpoint::{
    config::{Normalization, PreprocessConfig},
    data::{
        augment::{Affine, ColourStep},
        preprocess::{EvalGeometry, Normalizer, Planes, Size, rescale, resize_align_corners},
    },
};
use serde::Deserialize;

#[derive(Deserialize)]
struct Cases {
    jitters: BTreeMap<String, Vec<(String, f64)>>,
    affines: BTreeMap<String, Moved>,
    plane: Plane,
    resized: BTreeMap<String, Plane>,
}

#[derive(Deserialize)]
struct Moved {
    degrees: f64,
    shear: f64,
    scale: f64,
}

#[derive(Deserialize)]
struct Plane {
    size: (u32, u32),
    values: Vec<f32>,
}

fn fixture(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/it/fixtures/augment").join(name)
}

fn picture(name: &str) -> RgbImage {
    image::open(fixture(&format!("{name}.png"))).unwrap().into_rgb8()
}

fn cases() -> Cases {
    serde_json::from_slice(&std::fs::read(fixture("cases.json")).unwrap()).unwrap()
}

fn size((width, height): (u32, u32)) -> Size {
    Size { width, height }
}

/// The largest difference of two images in grey levels.
fn distance(found: &RgbImage, expected: &RgbImage) -> u8 {
    assert_eq!(found.dimensions(), expected.dimensions());
    found.iter().zip(expected.iter()).map(|(a, b)| a.abs_diff(*b)).max().unwrap()
}

fn step(name: &str, factor: f64) -> ColourStep {
    match name {
        "brightness" => ColourStep::Brightness(factor as f32),
        "contrast" => ColourStep::Contrast(factor as f32),
        "saturation" => ColourStep::Saturation(factor as f32),
        "hue" => ColourStep::Hue(factor),
        other => panic!("the fixtures have an unknown step `{other}`"),
    }
}

#[test]
fn colours_change_as_with_torchvision() {
    for (name, steps) in cases().jitters {
        let mut planes = Planes::from_rgb(&picture("input"));
        steps.iter().for_each(|(kind, factor)| step(kind, *factor).apply(&mut planes));
        assert!(planes == Planes::from_rgb(&picture(&name)), "{name}");
    }
}

#[test]
fn affine_maps_move_the_same_pixels_as_torchvision() {
    for (name, Moved { degrees, shear, scale }) in cases().affines {
        let moved = Affine { degrees, shear, scale }.apply(&Planes::from_rgb(&picture("input")));
        assert!(moved == Planes::from_rgb(&picture(&name)), "{name}");
    }
}

#[test]
fn images_are_brought_to_another_size_as_with_pillow() {
    let names = ["upscaled_a_little", "upscaled_much", "downscaled_a_little", "downscaled_much"];
    for name in names {
        let expected = picture(name);
        let rescaled = rescale(&picture("input"), Size::of(&expected)).unwrap();
        assert_eq!(distance(&rescaled, &expected), 0, "{name}");
    }
}

#[test]
fn padding_reflects_as_with_numpy() {
    let preprocess = PreprocessConfig {
        upscale_short_side: 0,
        eval_multiple: 96,
        ..PreprocessConfig::default()
    };
    let image = picture("input");
    let normalizer = Normalizer::new(Normalization::Half);
    let found = EvalGeometry::new(Size::of(&image), &preprocess).input(&image, &normalizer);
    let mut expected = Vec::new();
    normalizer.append(&Planes::from_rgb(&picture("padded")), &mut expected);
    assert_eq!(found, expected);
}

#[test]
fn scores_are_resized_as_with_pytorch() {
    let Cases { plane, resized, .. } = cases();
    for (name, expected) in resized {
        let found = resize_align_corners(&plane.values, size(plane.size), size(expected.size));
        assert_eq!(found.len(), expected.values.len(), "{name}");
        for (found, expected) in found.iter().zip(&expected.values) {
            // PyTorch computes positions in single precision, we do not.
            assert!((found - expected).abs() < 1e-5, "{name}: {found} {expected}");
        }
    }
}
