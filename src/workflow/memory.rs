//! Refuses work that needs more memory than there is, before it starts.

use std::{fs, path::Path};

use dense_crf::Params;
use rayon::prelude::*;

use crate::{
    config::{Config, PreprocessConfig},
    data::{
        image::read_size,
        preprocess::{EvalGeometry, Size},
    },
    device,
    error::{Error, Result},
    model::footprint,
    predict::{PredictOptions, Predictor},
    train::TrainingTask,
};

/// Refuses work that needs more memory than this machine has, which is known on Linux only.
fn require_memory(bytes: f64, work: &str, remedy: &str) -> Result<()> {
    const GIB: f64 = 1024.0 * 1024.0 * 1024.0;
    let Some(available) = memory_bytes().filter(|memory| bytes > *memory) else { return Ok(()) };
    Err(Error::Memory {
        problem: format!(
            "{work} needs about {:.1} GiB of memory, and this machine has {:.1} GiB",
            bytes / GIB,
            available / GIB
        ),
        remedy: remedy.to_owned(),
    })
}

/// Refuses training that would run out of memory on the processor; the memory of other devices is
/// not known.
pub(super) fn require_memory_of(task: &TrainingTask<'_>) -> Result<()> {
    let TrainingTask { config, dataset, device, ranks, .. } = task;
    if !device::is_cpu(device) {
        return Ok(());
    }
    let remedy = match config.method.as_str() {
        "probe" => "lower `probe.memory_mib`, `probe.cells` or `preprocess.shrink_short_side`",
        "unet" => "lower `train.batch_size`, `preprocess.crop` or `unet.width`",
        _ => "lower `train.batch_size`, `preprocess.crop` or `pool.maps_per_class`",
    };
    // With this process's share of each batch.
    let mut share = Config::clone(config);
    share.train.batch_size = config.train.batch_size.div_ceil(ranks.size());
    let bytes = footprint::of_training(&share, dataset.classes.len(), dataset.train.len());
    require_memory(bytes, "training", remedy)
}

/// Refuses a prediction that would run out of memory; `workers` threads decode the images.
pub fn require_memory_to_predict(
    predictor: &Predictor,
    images: &[&Path],
    options: &PredictOptions,
    workers: usize,
) -> Result<()> {
    let work = ImageWork {
        predictor: Some(predictor),
        preprocess: predictor.preprocess(),
        max_megapixels: predictor.config().data.max_megapixels,
        max_pixels: Some(options.tiling.max_pixels()),
        waiting: workers + 1,
        crf: options.crf,
        refined: 1,
    };
    work.require_memory(images, "predicting", "lower `--tile` or `--threads`, or shrink the image")
}

/// Prediction or evaluation of images, as far as it needs memory.
pub(super) struct ImageWork<'a> {
    /// The model that is run on them; `None` for saved maps.
    pub(super) predictor: Option<&'a Predictor>,
    pub(super) preprocess: &'a PreprocessConfig,
    pub(super) max_megapixels: u32,
    /// Images of more pixels are held one at a time, and passed through the network in windows of
    /// this many.
    pub(super) max_pixels: Option<usize>,
    /// Number of images that are held beside the one in the network.
    pub(super) waiting: usize,
    pub(super) crf: Option<Params>,
    /// Number of images that the CRF refines at a time.
    pub(super) refined: usize,
}

impl ImageWork<'_> {
    /// Refuses the work if the largest image needs more memory than there is, by the headers of the
    /// files.
    ///
    /// An image whose header cannot be read is passed over: decoding it will fail with its name.
    pub(super) fn require_memory(&self, images: &[&Path], work: &str, remedy: &str) -> Result<()> {
        let sizes = images.par_iter().filter_map(|path| {
            let (width, height) = read_size(path, self.max_megapixels).ok()?;
            let size = Size { width, height };
            Some((self.bytes(size), size, *path))
        });
        let Some((bytes, size, path)) = sizes.max_by(|a, b| a.0.total_cmp(&b.0)) else {
            return Ok(());
        };
        let Size { width, height } = size;
        let work = format!("{work} `{}` of {width}×{height} pixels", path.display());
        require_memory(bytes, &work, remedy)
    }

    /// Bytes that images of this size need.
    fn bytes(&self, size: Size) -> f64 {
        let EvalGeometry { original, padded, .. } = EvalGeometry::new(size, self.preprocess);
        let whole = original.area().max(padded.area());
        let window = self.max_pixels.map_or(whole, |most| whole.min(most));
        let held = if window < whole { whole } else { self.waiting * whole };
        let network = self.predictor.filter(|predictor| !predictor.classes().is_empty());
        let network = network.map_or(0.0, |predictor| {
            footprint::of_prediction(predictor.config(), predictor.classes().len(), window as f64)
        });
        let crf = self.crf.map_or(0, |params| {
            let [height, width] = size.rows_columns();
            // What needs more is done in pieces.
            let needed = params.estimated_bytes(width, height, 2).unwrap_or(usize::MAX);
            self.refined * needed.min(params.max_bytes)
        });
        network + footprint::of_waiting(held as f64) + crf as f64
    }
}

/// Memory and swap of the machine, or what its container may use of them.
fn memory_bytes() -> Option<f64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let machine =
        1024.0 * (kib_of(&text, "MemTotal:")? + kib_of(&text, "SwapTotal:").unwrap_or(0.0));
    // The text is `max` where there is no limit.
    let container = fs::read_to_string("/sys/fs/cgroup/memory.max").ok();
    let container = container.and_then(|text| text.trim().parse().ok());
    Some(container.map_or(machine, |limit: f64| limit.min(machine)))
}

/// A number in KiB from a table such as `/proc/meminfo`.
fn kib_of(table: &str, key: &str) -> Option<f64> {
    let line = table.lines().find_map(|line| line.strip_prefix(key))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_read_in_kib_and_nothing_is_known_of_an_odd_one() {
        assert_eq!(kib_of("MemFree: 1 kB\nMemTotal:  2048 kB\n", "MemTotal:"), Some(2048.0));
        assert_eq!(kib_of("MemTotal: much", "MemTotal:"), None);
    }

    #[test]
    fn the_largest_image_decides_and_a_large_one_is_held_once() {
        let predictor = Predictor::untrained("all-ones").unwrap();
        let work = |max_pixels| ImageWork {
            predictor: Some(&predictor),
            preprocess: predictor.preprocess(),
            max_megapixels: 1_000_000,
            max_pixels,
            waiting: 3,
            crf: None,
            refined: 2,
        };
        let size = Size { width: 100, height: 50 };
        // Four numbers of four bytes for each pixel.
        assert_eq!(work(None).bytes(size), 3.0 * 5000.0 * 16.0);
        assert_eq!(work(Some(4999)).bytes(size), 5000.0 * 16.0);
        let params = Params::glas();
        let refined = ImageWork { crf: Some(params), ..work(None) };
        let each = (refined.bytes(size) - work(None).bytes(size)) / 2.0;
        assert_eq!(each, params.estimated_bytes(100, 50, 2).unwrap() as f64);

        let folder = tempfile::tempdir().unwrap();
        let image = |name: &str, width: u32, height: u32| {
            let path = folder.path().join(name);
            // What a header of BMP says is believed before any pixel is looked for.
            let mut header = b"BM\0\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0".to_vec();
            header.extend([width, height].map(u32::to_le_bytes).as_flattened());
            header.extend([1, 0, 24, 0]);
            header.resize(54, 0);
            fs::write(&path, header).unwrap();
            path
        };
        let (small, huge) = (image("small.bmp", 9, 9), image("huge.bmp", 60_000, 60_000));
        let missing = folder.path().join("missing.png");
        let many = ImageWork { waiting: 10_000, ..work(None) };
        let require = |images: &[&Path]| many.require_memory(images, "scoring", "shrink it");
        assert!(require(&[&small, &missing]).is_ok());
        let outcome = require(&[&small, &huge, &missing]);
        assert_eq!(outcome.is_err(), memory_bytes().is_some());
        if let Err(error) = outcome {
            let message = error.to_string();
            assert!(message.contains("huge.bmp` of 60000×60000"), "{message}");
            assert!(message.contains("shrink it"), "{message}");
        }
    }

    #[test]
    fn more_than_any_machine_has_is_refused_where_it_is_known() {
        let outcome = require_memory(1e18, "this", "do less");
        assert_eq!(outcome.is_err(), memory_bytes().is_some());
        assert!(require_memory(1.0, "this", "do less").is_ok());
    }
}
