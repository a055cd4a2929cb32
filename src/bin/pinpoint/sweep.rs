//! `pinpoint sweep`: every method of a settings file trained, scored and compared.

use std::{path::PathBuf, process::ExitCode};

use pinpoint::{
    config::Experiment, metrics::ThresholdRule, model::known::KnownFile, refine::Preset,
};

use crate::{
    choice::{PRESETS, named},
    data_args::{LayoutArgs, MaskArgs},
    study::{Changes, Study, seed},
    ui::Ui,
    weight_files,
};

/// Train, score and compare every method of a settings file
#[derive(Debug, clap::Args)]
pub(crate) struct Sweep {
    /// Settings file whose `[sweep]` lists methods and seeds
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Dataset to learn from and to score on
    #[arg(long, value_name = "PATH")]
    data: PathBuf,

    /// Folder for the runs and their comparison; what is finished there is not done again
    #[arg(long, value_name = "DIR")]
    out: PathBuf,

    /// Only these rows, separated by commas
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    methods: Vec<String>,

    /// These seeds instead of the file's, separated by commas
    #[arg(long, value_name = "N,…", value_delimiter = ',', value_parser = seed)]
    seeds: Vec<u64>,

    /// Change one setting of all rows, as in `--set train.batch_size=4`; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,

    /// Passes over the training set, for all rows
    #[arg(long, value_name = "N")]
    epochs: Option<usize>,

    /// Weights to start from: a `.safetensors` or `.pth` file, or what `pinpoint weights get`
    /// fetched; U-Net starts from drawn ones
    #[arg(long, value_name = "FILE|NAME", value_parser = weight_files::file_or_name())]
    weights: Option<PathBuf>,

    /// Score a second time with maps snapped to the edges of their image
    #[arg(long, value_name = "PRESET", value_parser = named::<Preset>(PRESETS))]
    crf: Option<Preset>,

    /// Where maps are cut, as for `pinpoint evaluate`
    #[arg(long, value_name = "RULE", default_value = "0.5")]
    threshold: ThresholdRule,

    /// Tell methods the true class when they are scored, as the paper does
    #[arg(long)]
    oracle_label: bool,

    /// Also tell the class from features of `--weights` under the maps and beside them
    #[arg(long, requires = "weights")]
    decidability: bool,

    #[command(flatten)]
    layout: LayoutArgs,

    #[command(flatten)]
    masks: MaskArgs,

    /// Where to compute
    #[arg(long, value_name = "DEVICE", default_value = "cpu")]
    device: String,

    /// Threads to use; all cores by default
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
}

impl Sweep {
    pub(crate) fn run(self, ui: &mut Ui) -> anyhow::Result<ExitCode> {
        let Self { methods, seeds, masks, set, epochs, .. } = self;
        let weights = self.weights.as_deref().and_then(KnownFile::at);
        Study {
            experiment: Experiment::load(&self.file)?,
            changes: Changes { methods, seeds, masks, set, epochs, weights },
            data: self.data,
            classes: None,
            out: self.out,
            weights: self.weights,
            crf: self.crf,
            threshold: self.threshold,
            oracle_label: self.oracle_label,
            decidability: self.decidability,
            layout: self.layout.layout,
            images: self.layout.images,
            device: self.device,
            threads: self.threads,
        }
        .run(ui)
    }
}
