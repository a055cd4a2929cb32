//! Weight files as verbs are given them: by path, or by the name of one that was fetched.

pub(crate) mod cache;

use std::{
    io,
    path::{Path, PathBuf},
};

use clap::builder::{OsStringValueParser, TypedValueParser};
use pinpoint::{config::Config, model::known::KnownFile};

use crate::ui::Ui;

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
