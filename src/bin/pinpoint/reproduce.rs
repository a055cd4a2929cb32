//! `pinpoint reproduce`: from a published dataset to the tables, with settings that are built in.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::ValueEnum;
use pinpoint::{metrics::ThresholdRule, refine::Preset};

use crate::{
    data_args::{LayoutArgs, MaskArgs},
    shipped,
    study::{Study, seed},
    ui::Ui,
    weight_files,
};

/// Train, score and compare every method on one of the paper's datasets
#[derive(Debug, clap::Args)]
pub(crate) struct Reproduce {
    /// Which dataset
    #[arg(value_enum, value_name = "DATASET")]
    dataset: Published,

    /// The dataset, as distributed or as published folds; `pinpoint data check` shows how it is read
    #[arg(long, value_name = "PATH")]
    data: PathBuf,

    /// Weights of ResNet-18 to start from: a `.safetensors` or `.pth` file, or `resnet18` once
    /// `pinpoint weights get resnet18` has fetched it
    #[arg(long, value_name = "FILE|NAME", value_parser = weight_files::file_or_name())]
    weights: PathBuf,

    /// Folder for the runs and their comparison, `runs/DATASET` by default; what is finished there
    /// is not done again
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,

    /// These rows instead of the built-in ones, separated by commas
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    methods: Vec<String>,

    /// These seeds instead of the built-in ones, separated by commas
    #[arg(long, value_name = "N,…", value_delimiter = ',', value_parser = seed)]
    seeds: Vec<u64>,

    /// Also score maps without masks, as `pinpoint evaluate` does, with features of `--weights`
    #[arg(long)]
    decidability: bool,

    /// Where the images of published folds are, if not beside them
    #[arg(long, value_name = "DIR")]
    images: Option<PathBuf>,

    #[command(flatten)]
    masks: MaskArgs,

    /// Threads to use; all cores by default
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
}

/// The datasets of the paper.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Published {
    /// Glands in tissue, 2 classes
    Glas,
    /// Birds, 5 of the classes of CUB
    Cub5,
    /// Birds, 200 classes
    Cub,
    /// Flowers, 102 classes
    OxfordFlowers,
}

impl Published {
    /// The name of its set-up among the shipped ones, how many classes it has, and its CRF.
    fn built_in(self) -> (&'static str, usize, Preset) {
        match self {
            Self::Glas => ("glas-cpu", 2, Preset::Glas),
            Self::Cub5 => ("cub5-cpu", 5, Preset::Natural),
            Self::Cub => ("cub-cpu", 200, Preset::Natural),
            Self::OxfordFlowers => ("oxford-flowers-cpu", 102, Preset::Natural),
        }
    }

    fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }
}

impl Reproduce {
    pub(crate) fn run(self, ui: &mut Ui) -> anyhow::Result<ExitCode> {
        let (set_up, classes, crf) = self.dataset.built_in();
        let study = Study {
            data: self.data,
            classes: Some(classes),
            out: self.out.unwrap_or_else(|| Path::new("runs").join(self.dataset.name())),
            methods: self.methods,
            seeds: self.seeds,
            set: Vec::new(),
            epochs: None,
            weights: Some(self.weights),
            crf: Some(crf),
            threshold: ThresholdRule::default(),
            oracle_label: false,
            decidability: self.decidability,
            layout: LayoutArgs { layout: None, images: self.images },
            masks: self.masks,
            device: "cpu".to_owned(),
            threads: self.threads,
        };
        study.run(&shipped::named(set_up).expect("built in")?, ui)
    }
}

#[cfg(test)]
mod tests {
    use pinpoint::{method, predict::UNTRAINED};

    use super::*;

    #[test]
    fn what_is_built_in_is_readable_and_every_row_can_be_trained() {
        for dataset in Published::value_variants() {
            let experiment = shipped::named(dataset.built_in().0).unwrap().unwrap();
            let rows = experiment.sweep.clone().unwrap().methods;
            for row in rows.iter().filter(|row| !UNTRAINED.contains(&experiment.method(row))) {
                method::settings(&experiment, row, None).unwrap().check().unwrap();
            }
        }
    }
}
