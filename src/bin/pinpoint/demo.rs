//! `pinpoint demo`: the whole tool on data it draws itself.

use std::{fs, path::PathBuf, process::ExitCode, time::Instant};

use anyhow::{Context, ensure};
use pinpoint::{
    collective::Ranks,
    config::{Alignment, Backbone, Cells, Config, Evidence, Statistics, Stem, Tie},
    data::{
        Dataset, OpenOptions,
        synthetic::{self, SyntheticSpec},
    },
    device,
    metrics::Evaluation,
    run::RunDir,
    train,
};

use crate::{
    evaluate::Evaluate,
    train::{train, use_threads},
    ui::Ui,
};

/// Draw a dataset, learn where its objects are, and show the result
#[derive(Debug, clap::Args)]
pub(crate) struct Demo {
    /// Folder for the data, the run and its report
    #[arg(long, value_name = "DIR", default_value = "pinpoint-demo")]
    out: PathBuf,

    /// Passes over the training images
    #[arg(long, value_name = "N", default_value_t = 18)]
    epochs: usize,

    /// Root of every random draw
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,

    /// Threads to use; all cores by default
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
}

impl Demo {
    pub(crate) fn run(self, ui: &mut Ui) -> anyhow::Result<ExitCode> {
        let Self { out, epochs, seed, threads } = self;
        ensure!(
            !out.exists(),
            "`{}` exists already\nhint: remove it, or give another `--out`",
            out.display()
        );
        let workers = use_threads(threads)?;
        let started = Instant::now();
        let spec = SyntheticSpec { seed, ..SyntheticSpec::small() };
        let data = out.join("data");
        fs::create_dir_all(&out).with_context(|| format!("cannot create `{}`", out.display()))?;
        synthetic::write(&data, &spec, || {})?;
        ui.note(&format!(
            "drew {} images into `{}`",
            spec.train + spec.valid + spec.test,
            data.display()
        ));

        let config = settings(seed, epochs, spec.side);
        config.check()?;
        let dataset = Dataset::open(&data, &OpenOptions::default())?;
        dataset.require_usable()?;
        let run = RunDir::plan(&out.join("run"))?;
        let device = device::cpu();
        let task = train::TrainingTask {
            config: &config,
            dataset: &dataset,
            weights: None,
            device: device.clone(),
            workers,
            every_byte: false,
            ranks: Ranks::alone(),
        };
        let status = train(&task, &run, ui)?;
        if status != ExitCode::SUCCESS {
            return Ok(status);
        }

        let folder = run.root().join("report");
        let mut scoring = Evaluate::on(data);
        let ours = scoring.report_on(Some(run.root()), Some(&folder), workers, None, ui)?;
        scoring.method = Some("all-ones".to_owned());
        let ones = scoring.report_on(None, None, workers, None, ui)?;
        for line in table(&ours.evaluation, &ones.evaluation) {
            ui.answer(&line);
        }
        ui.note(&format!("report in `{}`", folder.join("report.html").display()));
        ui.note(&format!("took {:.0} s", started.elapsed().as_secs_f64()));
        Ok(ExitCode::SUCCESS)
    }
}

/// The published method, made small: a narrow network on small images, trained from scratch.
fn settings(seed: u64, epochs: usize, side: u32) -> Config {
    let mut config = Config { seed, ..Config::default() };
    config.preprocess.upscale_short_side = 0;
    config.preprocess.crop = side;
    config.preprocess.eval_multiple = 8;
    config.augment.vertical_flip = 0.5;
    config.augment.quarter_turns = true;
    config.model.backbone = Backbone::Tiny;
    config.model.stem = Stem::Deep;
    config.model.output_stride = 8;
    // A narrow network cannot do with one set of statistics for whole and masked images.
    config.model.statistics = Statistics::Separate;
    // Half of 64 pixels is too little to tell the shapes apart.
    config.model.classifier_scale = 1.0;
    // Objects fill more than a tenth of their image.
    config.pool.top = Cells::Fraction(0.3);
    config.pool.dropout = 0.2;
    config.mask.alignment = Alignment::Centres;
    config.mask.evidence = Evidence::Weighted;
    // Erasing does not pay on objects this simple, see `docs/results.md`.
    config.erase.rounds = 0;
    config.train.epochs = epochs;
    config.train.batch_size = 8;
    config.train.tie = Tie::LowerLoss;
    config.train.checkpoint_steps = 0;
    config.optimizer.learning_rate = 0.01;
    config.optimizer.decay_every = epochs.div_ceil(3).max(1) * 2;
    config.optimizer.weight_decay = 1e-4;
    config
}

/// The headline for people.
fn table(ours: &Evaluation, ones: &Evaluation) -> Vec<String> {
    let percent = |score: Option<f64>| score.map_or("-".to_owned(), |score| format!("{score:.2}"));
    let row = |name: &str, evaluation: &Evaluation| {
        let scores = &evaluation.scores;
        format!(
            "{name:12} {:>8} {:>8} {:>22}",
            percent(scores.mean.f1_foreground),
            percent(scores.mean.f1_background),
            percent(scores.classification_error)
        )
    };
    vec![
        format!(
            "{:12} {:>8} {:>8} {:>22}",
            "test images", "F1+ %", "F1- %", "classification error %"
        ),
        row("ours", ours),
        row("all-ones", ones),
    ]
}
