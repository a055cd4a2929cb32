//! `pinpoint train`: a dataset in, a run directory out.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use pinpoint::{TrainRequest, run::RunDir};

use crate::{
    data_args::LayoutArgs,
    event_file::EventFile,
    interrupt,
    machine::use_threads,
    overrides::{Overrides, without_effect},
    processes::{Processes, agree},
    ui::Ui,
    watch, weight_files,
};

/// Train on a dataset of labelled images
#[derive(Debug, clap::Args)]
pub(crate) struct Train {
    /// Dataset to learn from; `pinpoint data check` shows how it is read
    #[arg(long, value_name = "PATH", required_unless_present = "resume")]
    data: Option<PathBuf>,

    /// Run directory to write; `runs/NAME` after the dataset by default, numbered if it exists
    #[arg(long, value_name = "RUN")]
    out: Option<PathBuf>,

    #[command(flatten)]
    overrides: Overrides,

    #[command(flatten)]
    layout: LayoutArgs,

    /// Weights to start from: a `.safetensors` or `.pth` file, or what `pinpoint weights get` fetched
    #[arg(long, value_name = "FILE|NAME", value_parser = weight_files::file_or_name())]
    weights: Option<PathBuf>,

    /// Device to compute on: `cpu`, or a GPU backend of this build (`pinpoint doctor` lists them)
    #[arg(long, value_name = "DEVICE", default_value = "cpu")]
    device: String,

    /// Threads to use; all cores by default
    #[arg(long, value_name = "N")]
    threads: Option<usize>,

    /// Continue the run in `--out`, with the data and settings it knows; `--epochs` may be raised
    #[arg(long, requires = "out")]
    resume: bool,

    /// Also write losses, errors and rates to `RUN/tensorboard` for TensorBoard
    #[arg(long)]
    tensorboard: bool,

    /// Detect changed images by every byte when the run is resumed, not only by a sample of each file
    #[arg(long)]
    hash_images: bool,
}

impl Train {
    pub(crate) fn run(self, ui: &mut Ui) -> anyhow::Result<ExitCode> {
        let Processes { ranks, .. } = &Processes::join()?;
        if !ranks.is_first() {
            ui.silence();
        }
        let (tensorboard, asked) = (self.tensorboard, self.overrides.asked());
        let prepare = || {
            let threads = Some(use_threads(self.threads)?);
            let request = TrainRequest { threads, ranks: *ranks, ..self.request()? };
            interrupt::listen()?;
            Ok(request)
        };
        let request = agree(ranks, prepare())?;
        weight_files::warn_of(request.weights.as_deref(), &request.config, ui);
        let method = &request.config.method;
        let unused = without_effect(&asked, method);
        if !unused.is_empty() {
            ui.warn(&format!(
                "{} would change nothing for `{method}`: is another `--method` meant?",
                unused.join(", ")
            ));
        }
        if tensorboard && request.config.method == "probe" {
            ui.warn("a probe has no epochs, so that `--tensorboard` has nothing to show");
        }
        // One process of several writes the run, and all that is in it.
        let events = (tensorboard && ranks.is_first()).then(|| EventFile::of(&request.out));
        let (_, code) = watch::train(&request, events, ui)?;
        Ok(code)
    }

    fn request(self) -> anyhow::Result<TrainRequest> {
        let Self { data, out, overrides, layout, weights, device, resume, .. } = self;
        let start = weights.as_deref();
        let mut request = match (resume, out) {
            (true, Some(out)) => {
                let known = TrainRequest::resume(out)?;
                TrainRequest { config: overrides.settings(start, Some(known.config))?, ..known }
            }
            (_, out) => {
                let data = data.as_deref().unwrap_or(Path::new(""));
                let out = out.unwrap_or_else(|| RunDir::unused(Path::new("runs"), data));
                TrainRequest::new(data, out, overrides.settings(start, None)?)
            }
        };
        request.data = data.map(|path| layout.of(&path)).or(request.data);
        request.weights = weights.or(request.weights);
        request.device = device;
        request.hash_images = self.hash_images;
        Ok(request)
    }
}
