//! `pinpoint weights`: published files to start from, listed and fetched.

mod fetch;

use std::process::ExitCode;

use pinpoint::model::known::{KNOWN_FILES, KnownFile};
use serde_json::json;

use crate::{ui::Ui, weight_files::cache};

/// List published weight files that training can start from, or fetch one
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Weights {
    #[command(subcommand)]
    action: Option<Action>,

    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    Get(fetch::Get),
}

impl Weights {
    pub(crate) fn run(self, ui: &mut Ui) -> anyhow::Result<ExitCode> {
        let Self { action, json } = self;
        if let Some(Action::Get(get)) = action {
            return get.run(ui);
        }
        let cached = |file: &KnownFile| cache::file(file.name).filter(|path| path.is_file());
        if json {
            let files = KNOWN_FILES.iter().map(|file| {
                json!({
                    "name": file.name,
                    "source": file.address(),
                    "sha256": file.sha256,
                    "backbone": file.backbone.name(),
                    "training": file.training,
                    "cached": cached(file),
                })
            });
            ui.print(&json!(files.collect::<Vec<_>>()).to_string());
            return Ok(ExitCode::SUCCESS);
        }
        for file in KNOWN_FILES {
            let here = if cached(file).is_some() { ", fetched" } else { "" };
            ui.print(&format!(
                "{:10} {:24} {}{here}\n{:10} {}\n{:10} SHA-256 {}",
                file.backbone.name(),
                file.name,
                file.training,
                "",
                file.address(),
                "",
                file.sha256
            ));
        }
        ui.note(
            "`pinpoint weights get resnet18` fetches a file, then `--weights resnet18` uses it",
        );
        Ok(ExitCode::SUCCESS)
    }
}
