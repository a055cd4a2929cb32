//! `pinpoint data synth`: a dataset to try things with, drawn in code.

use std::{path::PathBuf, process::ExitCode};

use anyhow::Context;
use pinpoint::data::synthetic::{self, SyntheticSpec};

use crate::ui::Ui;

/// Draw a labelled dataset with exact masks
#[derive(Debug, clap::Args)]
pub(crate) struct Synth {
    /// Folder to make
    #[arg(value_name = "DIR")]
    dir: PathBuf,

    /// Size of the dataset, unless the flags below say otherwise
    #[arg(long, value_enum, default_value_t = Preset::Small)]
    preset: Preset,

    /// Number of classes, from 2 to 8
    #[arg(long, value_name = "N")]
    classes: Option<usize>,

    /// Number of training images
    #[arg(long, value_name = "N")]
    train: Option<usize>,

    /// Number of validation images
    #[arg(long, value_name = "N")]
    valid: Option<usize>,

    /// Number of test images
    #[arg(long, value_name = "N")]
    test: Option<usize>,

    /// Side of the square images, in pixels
    #[arg(long, value_name = "N")]
    size: Option<u32>,

    /// Seed of all random numbers
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,

    /// Also write `DIR/sheet.png`, with some images of each class and their masks
    #[arg(long)]
    sheet: bool,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Preset {
    /// 4 classes, 256 + 64 + 128 images of 64 pixels
    Small,
    /// 8 classes, 2000 + 400 + 800 images of 256 pixels
    Large,
}

/// Images of each class on a contact sheet.
const SHEET_COLUMNS: usize = 6;

impl Synth {
    pub(crate) fn run(self, ui: &mut Ui) -> anyhow::Result<ExitCode> {
        let spec = self.spec();
        let Self { dir, sheet, .. } = self;
        let images = spec.train + spec.valid + spec.test;
        let progress = ui.progress(images as u64, "drawing");
        synthetic::write(&dir, &spec, || progress.inc(1))?;
        drop(progress);
        if sheet {
            let path = dir.join("sheet.png");
            synthetic::contact_sheet(&spec, SHEET_COLUMNS)
                .save(&path)
                .with_context(|| format!("cannot write `{}`", path.display()))?;
            ui.note(&format!("contact sheet in `{}`", path.display()));
        }
        ui.note(&format!(
            "drew {} training, {} validation and {} test images of {} classes into `{}`",
            spec.train,
            spec.valid,
            spec.test,
            spec.classes,
            dir.display(),
        ));
        Ok(ExitCode::SUCCESS)
    }

    fn spec(&self) -> SyntheticSpec {
        let preset = match self.preset {
            Preset::Small => SyntheticSpec::small(),
            Preset::Large => SyntheticSpec::large(),
        };
        SyntheticSpec {
            classes: self.classes.unwrap_or(preset.classes),
            train: self.train.unwrap_or(preset.train),
            valid: self.valid.unwrap_or(preset.valid),
            test: self.test.unwrap_or(preset.test),
            side: self.size.unwrap_or(preset.side),
            seed: self.seed,
        }
    }
}
