//! `pinpoint weights`: published files to start from.

use std::process::ExitCode;

use pinpoint::model::known::{KNOWN_FILES, SOURCE};
use serde_json::json;

use crate::ui::Ui;

/// List published weight files that training can start from
#[derive(Debug, clap::Args)]
pub(crate) struct Weights {
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

impl Weights {
    pub(crate) fn run(self, ui: &mut Ui) -> anyhow::Result<ExitCode> {
        let Self { json } = self;
        if json {
            let files = KNOWN_FILES.iter().map(|file| {
                json!({
                    "name": file.name,
                    "source": format!("{SOURCE}{}", file.name),
                    "sha256_prefix": file.hash_prefix(),
                    "backbone": file.backbone,
                    "training": file.training,
                })
            });
            ui.answer(&json!(files.collect::<Vec<_>>()).to_string());
            return Ok(ExitCode::SUCCESS);
        }
        for file in KNOWN_FILES {
            ui.answer(&format!(
                "{:10} {:24} {}\n{:10} {SOURCE}{} (SHA-256 {}…)",
                file.backbone,
                file.name,
                file.training,
                "",
                file.name,
                file.hash_prefix()
            ));
        }
        ui.note(
            "fetch a file yourself, then `pinpoint train --weights FILE \
             --set model.stem=classic --set preprocess.normalization=imagenet`",
        );
        Ok(ExitCode::SUCCESS)
    }
}
