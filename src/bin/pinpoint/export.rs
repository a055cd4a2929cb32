//! `pinpoint export`: a trained run as a file for other programs.

use std::{path::PathBuf, process::ExitCode};

use pinpoint::{
    export,
    run::{RunDir, write_atomically},
};

use crate::ui::Ui;

/// Write a trained run as an ONNX model, which runs without pinpoint
#[derive(Debug, clap::Args)]
pub(crate) struct Export {
    /// Run directory written by `pinpoint train`
    run: PathBuf,

    /// ONNX file to write
    #[arg(long, value_name = "FILE")]
    onnx: PathBuf,
}

impl Export {
    pub(crate) fn run(self, ui: &mut Ui) -> anyhow::Result<ExitCode> {
        let Self { run, onnx } = self;
        let model = export::onnx(&RunDir::open(&run)?)?;
        write_atomically(&onnx, &model)?;
        ui.note(
            "input `image` is RGB in [0, 1] of [1, 3, height, width]; outputs are `mask` and \
             `probabilities`",
        );
        ui.print(&onnx.display().to_string());
        Ok(ExitCode::SUCCESS)
    }
}
