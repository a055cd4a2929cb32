//! `pinpoint train`: a dataset in, a run directory out.

use std::{
    path::{Path, PathBuf},
    process::{self, ExitCode},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Instant,
};

use anyhow::{Context, bail};
use pinpoint::{
    config::Config,
    data::{Dataset, Layout, split::cut_validation},
    device,
    method::Terms,
    model::footprint,
    report::training_curves,
    run::RunDir,
    train::{Ending, EpochRecord, Event, Observer, TrainingTask, fit},
};

use crate::{
    choice,
    machine::require_memory,
    overrides::Overrides,
    processes::{Processes, agree},
    ui::{Progress, Ui},
    weights,
};

/// Train on a dataset of labelled images
#[derive(Debug, clap::Args)]
pub(crate) struct Train {
    /// Dataset to learn from; `pinpoint data check` shows how it is read
    #[arg(long, value_name = "PATH")]
    data: PathBuf,

    /// Run directory to write
    #[arg(long, value_name = "RUN")]
    out: PathBuf,

    #[command(flatten)]
    overrides: Overrides,

    /// How the dataset is arranged, if it cannot be told
    #[arg(long, value_parser = choice::layout())]
    layout: Option<Layout>,

    /// Where the images of a CSV dataset are, if not beside it
    #[arg(long, value_name = "DIR")]
    images: Option<PathBuf>,

    /// Weights to start from: a `.safetensors` or `.pth` file, or what `pinpoint weights get` fetched
    #[arg(long, value_name = "FILE|NAME", value_parser = weights::file_or_name())]
    weights: Option<PathBuf>,

    /// Where to compute
    #[arg(long, value_name = "DEVICE", default_value = "cpu")]
    device: String,

    /// Threads to use; all cores by default
    #[arg(long, value_name = "N")]
    threads: Option<usize>,

    /// Continue the run in `--out`
    #[arg(long)]
    resume: bool,

    /// Bind the run to every byte of its images, and not to a sample of each
    #[arg(long)]
    hash_images: bool,
}

impl Train {
    pub(crate) fn run(self, ui: &mut Ui) -> anyhow::Result<ExitCode> {
        let Self {
            data,
            out,
            overrides,
            layout,
            images,
            weights,
            device,
            threads,
            resume,
            hash_images,
        } = self;
        let processes = Processes::join()?;
        let ranks = processes.ranks;
        if !ranks.is_first() {
            ui.silence();
        }
        let prepared = || {
            let threads = use_threads(threads)?;
            let config = overrides.settings(weights.as_deref())?;
            weights::warn_of(weights.as_deref(), &config, ui);
            let device = device::open(&device)?;
            let dataset = open_data(&data, layout, images, &config)?;
            for note in &dataset.notes {
                ui.note(note);
            }
            let run = match resume {
                true if ranks.is_first() => RunDir::reopen(&out, &config)?,
                true => RunDir::open(&out)?,
                false => RunDir::plan(&out)?,
            };
            Ok((threads, config, device, dataset, run))
        };
        let (threads, config, device, dataset, run) = agree(&ranks, prepared())?;
        let task = TrainingTask {
            config: &config,
            dataset: &dataset,
            weights: weights.as_deref(),
            device,
            workers: threads,
            every_byte: hash_images,
            ranks,
        };
        train(&task, &run, ui)
    }
}

/// Opens a dataset to learn from, with a validation split.
pub(crate) fn open_data(
    data: &Path,
    layout: Option<Layout>,
    images: Option<PathBuf>,
    config: &Config,
) -> anyhow::Result<Dataset> {
    let mut dataset = Dataset::open(data, &config.data.open_options(layout, images))?;
    dataset.require_usable()?;
    cut_validation(&mut dataset, config.data.valid_fraction, config.seed);
    if dataset.classes.len() < 2 {
        bail!(
            "`{}` has one class only, so there is nothing to tell apart\n\
             hint: add images of at least one other class, such as images without the object",
            data.display()
        );
    }
    Ok(dataset)
}

/// Trains with progress on the terminal; Ctrl-C leaves a run that can be resumed.
pub(crate) fn train(
    task: &TrainingTask<'_>,
    run: &RunDir,
    ui: &mut Ui,
) -> anyhow::Result<ExitCode> {
    let stop = agree(&task.ranks, require_memory_of(task).and_then(|()| listen()))?;
    let mut watcher = Watcher::new(ui, run, stop);
    let ending = fit(task, run, &mut watcher);
    watcher.close();
    match ending? {
        Ending::Finished(best) => {
            let kept = best.map_or("the last epoch".to_owned(), |epoch| format!("epoch {epoch}"));
            ui.note(&format!("done; `{}` holds {kept}", run.best().display()));
            Ok(ExitCode::SUCCESS)
        }
        Ending::Interrupted => {
            ui.note("interrupted; continue with the same command and `--resume`");
            Ok(ExitCode::from(1))
        }
    }
}

/// Refuses training that could only end for want of memory; that of other devices is not known.
pub(crate) fn require_memory_of(task: &TrainingTask<'_>) -> anyhow::Result<()> {
    let TrainingTask { config, dataset, device, ranks, .. } = task;
    if !device::is_cpu(device) {
        return Ok(());
    }
    let remedy = match config.method.as_str() {
        "probe" => "lower `probe.memory_mib`, `probe.cells` or `preprocess.shrink_short_side`",
        "unet" => "lower `train.batch_size`, `preprocess.crop` or `unet.width`",
        _ => "lower `train.batch_size`, `preprocess.crop` or `pool.maps_per_class`",
    };
    // Of a process's share of each batch.
    let mut share = Config::clone(config);
    share.train.batch_size = config.train.batch_size.div_ceil(ranks.size());
    let bytes = footprint::of_training(&share, dataset.classes.len(), dataset.train.len());
    require_memory(bytes, "training", remedy)
}

/// Turns Ctrl-C into a wish to stop; said twice, it stops at once.
///
/// Files are replaced whole, so that neither loses what was saved.
pub(crate) fn listen() -> anyhow::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    let asked = Arc::clone(&stop);
    ctrlc::set_handler(move || {
        if asked.swap(true, Ordering::Relaxed) {
            process::exit(130);
        }
    })
    .context("cannot listen for Ctrl-C")?;
    Ok(stop)
}

/// Threads that may be asked for on any machine; each costs memory for its stack and its image.
const MOST_THREADS: usize = 256;

/// Makes the whole process use as many threads as asked for.
pub(crate) fn use_threads(asked: Option<usize>) -> anyhow::Result<usize> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let most = MOST_THREADS.max(2 * cores);
    let threads = match asked {
        Some(0) => bail!("`--threads` must be at least 1"),
        Some(threads) if threads > most => bail!(
            "`--threads {threads}` is more than any processor has use for\n\
             hint: this one has {cores} cores; at most {most} threads are allowed"
        ),
        Some(threads) => threads,
        None => cores,
    };
    rayon::ThreadPoolBuilder::new().num_threads(threads).build_global().context("threads")?;
    Ok(threads)
}

/// The loss, term by term if it has several.
pub(crate) fn describe(terms: &Terms) -> String {
    match (terms.foreground, terms.background) {
        (Some(foreground), Some(background)) => format!(
            "localizer {:.3}, foreground {foreground:.3}, background {background:.3}",
            terms.localizer
        ),
        _ => format!("loss {:.3}", terms.localizer),
    }
}

/// What an epoch came to, in a line.
pub(crate) fn epoch_line(record: &EpochRecord) -> String {
    let valid = record.valid_error.map_or_else(String::new, |error| {
        format!(", validation error {error:.2} %{}", if record.best { " (best)" } else { "" })
    });
    let terms = Terms {
        localizer: record.loss_localizer,
        foreground: record.loss_foreground,
        background: record.loss_background,
    };
    format!(
        "epoch {}: {}, training error {:.2} %{valid}, {:.1} s",
        record.epoch,
        describe(&terms),
        record.train_error,
        record.seconds,
    )
}

/// Draws how a run has gone so far.
pub(crate) fn draw_curves(run: &RunDir) -> pinpoint::Result<()> {
    run.write_curves(&training_curves(&run.records()?))
}

/// Training, as the terminal shows it.
struct Watcher<'a> {
    ui: &'a mut Ui,
    run: &'a RunDir,
    stop: Arc<AtomicBool>,
    progress: Option<Progress>,
    started: Instant,
    images: usize,
    mistakes: f64,
}

impl<'a> Watcher<'a> {
    fn new(ui: &'a mut Ui, run: &'a RunDir, stop: Arc<AtomicBool>) -> Self {
        let started = Instant::now();
        Self { ui, run, stop, progress: None, started, images: 0, mistakes: 0.0 }
    }

    fn begin(&mut self, epochs: usize, steps: usize, (epoch, step): (usize, usize)) {
        if (epoch, step) != (0, 0) {
            self.ui.note(&format!("going on from epoch {epoch}, step {step}"));
        }
        let progress = self.ui.progress((epochs * steps) as u64, "training");
        progress.skip((epoch * steps + step) as u64);
        self.progress = Some(progress);
    }

    fn step(&mut self, epoch: usize, terms: &Terms, images: usize, mistakes: f64) {
        self.images += images;
        self.mistakes += mistakes;
        if let Some(progress) = &self.progress {
            let speed = self.images as f64 / self.started.elapsed().as_secs_f64();
            progress.describe(format!(
                "epoch {epoch}: {}, error {:.1} %, {speed:.1} images/s",
                describe(terms),
                100.0 * self.mistakes / self.images as f64,
            ));
            progress.inc(1);
        }
    }

    fn working(&mut self, what: &'static str, done: usize, total: usize) {
        if done == 0 {
            let before = self.progress.replace(self.ui.progress(total as u64, what));
            before.into_iter().for_each(Progress::finish);
        } else if let Some(progress) = &self.progress {
            progress.inc(1);
        }
    }

    fn epoch(&mut self, record: &EpochRecord) {
        (self.images, self.mistakes, self.started) = (0, 0.0, Instant::now());
        let line = epoch_line(record);
        match &self.progress {
            Some(progress) => progress.say(&line),
            None => self.ui.note(&line),
        }
        // A picture that cannot be drawn is no reason to stop training.
        if let Err(error) = draw_curves(self.run) {
            self.ui.warn(&error.to_string());
        }
    }

    /// Takes the bar off the terminal.
    fn close(self) {
        if let Some(progress) = self.progress {
            progress.finish();
        }
    }
}

impl Observer for Watcher<'_> {
    fn observe(&mut self, event: &Event<'_>) {
        match event {
            Event::Note(text) => self.ui.note(text),
            Event::Started { epochs, steps, from } => self.begin(*epochs, *steps, *from),
            Event::Step { epoch, terms, images, mistakes, .. } => {
                self.step(*epoch, terms, *images, *mistakes);
            }
            Event::Working { what, done, total } => self.working(what, *done, *total),
            Event::Epoch(record) => self.epoch(record),
            _ => {}
        }
    }

    fn wants_to_stop(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}
