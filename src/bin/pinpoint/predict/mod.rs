//! `pinpoint predict`: class and mask of new images.

mod inputs;
mod outputs;

use std::{
    fs, io,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::mpsc::{self, RecvTimeoutError},
    thread,
    time::Duration,
};

use anyhow::{Context, bail, ensure};
use image::RgbImage;
use pinpoint::{
    Config, PredictOptions, Predictor,
    data::{Sample, image::read_rgb, loader::prefetch},
    device,
    metrics::ThresholdRule,
    predict::Tiling,
    refine::Preset,
    run::{PartFile, RunDir},
    workflow::{open_dataset, require_memory_to_predict},
};
use serde_json::json;
use unicode_width::UnicodeWidthStr as _;

use self::{
    inputs::{Input, Inputs},
    outputs::{Line, Wanted, Writer},
};
use crate::{
    choice::{PRESETS, named},
    interrupt::{self, interrupted},
    machine::use_threads,
    ui::{Progress, Ui},
};

/// How long a signal may wait for an image that is being decoded.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Find the object in new images: masks, classes, boxes
#[derive(Debug, clap::Args)]
pub(crate) struct Predict {
    /// Run directory written by `pinpoint train`
    run: PathBuf,

    /// Images: files, folders, patterns such as "slides/*.png", or `-` for a list on stdin; the test
    /// images of the dataset that the run was trained on by default
    #[arg(value_name = "IMAGE")]
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

    #[command(flatten)]
    wanted: Wanted,

    /// Print one JSON line per image
    #[arg(long)]
    json: bool,

    /// Device to compute on: `cpu`, or a GPU backend of this build
    #[arg(long, value_name = "DEVICE", default_value = "cpu")]
    device: String,

    /// Threads to use; all cores by default
    #[arg(long, value_name = "N")]
    threads: Option<usize>,

    /// Longest side of the windows that large images are cut into
    #[arg(long, value_name = "PIXELS", hide_short_help = true)]
    tile: Option<usize>,

    /// Margin of a window in pixels; by default as wide as the network's receptive field reaches
    #[arg(long, value_name = "PIXELS", hide_short_help = true)]
    halo: Option<usize>,
}

impl Predict {
    pub(crate) fn run(self, ui: &mut Ui) -> anyhow::Result<ExitCode> {
        let threads = use_threads(self.threads)?;
        let options = self.options()?;
        let run = RunDir::open(&self.run)?;
        let config = run.config()?;
        let out = self.out.unwrap_or_else(|| run.root().join("predictions"));
        let inputs = if self.images.is_empty() {
            Inputs::of(&test_split(&run, &config)?)
        } else {
            Inputs::find(&self.images, &out, || io::read_to_string(io::stdin()))
                .context("cannot read the list of images from stdin")?
        };
        inputs.problems.iter().for_each(|problem| ui.warn(problem));
        if inputs.images.is_empty() {
            bail!("there is no image to predict");
        }
        // A folder that is not there yet holds no images.
        if fs::canonicalize(&out).is_ok_and(|out| inputs.lie_below(&out)) {
            ui.warn(&format!(
                "predictions are written into `{}`, where their images are: who reads a dataset \
                 from there takes them for ground truth, so give another folder by `--out`",
                out.display()
            ));
        }

        // Told once, and not for each image.
        if out.exists()
            && let Err(error) = PartFile::beside(&out.join("mask"))
        {
            bail!(
                "cannot write into `{}` ({error})\nhint: give another folder by `--out`",
                out.display()
            );
        }

        // Decoding begins while the weights are read.
        let max_megapixels = config.data.max_megapixels;
        let (preprocess, max_pixels) = (config.preprocess.clone(), options.tiling.max_pixels());
        let paths = inputs.images.iter().map(|input| input.path.clone()).collect();
        let mut prepared = prefetch(paths, preprocess, max_megapixels, threads, max_pixels);
        let device = device::open(&self.device)?;
        let predictor = Predictor::load(&run, &device)?;
        predictor.note().into_iter().for_each(|note| ui.note(note));
        // A GPU's memory is not the machine's.
        if device::is_cpu(&device) {
            let paths: Vec<&Path> = inputs.images.iter().map(|input| &*input.path).collect();
            require_memory_to_predict(&predictor, &paths, &options, threads)?;
        }
        interrupt::listen()?;
        let mut writer = Writer::new(&out, &inputs, predictor.classes(), self.wanted);

        let images = inputs.images.len();
        let classes = predictor.classes().iter();
        let mut results = Results {
            progress: (images > 1).then(|| ui.progress(images as u64, "predicting")),
            ui,
            json: self.json,
            class_width: classes.map(|class| class.width()).max().unwrap_or_default(),
            images,
            done: 0,
            failed: inputs.problems.len(),
        };
        for input in &inputs.images {
            // A file that takes long to decode must not keep a signal waiting.
            let Some(prepared) = prepared.next_unless(interrupt::requested) else { break };
            let outcome = prepared.map_err(Into::into).and_then(|prepared| {
                let (image, prediction) = match prepared {
                    Some(image) => predictor.predict_prepared(image, &input.path, &options)?,
                    None => {
                        let image = read_large(&input.path, max_megapixels)?;
                        let prediction = predictor.predict_named(&image, &input.path, &options)?;
                        (image, prediction)
                    }
                };
                writer.write(input, &image, &prediction)
            });
            results.count(input, outcome);
        }
        if let Err(error) = writer.finish() {
            results.ui.warn(&format!("{error:#}"));
            results.failed += 1;
        }
        Ok(results.close())
    }

    fn options(&self) -> anyhow::Result<PredictOptions> {
        let threshold = self.threshold;
        let Some(threshold) = threshold.ready() else {
            bail!(
                "`--threshold {threshold}` needs images with masks\n\
                 hint: `pinpoint evaluate` finds it; give its number here"
            );
        };
        let tile = self.tile.unwrap_or(Tiling::default().tile);
        if !(64..=16_384).contains(&tile) {
            bail!("`--tile` must be from 64 to 16384 pixels");
        }
        let tiling = Tiling { tile, halo: self.halo };
        Ok(PredictOptions { crf: self.crf.map(Preset::params), threshold, tiling, class: None })
    }
}

/// The test images of the dataset that a run was trained on.
fn test_split(run: &RunDir, config: &Config) -> anyhow::Result<Vec<Sample>> {
    let known = run.inputs()?.and_then(|inputs| inputs.data);
    let source = known.with_context(|| {
        let run = run.root().display();
        format!(
            "`{run}` does not say which dataset it was trained on\nhint: name the images to predict"
        )
    })?;
    let dataset = open_dataset(&source, config)?;
    ensure!(
        !dataset.test.is_empty(),
        "`{}` has no test images\nhint: name the images to predict",
        dataset.root.display()
    );
    Ok(dataset.test)
}

/// Decodes in the background, so that a signal need not wait for the end of it.
fn read_large(path: &Path, max_megapixels: u32) -> anyhow::Result<RgbImage> {
    let (send, receive) = mpsc::channel();
    let file = path.to_owned();
    thread::spawn(move || send.send(read_rgb(&file, max_megapixels)));
    loop {
        match receive.recv_timeout(POLL_INTERVAL) {
            Ok(image) => return Ok(image?),
            Err(RecvTimeoutError::Timeout) if !interrupt::requested() => {}
            Err(_) => bail!("interrupted while reading `{}`", path.display()),
        }
    }
}

/// What became of the images, told as it happens.
struct Results<'a> {
    ui: &'a mut Ui,
    json: bool,
    progress: Option<Progress>,
    /// Columns of the longest class.
    class_width: usize,
    images: usize,
    done: usize,
    failed: usize,
}

impl Results<'_> {
    fn count(&mut self, input: &Input, outcome: anyhow::Result<Line<'_>>) {
        let Self { ui, json, class_width, .. } = self;
        let image = input.path.display().to_string();
        let mut told = || match &outcome {
            Ok(line) if *json => ui.print(&line.to_json()),
            Ok(line) => ui.print(&line.to_text(*class_width)),
            Err(error) => {
                ui.warn(&format!("{error:#}"));
                if *json {
                    ui.print(&json!({ "image": image, "error": format!("{error:#}") }).to_string());
                }
            }
        };
        match &self.progress {
            Some(progress) => {
                progress.aside(told);
                progress.inc(1);
            }
            None => told(),
        }
        match outcome {
            Ok(_) => self.done += 1,
            Err(_) => self.failed += 1,
        }
    }

    /// 0 if everything asked for was done, 1 if something failed, 2 if nothing was done.
    fn close(self) -> ExitCode {
        let Self { ui, progress, images, done, failed, .. } = self;
        drop(progress);
        if interrupt::requested() && done < images {
            let text = format!("{done} of {images} images done; name the others to go on");
            return interrupted(ui, &text);
        }
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
