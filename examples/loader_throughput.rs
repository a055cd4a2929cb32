//! Prints how many GlaS training images a second are loaded from a folder, as one JSON line.
//!
//! ```text
//! cargo run --release --example loader_throughput -- FOLDER WORKERS EPOCHS [CACHE_MIB]
//! ```
//!
//! `bench/loader_peer.py` runs it beside a torchvision `DataLoader` that does the same work.
#![expect(clippy::print_stdout, reason = "the measurement is this program's output")]

use std::{env, error::Error, fs, path::PathBuf, time::Instant};

use pinpoint::{
    collective::Part,
    config::{AugmentConfig, Config, PreprocessConfig},
    data::{
        Sample, Truth,
        loader::{Supervision as _, TrainLoader},
    },
};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [folder, workers, epochs, rest @ ..] = &arguments[..] else {
        return Err("usage: loader_throughput FOLDER WORKERS EPOCHS [CACHE_MIB]".into());
    };
    let cache_mib = rest.first().map_or(Ok(0), |mebibytes| mebibytes.parse())?;
    let mut config =
        Config { preprocess: glas_crops(), augment: glas_variation(), ..Config::default() };
    config.train.batch_size = 32;
    config.data.cache_mib = cache_mib;
    config.data.max_megapixels = 200;
    let loader = TrainLoader::new(samples(folder)?, &config, workers.parse()?, Part::WHOLE);

    let epochs: u64 = epochs.parse()?;
    let start = Instant::now();
    let mut images = 0;
    for epoch in 0..epochs {
        for batch in loader.epoch(epoch, 0) {
            images += batch?.labels.len();
        }
    }
    let images_per_second = images as f64 / start.elapsed().as_secs_f64();
    println!("{{\"images\": {images}, \"images_per_second\": {images_per_second:.1}}}");
    Ok(())
}

fn samples(folder: &str) -> Result<Vec<Sample>, Box<dyn Error>> {
    let entries: Vec<PathBuf> = fs::read_dir(folder)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<_, _>>()?;
    let sample = |image: PathBuf| Sample {
        id: image.display().to_string(),
        image,
        label: 0,
        truth: Truth::default(),
    };
    Ok(entries.into_iter().map(sample).collect())
}

/// Half of the image reflected on each side, then a crop of 480 pixels.
fn glas_crops() -> PreprocessConfig {
    PreprocessConfig { upscale_short_side: 0, train_padding: 0.5, crop: 480, ..Default::default() }
}

fn glas_variation() -> AugmentConfig {
    AugmentConfig {
        horizontal_flip: 0.5,
        vertical_flip: 0.5,
        brightness: 0.5,
        contrast: 0.5,
        saturation: 0.5,
        hue: 0.05,
        ..Default::default()
    }
}
