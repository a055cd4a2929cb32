//! `pinpoint predict`: class and mask of new images.

mod inputs;
mod outputs;

use std::{
    io,
    path::{Path, PathBuf},
    process::{self, ExitCode},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::{self, RecvTimeoutError},
    },
    thread,
    time::Duration,
};

use anyhow::{Context, bail};
use image::RgbImage;
use pinpoint::{
    config::PreprocessConfig,
    data::{
        image::read_rgb,
        loader::{EvalImage, EvalSettings, Prepared, prefetch},
        preprocess::{EvalGeometry, Normalizer, Size, check_upscaled},
    },
    device,
    metrics::ThresholdRule,
    model::footprint,
    predict::{Answer, Method, Tiling, Trained},
    refine::Preset,
    run::open_run,
};
use serde_json::json;

use self::{
    inputs::{Input, Inputs},
    outputs::{BoxFormat, Line, Wanted, Writer},
};
use crate::{
    choice::{PRESETS, named},
    machine::require_memory,
    train::use_threads,
    ui::Ui,
};

/// How long a signal may wait for an image that is being decoded.
const PATIENCE: Duration = Duration::from_millis(100);

/// Find the object in new images: masks, classes, boxes
#[derive(Debug, clap::Args)]
pub(crate) struct Predict {
    /// Run directory written by `pinpoint train`
    run: PathBuf,

    /// Images: files, folders, patterns such as "slides/*.png", or `-` for a list on stdin
    #[arg(value_name = "IMAGE", required = true)]
    images: Vec<PathBuf>,

    /// Folder to write to; `predictions` in the run by default
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,

    /// Snap masks to the edges of their images, by the dense CRF
    #[arg(long, value_name = "PRESET", value_parser = named::<Preset>(PRESETS))]
    crf: Option<Preset>,

    /// Where masks are cut: a number, `otsu` or `percentile:80`
    #[arg(long, value_name = "RULE", default_value = "0.5")]
    threshold: ThresholdRule,

    /// Also write the image with its mask coloured
    #[arg(long)]
    overlay: bool,

    /// Also write the image under its scores, from blue to red
    #[arg(long)]
    heat_map: bool,

    /// Also write the score map as a NumPy array
    #[arg(long)]
    npy: bool,

    /// Also write the mask's regions with their boxes, areas and scores
    #[arg(long, value_enum, value_name = "FORMAT")]
    boxes: Option<BoxFormat>,

    /// Print one JSON line per image
    #[arg(long)]
    json: bool,

    /// Where to compute
    #[arg(long, value_name = "DEVICE", default_value = "cpu")]
    device: String,

    /// Threads to use; all cores by default
    #[arg(long, value_name = "N")]
    threads: Option<usize>,

    /// Longest side of the windows through which large images are examined
    #[arg(long, value_name = "PIXELS", hide_short_help = true)]
    tile: Option<usize>,

    /// Pixels that a window sees beyond what it answers for; as far as the network sees by default
    #[arg(long, value_name = "PIXELS", hide_short_help = true)]
    halo: Option<usize>,
}

impl Predict {
    pub(crate) fn run(self, ui: &mut Ui) -> anyhow::Result<ExitCode> {
        let threads = use_threads(self.threads)?;
        let (wanted, tiling) = (self.wanted()?, self.tiling()?);
        let run = open_run(&self.run)?;
        let config = run.config()?;
        let out = self.out.unwrap_or_else(|| run.root().join("predictions"));
        let inputs = Inputs::find(&self.images, &out, || io::read_to_string(io::stdin()))
            .context("cannot read the list of images from stdin")?;
        inputs.problems.iter().for_each(|problem| ui.warn(problem));
        if inputs.images.is_empty() {
            bail!("there is no image to predict");
        }

        // Decoding begins while the weights are read.
        let max_megapixels = config.data.max_megapixels;
        let settings = EvalSettings { workers: threads, max_megapixels };
        let paths = inputs.images.iter().map(|input| input.path.clone()).collect();
        let mut prepared =
            prefetch(paths, config.preprocess.clone(), settings, tiling.max_pixels());
        let method = Trained::open(&run, &device::open(&self.device)?)?;
        method.note().into_iter().for_each(|note| ui.note(note));
        require_memory(
            footprint::of_prediction(&config, method.classes().len(), tiling.max_pixels() as f64),
            "a window of this size",
            "lower `--tile`",
        )?;
        let stop = listen_for_signals()?;
        let preprocess = &config.preprocess;
        let examiner =
            Examiner { method: &method, preprocess, max_megapixels, tiling, stop: &stop };
        let writer = Writer { out: &out, inputs: &inputs, classes: method.classes(), wanted };

        let mut tally = Tally {
            failed: inputs.problems.len(),
            ..Tally::new(ui, self.json, inputs.images.len())
        };
        for input in &inputs.images {
            // A file that takes long to decode must not keep a signal waiting.
            while !prepared.wait(PATIENCE) && !stop.load(Ordering::Relaxed) {}
            if stop.load(Ordering::Relaxed) {
                break;
            }
            let Some(prepared) = prepared.next() else { break };
            let outcome = prepared.map_err(Into::into).and_then(|prepared| {
                let (image, answer) = examiner.examine(input, prepared)?;
                writer.write(input, &image, answer)
            });
            tally.count(input, outcome);
        }
        Ok(tally.close())
    }

    fn wanted(&self) -> anyhow::Result<Wanted> {
        let Self { threshold, crf, overlay, heat_map, npy, boxes, .. } = *self;
        let Some(threshold) = threshold.ready() else {
            bail!(
                "`--threshold {threshold}` needs images with masks\n\
                 hint: `pinpoint evaluate` finds it; give its number here"
            );
        };
        Ok(Wanted { threshold, crf, overlay, heat_map, npy, boxes })
    }

    fn tiling(&self) -> anyhow::Result<Tiling> {
        let tile = self.tile.unwrap_or(Tiling::default().tile);
        if !(64..=16_384).contains(&tile) {
            bail!("`--tile` must be from 64 to 16384 pixels");
        }
        Ok(Tiling { tile, halo: self.halo })
    }
}

/// Set once someone asks the process to end; asked again, it ends at once.
fn listen_for_signals() -> anyhow::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    let asked = Arc::clone(&stop);
    let handler = move || {
        if asked.swap(true, Ordering::Relaxed) {
            process::exit(1);
        }
    };
    ctrlc::set_handler(handler).context("cannot listen for Ctrl-C")?;
    Ok(stop)
}

/// Asks a method about images of any size.
struct Examiner<'a> {
    method: &'a dyn Method,
    preprocess: &'a PreprocessConfig,
    max_megapixels: u32,
    tiling: Tiling,
    /// Set once the process is asked to end.
    stop: &'a AtomicBool,
}

impl Examiner<'_> {
    fn examine(&self, input: &Input, prepared: Prepared) -> anyhow::Result<(RgbImage, Answer)> {
        match prepared {
            Prepared::Ready(image) => {
                let answer = self.method.answer(&image, None);
                Ok((image.rgb, answer))
            }
            Prepared::Large => self.examine_large(&input.path),
        }
    }

    fn examine_large(&self, path: &Path) -> anyhow::Result<(RgbImage, Answer)> {
        let image = self.read_large(path)?;
        let size = Size::of(&image);
        check_upscaled(path, size, self.preprocess.upscale_short_side, self.max_megapixels)?;
        let geometry = EvalGeometry::new(size, self.preprocess);
        if geometry.padded.area() <= self.tiling.max_pixels() {
            // Large as a file, but shrunk before it is looked at.
            let input = geometry.input(&image, &Normalizer::new(self.preprocess.normalization));
            let image = EvalImage { index: 0, input, geometry, rgb: image };
            let answer = self.method.answer(&image, None);
            return Ok((image.rgb, answer));
        }
        let answer = self.method.answer_in_tiles(&image, &geometry, self.tiling);
        let answer = answer.with_context(|| {
            format!(
                "this run's method must see images whole, and this one is too large: `{}`\n\
                 hint: shrink it, or raise `--tile` if there is memory for it",
                path.display()
            )
        })?;
        Ok((image, answer))
    }
}

impl Examiner<'_> {
    /// Decodes in the background, so that a signal need not wait for the end of it.
    fn read_large(&self, path: &Path) -> anyhow::Result<RgbImage> {
        let (send, receive) = mpsc::channel();
        let (file, limit) = (path.to_owned(), self.max_megapixels);
        thread::spawn(move || send.send(read_rgb(&file, limit)));
        loop {
            match receive.recv_timeout(PATIENCE) {
                Ok(image) => return Ok(image?),
                Err(RecvTimeoutError::Timeout) if !self.stop.load(Ordering::Relaxed) => {}
                Err(_) => bail!("interrupted while reading `{}`", path.display()),
            }
        }
    }
}

/// What became of the images, told as it happens.
struct Tally<'a> {
    ui: &'a mut Ui,
    json: bool,
    progress: Option<crate::ui::Progress>,
    images: usize,
    done: usize,
    failed: usize,
}

impl<'a> Tally<'a> {
    fn new(ui: &'a mut Ui, json: bool, images: usize) -> Self {
        let progress = (images > 1).then(|| ui.progress(images as u64, "predicting"));
        Self { ui, json, progress, images, done: 0, failed: 0 }
    }

    fn count(&mut self, input: &Input, outcome: anyhow::Result<Line<'_>>) {
        let Self { ui, json, .. } = self;
        let image = input.path.display().to_string();
        let mut told = || match &outcome {
            Ok(line) if *json => ui.answer(&line.to_json()),
            Ok(line) => ui.answer(&line.to_text()),
            Err(error) => {
                ui.warn(&format!("{error:#}"));
                if *json {
                    ui.answer(
                        &json!({ "image": image, "error": format!("{error:#}") }).to_string(),
                    );
                }
            }
        };
        match &self.progress {
            Some(progress) => progress.aside(told),
            None => told(),
        }
        match outcome {
            Ok(_) => self.done += 1,
            Err(_) => self.failed += 1,
        }
        if let Some(progress) = &self.progress {
            progress.inc(1);
        }
    }

    /// 0 if everything asked for was done, 1 if something failed, 2 if nothing was done.
    fn close(self) -> ExitCode {
        if let Some(progress) = self.progress {
            progress.finish();
        }
        let Self { ui, images, done, failed, .. } = self;
        if failed > 0 || done < images {
            ui.note(&format!("{done} of {images} images done"));
        }
        match (done, failed) {
            (0, _) => ExitCode::from(2),
            (done, 0) if done == images => ExitCode::SUCCESS,
            _ => ExitCode::from(1),
        }
    }
}
