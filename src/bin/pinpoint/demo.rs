//! `pinpoint demo`: the whole tool on data it draws itself.

use std::{fs, path::PathBuf, process::ExitCode, time::Instant};

use anyhow::{Context, ensure};
use image::RgbImage;
use pinpoint::{
    config::{Alignment, Backbone, Config, Statistics, Stem, Tie},
    data::{
        Dataset, OpenOptions, Split,
        synthetic::{self, SyntheticSpec},
    },
    device,
    evaluate::{Case, Source, Task, evaluate},
    metrics::{Evaluation, Protocol},
    predict::{AllOnes, Method, Trained},
    report::overlay::{self, Panel, Row, sheet, thumbnail},
    train::{self, run::RunDir},
};

use crate::{
    train::{train, use_threads},
    ui::Ui,
};

/// Draw a dataset, learn where its objects are, and show the result
#[derive(Debug, clap::Args)]
pub(crate) struct Demo {
    /// Folder for the data, the run and the pictures
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

/// Test images shown as pictures.
const SHOWN: usize = 12;

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
        let run = RunDir::create(&out.join("run"), &config)?;
        let device = device::cpu();
        let task = train::Task {
            config: &config,
            dataset: &dataset,
            weights: None,
            device: device.clone(),
            workers,
        };
        let status = train(&task, &run, ui)?;
        if status != ExitCode::SUCCESS {
            return Ok(status);
        }

        let trained = Trained::open(&run, &device)?;
        let mut rows = Vec::new();
        let ours = evaluate(
            &scoring(&trained, &dataset, &config, workers),
            |case| Ok(Gallery { dataset: &dataset }.row(case)),
            |row| {
                rows.extend(row);
                Ok(())
            },
        )?;
        let ones = AllOnes::default();
        let ones = evaluate(&scoring(&ones, &dataset, &config, workers), |_| Ok(()), |()| Ok(()))?;
        let pictures = out.join("masks.png");
        let picture = sheet(&rows, &[]);
        picture
            .save(&pictures)
            .with_context(|| format!("cannot write `{}`", pictures.display()))?;
        for line in table(&ours, &ones) {
            ui.answer(&line);
        }
        ui.note(&format!("pictures in `{}`", pictures.display()));
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
    config.pool.dropout = 0.2;
    config.mask.alignment = Alignment::Centres;
    config.erase.rounds = 1;
    config.train.epochs = epochs;
    config.train.batch_size = 8;
    config.train.tie = Tie::LowerLoss;
    config.train.checkpoint_steps = 0;
    config.optimizer.learning_rate = 0.01;
    config.optimizer.decay_every = epochs.div_ceil(3).max(1) * 2;
    config.optimizer.weight_decay = 1e-4;
    config
}

fn scoring<'a>(
    method: &'a dyn Method,
    dataset: &'a Dataset,
    config: &'a Config,
    workers: usize,
) -> Task<'a> {
    Task {
        source: Source::Method(method),
        dataset,
        split: Split::Test,
        data: &config.data,
        protocol: Protocol::default(),
        crf: None,
        oracle_label: false,
        workers,
    }
}

/// Image, truth and mask of some test images.
struct Gallery<'a> {
    dataset: &'a Dataset,
}

impl Gallery<'_> {
    /// The pictures of an image, if it is shown.
    fn row(&self, case: &Case<'_>) -> Option<Row> {
        // Spread over the split, so that every class is shown.
        let every = (self.dataset.test.len() / SHOWN).max(1);
        if !case.index.is_multiple_of(every) || case.index / every >= SHOWN {
            return None;
        }
        let Case { image, map, truth, sample, .. } = case;
        let found: Vec<bool> = map.iter().map(|&score| score >= 0.5).collect();
        let class = &self.dataset.classes[sample.label];
        let panel =
            |caption: &str, picture: RgbImage| Panel::new(caption, thumbnail(&picture, 256));
        Some(Row {
            heading: String::new(),
            panels: vec![
                panel(class, (*image).clone()),
                panel(
                    "truth",
                    overlay::tint(image, &truth.as_ref()?.foreground, overlay::TRUE_MASK),
                ),
                panel("mask", overlay::tint(image, &found, overlay::PREDICTED_MASK)),
                panel("scores", overlay::heat_map(image, map)),
            ],
        })
    }
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
