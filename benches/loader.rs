//! Images a second from files to augmented batches, with the published GlaS variation.

use std::{path::Path, sync::Arc};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use image::{Rgb, RgbImage};
use pinpoint::{
    config::{AugmentConfig, PreprocessConfig},
    data::{
        Sample, Truth,
        loader::{TrainLoader, TrainSettings},
    },
};

/// Images per epoch, two batches of the published size.
const IMAGES: u32 = 64;

fn loader(criterion: &mut Criterion) {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let mut group = criterion.benchmark_group("loader");
    group.sample_size(10).throughput(Throughput::Elements(u64::from(IMAGES)));
    for (format, cache_mib) in [("jpg", 0), ("png", 0), ("jpg", 256)] {
        let samples: Arc<[Sample]> = (0..IMAGES).map(|i| draw(folder.path(), i, format)).collect();
        let loader = glas(samples, cache_mib);
        let mut epoch = 0;
        group.bench_function(format!("{format}, cache {cache_mib} MiB"), |bencher| {
            bencher.iter(|| {
                epoch += 1;
                loader
                    .epoch(epoch, 0)
                    .map(|batch| batch.expect("it was drawn").samples.len())
                    .sum::<usize>()
            });
        });
    }
}

/// Writes an image with the size, and about the detail, of a GlaS slide.
fn draw(folder: &Path, index: u32, format: &str) -> Sample {
    let pixel = |x: u32, y: u32| {
        let wave =
            |scale: f32, phase: u32| (x as f32 / scale).sin() * ((y + phase) as f32 / scale).cos();
        let grain = ((x * 7919) ^ (y * 104_729) ^ (index * 1_299_709)) % 23;
        let level = |base: f32, spread: f32, scale| {
            (base + spread * wave(scale, index)) as u8 + grain as u8
        };
        Rgb([level(170.0, 50.0, 9.0), level(110.0, 70.0, 17.0), level(160.0, 40.0, 31.0)])
    };
    let image = folder.join(format!("{index}.{format}"));
    RgbImage::from_fn(775, 522, pixel).save(&image).expect("the temporary folder is writable");
    Sample { id: image.display().to_string(), image, label: 0, truth: Truth::default() }
}

fn glas(samples: Arc<[Sample]>, cache_mib: usize) -> TrainLoader {
    let preprocess = PreprocessConfig {
        upscale_short_side: 0,
        train_padding: 0.5,
        crop: 480,
        ..Default::default()
    };
    let augment = AugmentConfig {
        horizontal_flip: 0.5,
        vertical_flip: 0.5,
        brightness: 0.5,
        contrast: 0.5,
        saturation: 0.5,
        hue: 0.05,
        ..Default::default()
    };
    let settings =
        TrainSettings { batch_size: 32, seed: 0, workers: 2, cache_mib, max_megapixels: 200 };
    TrainLoader::new(samples, preprocess, augment, settings)
}

criterion_group!(benches, loader);
criterion_main!(benches);
