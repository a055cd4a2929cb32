//! `pinpoint demo`: the whole tool on data it draws itself.

use std::{fs, path::PathBuf, process::ExitCode, time::Instant};

use anyhow::{Context, ensure};
use pinpoint::{
    EvaluateRequest, TrainRequest,
    config::Config,
    data::synthetic::{self, SyntheticSpec},
    method,
    metrics::Evaluation,
};

use crate::{
    interrupt::{self, interrupted},
    machine::use_threads,
    shipped,
    ui::Ui,
    watch,
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

    /// Seed of all random numbers
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
        let threads = Some(use_threads(threads)?);
        interrupt::listen()?;
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

        let config = settings(seed, epochs, spec.side)?;
        let request = TrainRequest { threads, ..TrainRequest::new(&data, out.join("run"), config) };
        let (trained, code) = watch::train(&request, None, ui)?;
        if code != ExitCode::SUCCESS {
            return Ok(code);
        }

        let folder = trained.run.root().join("report");
        let report = Some(folder.clone());
        let ours = EvaluateRequest { threads, report, ..EvaluateRequest::run(trained.run.root()) };
        let ones = EvaluateRequest { threads, ..EvaluateRequest::untrained("all-ones", &data) };
        let mut score = |request| watch::score(request, ui);
        let (ours, ones) = match score(&ours).and_then(|ours| Ok((ours, score(&ones)?))) {
            Err(pinpoint::Error::Interrupted) => {
                let run = trained.run.root().display();
                let text = format!("`pinpoint evaluate {run}` scores what was trained");
                return Ok(interrupted(ui, &text));
            }
            outcome => outcome?,
        };
        for line in table(&ours.evaluation, &ones.evaluation) {
            ui.print(&line);
        }
        ui.note(&format!("report in `{}`", folder.join("report.html").display()));
        ui.note(&format!("took {:.0} s", started.elapsed().as_secs_f64()));
        Ok(ExitCode::SUCCESS)
    }
}

/// The published method, made small: a narrow network on small images, trained from scratch.
fn settings(seed: u64, epochs: usize, side: u32) -> pinpoint::Result<Config> {
    let mut config =
        method::settings(&shipped::named("synthetic").expect("built in")?, "demo", None)?;
    config.seed = seed;
    config.preprocess.crop = side;
    config.train.epochs = epochs;
    config.optimizer.decay_every = epochs.div_ceil(3).max(1) * 2;
    Ok(config)
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
