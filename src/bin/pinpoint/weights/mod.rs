//! `pinpoint weights`: published files to start from, listed and fetched.

mod cache;
mod fetch;

use std::{
    io,
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::builder::{OsStringValueParser, TypedValueParser};
use pinpoint::{
    config::Config,
    model::known::{KNOWN_FILES, KnownFile},
};
use serde_json::json;

use crate::ui::Ui;

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
            ui.answer(&json!(files.collect::<Vec<_>>()).to_string());
            return Ok(ExitCode::SUCCESS);
        }
        for file in KNOWN_FILES {
            let here = if cached(file).is_some() { ", fetched" } else { "" };
            ui.answer(&format!(
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

/// Parses `--weights`: a file, or the name of one that was fetched.
pub(crate) fn file_or_name() -> impl TypedValueParser<Value = PathBuf> {
    OsStringValueParser::new().try_map(|asked| resolve(PathBuf::from(asked)))
}

/// The file that is asked for.
fn resolve(asked: PathBuf) -> io::Result<PathBuf> {
    // What is no name is left to whoever reads the file, and knows better what is wrong with it.
    let Some(name) = asked.to_str().filter(|name| cache::is_name(name)) else { return Ok(asked) };
    if asked.exists() {
        return Ok(asked);
    }
    let known = KnownFile::named(name);
    let cached = cache::file(known.map_or(name, |file| file.name));
    match (cached, known) {
        (Some(cached), _) if cached.is_file() => Ok(cached),
        (cached, Some(known)) => Err(io::Error::other(not_here(known, cached.as_deref()))),
        (_, None) => Ok(asked),
    }
}

/// What to do where a published file is not here, with a network and without one.
fn not_here(known: &KnownFile, cached: Option<&Path>) -> String {
    let name = known.backbone.name();
    let by_hand = match cached {
        Some(path) => format!("as `{}`", path.display()),
        None => "to this machine, and give its path by `--weights`".to_owned(),
    };
    format!(
        "`{}` has not been fetched yet\n\
         hint: `pinpoint weights get {name}` fetches it; without a network, copy\n  {}\n{by_hand}",
        known.name,
        known.address()
    )
}

/// Tells where settings are not those that published weights were trained with, if they are not.
pub(crate) fn warn_of(weights: Option<&Path>, config: &Config, ui: &mut Ui) -> bool {
    let Some(known) = weights.and_then(KnownFile::at) else { return false };
    let expected = known.disagreements(config);
    if !expected.is_empty() {
        ui.warn(&format!(
            "`{}` was trained with {}, and the settings say otherwise: its features will mean less",
            known.name,
            expected.join(", ")
        ));
    }
    !expected.is_empty()
}
