//! What is to do: every row with every seed, each in its own folder.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use pinpoint::{
    config::{Config, Experiment, Sweep},
    method,
    model::known::KnownFile,
    predict::UNTRAINED,
};

use super::Study;
use crate::overrides::changed;

/// One run of a study.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Job {
    /// The folder it is in, and what it is called.
    pub(super) name: String,
    pub(super) method: String,
    /// The settings that it is trained with; none for a method that needs no training.
    pub(super) config: Option<Config>,
    /// The place of an earlier job whose training is taken over, since this one's would be the same.
    pub(super) adopts: Option<usize>,
}

/// Plans all jobs; unusable settings are reported before anything is trained.
pub(super) fn plan(experiment: &Experiment, study: &Study) -> anyhow::Result<Vec<Job>> {
    let file = experiment.path();
    let Sweep { methods, seeds } = sweep(experiment, study)?;
    let (mut jobs, mut problems) = (Vec::<Job>::new(), Vec::new());
    for (index, seed) in seeds.iter().enumerate() {
        for row in &methods {
            let untrained = UNTRAINED.contains(&experiment.method(row));
            // Without training there is nothing that a seed would change.
            if untrained && index > 0 {
                continue;
            }
            match job(experiment, row, *seed, study, &jobs) {
                Ok(job) => jobs.push(job),
                Err(error) => problems.push(format!("`{row}`: {error:#}")),
            }
        }
    }
    problems.dedup();
    ensure!(problems.is_empty(), "unusable rows in `{}`\n{}", file.display(), problems.join("\n"));
    Ok(jobs)
}

/// The rows and seeds, as the file or the flags have them.
fn sweep(experiment: &Experiment, study: &Study) -> anyhow::Result<Sweep> {
    let Study { methods, seeds, .. } = study;
    let mut sweep = match &experiment.sweep {
        Some(sweep) => sweep.clone(),
        None if !methods.is_empty() => Sweep { methods: Vec::new(), seeds: vec![0] },
        None => bail!(
            "`{}` does not say what to sweep over\n\
             hint: add `[sweep]` with `methods = [\"minmax\", \"cam-avg\"]`, or give `--methods`",
            experiment.path().display()
        ),
    };
    if !methods.is_empty() {
        sweep.methods.clone_from(methods);
    }
    if !seeds.is_empty() {
        sweep.seeds.clone_from(seeds);
    }
    for (index, row) in sweep.methods.iter().enumerate() {
        let plain = |letter: char| letter.is_alphanumeric() || "-_+.=".contains(letter);
        ensure!(
            row.starts_with(char::is_alphanumeric) && row.chars().all(plain),
            "`{row}` cannot name a folder\nhint: use letters, digits, `-`, `_` and `.` in row names"
        );
        ensure!(!sweep.methods[..index].contains(row), "`{row}` is named twice");
    }
    for (index, seed) in sweep.seeds.iter().enumerate() {
        ensure!(!sweep.seeds[..index].contains(seed), "the seed {seed} is named twice");
    }
    Ok(sweep)
}

fn job(
    experiment: &Experiment,
    row: &str,
    seed: u64,
    study: &Study,
    before: &[Job],
) -> anyhow::Result<Job> {
    let method = experiment.method(row);
    if UNTRAINED.contains(&method) {
        let (name, method) = (row.to_owned(), method.to_owned());
        return Ok(Job { name, method, config: None, adopts: None });
    }
    let published = study.weights.as_deref().and_then(KnownFile::at);
    let mut config = changed(method::settings(experiment, row, published)?, &study.set)?;
    config.seed = seed;
    config.train.epochs = study.epochs.unwrap_or(config.train.epochs);
    study.masks.apply(&mut config.data);
    config.check()?;
    let training = method::training_settings(&config)?;
    let is_same =
        |other: &Config| method::training_settings(other).is_ok_and(|other| other == training);
    let adopts = before
        .iter()
        .position(|job| job.adopts.is_none() && job.config.as_ref().is_some_and(is_same));
    let (name, method) = (format!("{row}-s{seed}"), method.to_owned());
    Ok(Job { name, method, config: Some(config), adopts })
}

impl Job {
    /// Its folder.
    pub(super) fn folder(&self, out: &Path) -> PathBuf {
        out.join(&self.name)
    }

    /// Roughly how many passes over an image are made, with `images` to train on.
    pub(super) fn effort(&self, images: usize) -> u64 {
        let Some(config) = self.config.as_ref().filter(|_| self.adopts.is_none()) else { return 0 };
        // A probe passes each image once; its heads take about as long again.
        let passes = if config.method == "probe" { 2 } else { config.train.epochs };
        (passes * images) as u64 * passes_per_image(config)
    }
}

/// Roughly how many passes a step of training makes over each image.
pub(super) fn passes_per_image(config: &Config) -> u64 {
    match config.method.as_str() {
        // The first localizer pass, one per round, and the classifier's at two smaller halves.
        "minmax" => config.erase.rounds as u64 + 2,
        _ => 1,
    }
}

/// Parses `0,1,2`.
pub(crate) fn seed(text: &str) -> anyhow::Result<u64> {
    text.trim().parse().with_context(|| format!("`{text}` is no seed"))
}
