//! `pinpoint evaluate`: a run, or a trivial method, scored on a dataset.

use std::{path::PathBuf, process::ExitCode};

use anyhow::{Context, bail};
use pinpoint::{
    config::DataConfig,
    data::{Dataset, Layout, OpenOptions, Split, split::cut_validation},
    device,
    evaluate::evaluate,
    metrics::{Evaluation, Protocol, ThresholdRule},
    predict::{AllOnes, Method, Trained},
    train::run::RunDir,
};
use serde_json::{Value, json};

use crate::{
    choice::{self, named},
    train::use_threads,
    ui::Ui,
};

/// Score a run on a dataset with masks
#[derive(Debug, clap::Args)]
pub(crate) struct Evaluate {
    /// Run directory written by `pinpoint train`
    #[arg(required_unless_present = "method")]
    run: Option<PathBuf>,

    /// Score a method that needs no training instead
    #[arg(long, value_enum, conflicts_with = "run")]
    method: Option<Untrained>,

    /// Dataset to score on
    #[arg(long, value_name = "PATH")]
    data: PathBuf,

    /// Which of its samples
    #[arg(long, value_parser = named::<Split>(SPLITS), default_value = "test")]
    split: Split,

    /// How the dataset is laid out, if it should not be told from its files
    #[arg(long, value_parser = choice::layout())]
    layout: Option<Layout>,

    /// Where the images of list files are, when not beside the lists
    #[arg(long, value_name = "DIR")]
    images: Option<PathBuf>,

    /// Where masks are cut: a number, `otsu` or `percentile:80`
    #[arg(long, value_name = "RULE", default_value = "0.5")]
    threshold: ThresholdRule,

    /// Threads to use; all cores by default
    #[arg(long, value_name = "N")]
    threads: Option<usize>,

    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Untrained {
    /// Every pixel is foreground
    AllOnes,
}

const SPLITS: &[&str] = &["train", "valid", "test"];

impl Evaluate {
    pub(crate) fn run(self, ui: &mut Ui) -> anyhow::Result<ExitCode> {
        let Self { run, method: _, data, split, layout, images, threshold, threads, json } = self;
        let workers = use_threads(threads)?;
        let Some(threshold) = threshold.ready() else {
            bail!("`--threshold {threshold}` must be tuned first, which is not supported yet");
        };
        let run = run.map(|run| RunDir::open(&run)).transpose()?;
        let (settings, seed) = match &run {
            Some(run) => run.config().map(|config| (config.data, config.seed))?,
            None => (DataConfig::default(), 0),
        };
        let options = OpenOptions { layout, images, mask_rule: settings.mask_rule };
        let mut dataset = Dataset::open(&data, &options)?;
        let (name, method): (&str, Box<dyn Method>) = match &run {
            Some(run) => {
                let trained = Trained::open(run, &device::cpu())?;
                trained.require_classes(&dataset)?;
                ("minmax", Box::new(trained))
            }
            None => ("all-ones", Box::new(AllOnes::default())),
        };
        if split != Split::Test {
            // The same cut as training made, so that `valid` means the same samples.
            cut_validation(&mut dataset, settings.valid_fraction, seed);
        }
        let samples = dataset.split(split).len();
        if samples == 0 {
            bail!("`{}` has no `{split}` split\nhint: see `pinpoint data check`", data.display());
        }

        let protocol = Protocol { threshold, ..Protocol::default() };
        let progress = ui.progress(samples as u64, "evaluating");
        let found = evaluate(&*method, &dataset, split, &settings, protocol, workers, |_, _| {
            progress.inc(1);
        })?;
        progress.finish();
        if json {
            ui.answer(&document(name, split, &found)?.to_string());
        } else {
            table(name, split, &found).iter().for_each(|line| ui.answer(line));
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// The answer for programs.
fn document(method: &str, split: Split, found: &Evaluation) -> anyhow::Result<Value> {
    let mut document = serde_json::to_value(&found.scores).context("plain data")?;
    document["method"] = json!(method);
    document["split"] = json!(split);
    Ok(document)
}

/// The answer for people.
fn table(method: &str, split: Split, found: &Evaluation) -> Vec<String> {
    let scores = &found.scores;
    let interval = |key: &str| {
        let interval = scores.intervals.get(key);
        interval.map_or_else(String::new, |i| format!("  [{:.2}, {:.2}]", i.low, i.high))
    };
    let rows = [
        ("classification error", "classification_error", scores.classification_error),
        ("F1 foreground", "f1_foreground", scores.mean.f1_foreground),
        ("F1 background", "f1_background", scores.mean.f1_background),
        ("IoU mean", "iou_mean", scores.mean.iou_mean),
        ("PxAP", "pxap", scores.pxap),
        ("MaxBoxAccV2", "max_box_acc_v2", scores.max_box_acc_v2),
    ];
    let mut lines = vec![format!(
        "{method} on {} {split} images, {} with masks; percent [95 % interval], threshold {}",
        scores.images,
        scores.images_with_truth,
        scores.protocol.threshold.rule()
    )];
    lines.extend(rows.into_iter().map(|(name, key, score)| {
        let score = score.map_or_else(|| "-".to_owned(), |score| format!("{score:.2}"));
        format!("  {name:22} {score:>7}{}", interval(key))
    }));
    lines
}
