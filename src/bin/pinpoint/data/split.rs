//! `pinpoint data split`: a dataset in, the paper's folds out.

use std::{path::PathBuf, process::ExitCode};

use anyhow::ensure;
use pinpoint::data::{
    Dataset, Layout, OpenOptions,
    split::{self, FoldPlan, Procedure},
};

use crate::{choice, ui::Ui};

/// Write train and valid folds by the published algorithm
#[derive(Debug, clap::Args)]
pub(crate) struct Split {
    /// Dataset to divide
    #[arg(value_name = "PATH")]
    path: PathBuf,

    /// Where the folds go: `DIR/split_<s>/fold_<f>/`
    #[arg(long, value_name = "DIR")]
    out: PathBuf,

    /// Independent shuffles of the dataset
    #[arg(long, value_name = "N", default_value_t = 2)]
    splits: usize,

    /// Folds per shuffle
    #[arg(long, value_name = "N", default_value_t = 5)]
    folds: usize,

    /// Share of each class that goes into the validation fold
    #[arg(long, value_name = "SHARE", default_value_t = 0.2)]
    valid: f64,

    /// Seed of all random numbers; 0 gives the published lists
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u32,

    /// Keep N classes, chosen at random as the paper chose five birds
    #[arg(long, value_name = "N")]
    classes: Option<usize>,

    /// Layout of the dataset; recognized from its files by default
    #[arg(long, value_parser = choice::layout())]
    layout: Option<Layout>,

    /// Replace folds that are already there
    #[arg(long)]
    force: bool,
}

impl Split {
    pub(crate) fn run(self, ui: &mut Ui) -> anyhow::Result<ExitCode> {
        let options = OpenOptions { layout: self.layout, ..OpenOptions::default() };
        let mut dataset = Dataset::open(&self.path, &options)?;
        dataset.require_usable()?;
        dataset.notes.iter().for_each(|note| ui.note(note));
        if let Some(keep) = self.classes {
            let found = dataset.classes.len();
            ensure!(
                (1..=found).contains(&keep),
                "`--classes` must be in 1..={found}, all there are"
            );
            split::keep_classes(&mut dataset, &split::choose_classes(found, keep, self.seed));
        }
        let plan = FoldPlan {
            splits: self.splits,
            folds: self.folds,
            fraction: self.valid,
            seed: self.seed.into(),
            procedure: Procedure::of(dataset.layout),
        };
        if !dataset.valid.is_empty() {
            ui.note(
                "the dataset's own validation samples are divided anew with the training samples",
            );
        }
        warn_of_small_classes(&dataset, &plan, ui);
        split::write_folds(&dataset, &plan, &self.out, self.force)?;
        ui.note(&format!(
            "wrote {} × {} folds to `{}`",
            plan.splits,
            plan.folds,
            self.out.display()
        ));
        Ok(ExitCode::SUCCESS)
    }
}

fn warn_of_small_classes(dataset: &Dataset, plan: &FoldPlan, ui: &mut Ui) {
    let samples = dataset.train.iter().chain(&dataset.valid);
    let classes = split::by_class(samples, dataset.classes.len());
    for (name, samples) in dataset.classes.iter().zip(&classes) {
        let count = samples.len();
        let chunks = plan.chunk_count(count);
        if plan.valid_count(count) == 0 {
            ui.warn(&format!("class `{name}` has too few samples to validate: {count}"));
        } else if chunks < plan.folds {
            ui.warn(&format!(
                "class `{name}` has {count} samples, enough for {chunks} folds: later folds validate the same ones again"
            ));
        }
    }
}
