//! Batches and evaluation images, from files on disk.
#![expect(clippy::unwrap_used, reason = "whatever fails here fails the test")]

use std::{
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use image::{Rgb, RgbImage};
use pinpoint::{
    Result,
    collective::Part,
    config::{AffineConfig, AugmentConfig, Config, PreprocessConfig},
    data::{
        Sample, Truth,
        loader::{Batch, EvalImages, Supervision as _, TrainLoader},
    },
};
use tempfile::TempDir;

/// Small crops, and everything varied.
fn config() -> Config {
    let mut config =
        Config { seed: 3, preprocess: preprocess(), augment: augment(), ..Default::default() };
    config.train.batch_size = 4;
    config.data.cache_mib = 0;
    config.data.max_megapixels = 10;
    config
}

fn preprocess() -> PreprocessConfig {
    PreprocessConfig { upscale_short_side: 40, train_padding: 0.3, crop: 48, ..Default::default() }
}

/// Everything at once.
fn augment() -> AugmentConfig {
    AugmentConfig {
        horizontal_flip: 0.5,
        vertical_flip: 0.5,
        quarter_turns: true,
        brightness: 0.5,
        contrast: 0.5,
        saturation: 0.5,
        hue: 0.05,
        affine: Some(AffineConfig { degrees: 10.0, shear: 10.0, scale: [0.3, 1.5] }),
    }
}

/// Images of several sizes, some below and some above the short side to enlarge to.
fn draw_images(folder: &Path, count: u32) -> Vec<PathBuf> {
    let draw = |i: u32| {
        let path = folder.join(format!("{i}.png"));
        let pixel =
            |x: u32, y: u32| Rgb([(x * 5 + i) as u8, (y * 7) as u8, (x * y + 31 * i) as u8]);
        RgbImage::from_fn(35 + 3 * i, 60 - 2 * i, pixel).save(&path).unwrap();
        path
    };
    (0..count).map(draw).collect()
}

fn samples(images: &[PathBuf]) -> Vec<Sample> {
    let sample = |(label, image): (usize, &PathBuf)| Sample {
        id: image.display().to_string(),
        image: image.clone(),
        label,
        truth: Truth::default(),
    };
    images.iter().enumerate().map(sample).collect()
}

fn loader(images: &[PathBuf], config: &Config) -> TrainLoader {
    TrainLoader::new(samples(images), config, 2, Part::WHOLE)
}

fn batches(loader: &TrainLoader, epoch: u64) -> Vec<Batch> {
    loader.epoch(epoch, 0).collect::<Result<_>>().unwrap()
}

#[test]
fn an_epoch_visits_every_sample_once_with_its_label() {
    let folder = TempDir::new().unwrap();
    let loader = loader(&draw_images(folder.path(), 10), &config());
    let epoch = batches(&loader, 0);
    assert_eq!(loader.batches(), 3);
    assert_eq!(epoch.iter().map(|batch| batch.samples.len()).collect::<Vec<_>>(), [4, 4, 2]);
    for Batch { images, labels, samples, height, width, .. } in &epoch {
        assert_eq!((*height, *width, images.len()), (48, 48, samples.len() * 3 * 48 * 48));
        assert_eq!(labels, samples, "each sample of this test is its own class");
    }
    let mut visited: Vec<usize> = epoch.into_iter().flat_map(|batch| batch.samples).collect();
    assert_ne!(visited, (0..10).collect::<Vec<_>>(), "shuffled");
    visited.sort_unstable();
    assert_eq!(visited, (0..10).collect::<Vec<_>>());
}

#[test]
fn the_number_of_workers_changes_no_byte() {
    let folder = TempDir::new().unwrap();
    let images = draw_images(folder.path(), 11);
    let epoch =
        |workers| batches(&TrainLoader::new(samples(&images), &config(), workers, Part::WHOLE), 5);
    let alone = epoch(1);
    assert_eq!(alone, epoch(2));
    assert_eq!(alone, epoch(7));
}

#[test]
fn the_parts_of_all_ranks_are_the_batches_of_one_process() {
    let folder = TempDir::new().unwrap();
    let images = draw_images(folder.path(), 10);
    let whole = batches(&loader(&images, &config()), 3);
    let part = |index| {
        let part = Part { index, of: 3 };
        batches(&TrainLoader::new(samples(&images), &config(), 2, part), 3)
    };
    let parts = [0, 1, 2].map(part);
    for (step, whole) in whole.iter().enumerate() {
        let mine = parts.iter().map(|part| &part[step]).filter(|batch| !batch.blank);
        let joined = |one: fn(&Batch) -> &[usize]| mine.clone().flat_map(one).copied();
        assert!(joined(|batch| &batch.samples).eq(whole.samples.iter().copied()));
        assert!(joined(|batch| &batch.labels).eq(whole.labels.iter().copied()));
        assert!(mine.clone().flat_map(|batch| &batch.images).eq(&whole.images));
    }
    let counts = parts.map(|part| part.iter().map(Batch::count).collect::<Vec<_>>());
    assert_eq!(counts, [[1, 1, 0], [1, 1, 1], [2, 2, 1]], "the last batch has two images");
}

#[test]
fn epochs_and_seeds_differ() {
    let folder = TempDir::new().unwrap();
    let images = draw_images(folder.path(), 8);
    let first = batches(&loader(&images, &config()), 0);
    assert_ne!(first, batches(&loader(&images, &config()), 1));
    assert_ne!(first, batches(&loader(&images, &Config { seed: 4, ..config() }), 0));
}

#[test]
fn a_resumed_epoch_is_the_tail_of_the_whole_one() {
    let folder = TempDir::new().unwrap();
    let loader = loader(&draw_images(folder.path(), 10), &config());
    let whole = batches(&loader, 2);
    for first in 0..=3 {
        let tail: Vec<Batch> = loader.epoch(2, first).collect::<Result<_>>().unwrap();
        assert_eq!(tail, whole[first..]);
    }
    assert!(loader.epoch(2, 9).next().is_none());
}

#[test]
fn the_cache_changes_no_byte_and_spares_the_files() {
    let folder = TempDir::new().unwrap();
    let images = draw_images(folder.path(), 9);
    let uncached = loader(&images, &config());
    let mut caching = config();
    caching.data.cache_mib = 64;
    let cached = loader(&images, &caching);
    assert_eq!(batches(&uncached, 0), batches(&cached, 0));
    let second = batches(&uncached, 1);

    fs::remove_dir_all(folder.path()).unwrap();
    assert_eq!(second, batches(&cached, 1));
    assert!(uncached.epoch(1, 0).next().unwrap().is_err());
}

#[test]
fn an_image_that_fails_in_the_middle_is_named_and_ends_the_epoch() {
    let folder = TempDir::new().unwrap();
    let images = draw_images(folder.path(), 12);
    fs::write(&images[7], b"not an image").unwrap();
    // Often, as workers may or may not be ahead of the failure.
    for epoch in 0..50 {
        let outcomes: Vec<Result<Batch>> = loader(&images, &config()).epoch(epoch, 0).collect();
        let failed = outcomes.iter().position(Result::is_err).expect("one image is broken");
        assert_eq!(failed, outcomes.len() - 1, "a failure ends the epoch");
        let error = outcomes[failed].as_ref().unwrap_err().to_string();
        assert!(error.contains("7.png"), "{error}");
    }
}

#[test]
fn an_image_too_small_for_the_crop_is_named_with_its_remedy() {
    let folder = TempDir::new().unwrap();
    let images = draw_images(folder.path(), 3);
    let preprocess = PreprocessConfig { crop: 200, ..preprocess() };
    let loader = loader(&images, &Config { preprocess, ..config() });
    let error = loader.epoch(0, 0).next().unwrap().unwrap_err().to_string();
    assert!(error.contains(".png") && error.contains("lower `preprocess.crop`"), "{error}");
}

#[test]
fn dropping_an_epoch_early_ends_its_work() {
    let folder = TempDir::new().unwrap();
    let one = &draw_images(folder.path(), 1)[0];
    let loader = loader(&vec![one.clone(); 100_000], &config());
    let start = Instant::now();
    for batches_taken in 0..4 {
        let mut epoch = loader.epoch(0, 0);
        epoch.by_ref().take(batches_taken).for_each(|batch| drop(batch.unwrap()));
    }
    // The whole epoch would take a minute.
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
}

#[test]
fn no_samples_give_no_batches() {
    assert!(loader(&[], &config()).epoch(0, 0).next().is_none());
}

#[test]
fn evaluation_images_come_in_order_and_a_bad_one_does_not_stop_the_rest() {
    let folder = TempDir::new().unwrap();
    let images = draw_images(folder.path(), 6);
    fs::write(&images[2], b"not an image").unwrap();
    for workers in [1, 2, 7] {
        let loaded = EvalImages::new(images.clone(), preprocess(), 10, workers);
        let outcomes: Vec<_> = loaded.collect();
        assert_eq!(outcomes.len(), 6);
        for (i, outcome) in outcomes.into_iter().enumerate() {
            let Ok(image) = outcome else {
                assert_eq!(i, 2);
                continue;
            };
            assert_eq!(image.rgb.width(), 35 + 3 * i as u32);
            assert_eq!(image.input.len(), 3 * image.geometry.padded.area());
            let restored = image.geometry.restore(&image.input[..image.geometry.padded.area()]);
            assert_eq!(restored.len(), image.geometry.original.area());
        }
    }
}

#[test]
fn a_single_pixel_can_be_evaluated() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("dot.png");
    RgbImage::from_pixel(1, 1, Rgb([255, 0, 0])).save(&path).unwrap();
    let preprocess = PreprocessConfig { upscale_short_side: 0, ..preprocess() };
    let image = EvalImages::new(vec![path], preprocess, 1, 1).next().unwrap().unwrap();
    assert_eq!(image.input[..32 * 32], [1.0; 32 * 32]);
    assert_eq!(image.geometry.restore(&image.input[..32 * 32]), [1.0]);
}
