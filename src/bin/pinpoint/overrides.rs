//! Settings from a file, with command-line flags laid over.

use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, bail};
use pinpoint::{
    config::{Config, Experiment},
    method,
    model::known::KnownFile,
};
use toml::{Table, Value};

use crate::{data_args::MaskArgs, shipped};

/// The settings of a run: a file, and what is changed from one run to the next
#[derive(Debug, Default, clap::Args)]
#[command(next_help_heading = "Settings")]
pub(crate) struct Overrides {
    /// Settings file, or the name of a shipped set-up such as `glas`; settings that it leaves out are
    /// those the method was published with
    #[arg(long, value_name = "FILE|NAME")]
    config: Option<PathBuf>,

    /// What to train: a method's name, or a `[methods.NAME]` of the settings file; `probe` by default
    #[arg(long, value_name = "NAME", long_help = methods())]
    method: Option<String>,

    /// Change one setting, as in `--set erase.sigma=5`; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    changes: Vec<String>,

    /// Seed of all random numbers
    #[arg(long, value_name = "N")]
    seed: Option<u64>,

    /// Passes over the training set
    #[arg(long, value_name = "N")]
    epochs: Option<usize>,

    /// Erasing rounds per step, 0 to train without erasing
    #[arg(long, value_name = "N")]
    erase_rounds: Option<usize>,

    #[command(flatten)]
    masks: MaskArgs,
}

impl Overrides {
    /// What is asked for, as it was written and by the section of settings that it is in.
    pub(crate) fn asked(&self) -> Vec<(String, String)> {
        let keys = self.changes.iter().filter_map(|change| Some(change.split_once('=')?.0.trim()));
        let changes = keys.map(|key| (key, key.split('.').next().unwrap_or(key)));
        let flags = [
            (self.epochs, ("--epochs", "train")),
            (self.erase_rounds, ("--erase-rounds", "erase")),
        ];
        let flags = flags.into_iter().filter_map(|(flag, asked)| flag.map(|_| asked));
        let owned = |(written, section): (&str, &str)| (written.to_owned(), section.to_owned());
        changes.chain(flags).map(owned).collect()
    }

    /// The merged settings, checked: over those of a `resumed` run unless others are named, and
    /// where nobody says otherwise, following the weights that training starts from.
    pub(crate) fn settings(
        self,
        weights: Option<&Path>,
        resumed: Option<Config>,
    ) -> anyhow::Result<Config> {
        // Spelled out so that a flag added above and forgotten here does not compile.
        let Self { config: path, method, changes, seed, epochs, erase_rounds, masks } = self;
        let base = match resumed {
            Some(config) if path.is_none() && method.is_none() => config,
            _ => named(path, method, weights)?,
        };
        let mut config = changed(base, &changes)?;
        overlay(&mut config.seed, seed);
        overlay(&mut config.train.epochs, epochs);
        overlay(&mut config.erase.rounds, erase_rounds);
        masks.apply(&mut config.data);
        config.check()?;
        Ok(config)
    }
}

/// What was [asked](Overrides::asked) for and has no effect on a method.
pub(crate) fn without_effect(asked: &[(String, String)], method: &str) -> Vec<String> {
    let unused = |section: &str| match method {
        "probe" => NOT_OF_A_PROBE.contains(&section),
        _ => section == "probe",
    };
    let asked = asked.iter().filter(|(_, section)| unused(section));
    asked.map(|(written, _)| format!("`{written}`")).collect()
}

/// The settings of a file's row, or of a method as it was published.
fn named(
    path: Option<PathBuf>,
    method: Option<String>,
    weights: Option<&Path>,
) -> anyhow::Result<Config> {
    // What works best on few images and a processor, unless a published set-up is asked for.
    let usual = if path.is_some() { "minmax" } else { "probe" };
    let experiment = match path {
        Some(path) => shipped::file_or_name(&path)?,
        None => Experiment::default(),
    };
    let row = method.as_deref().or(experiment.default_method()).unwrap_or(usual);
    Ok(method::settings(&experiment, row, weights.and_then(KnownFile::at))?)
}

/// What `--method` may be.
fn methods() -> String {
    let mut text =
        "What to train: a method's name, or a `[methods.NAME]` of the settings file; `probe` by \
         default, `minmax` with a settings file\n"
            .to_owned();
    for (name, about) in method::NAMES.iter().zip(method::ABOUT) {
        text.push_str(&format!("\n{name:16} {about}"));
    }
    text
}

/// Replaces a setting by a flag, if it was given.
pub(crate) fn overlay<T>(setting: &mut T, flag: Option<T>) {
    if let Some(value) = flag {
        *setting = value;
    }
}

/// `base` with each `key=value` applied.
pub(crate) fn changed(base: Config, changes: &[String]) -> anyhow::Result<Config> {
    let mut table = Table::try_from(&base).context("settings are plain data")?;
    for change in changes {
        let Some((key, value)) = change.split_once('=') else {
            bail!("`--set {change}` has no `=`; write it as `--set erase.sigma=5`");
        };
        if key.trim() == "method" {
            bail!("`--set {change}` cannot change the method; use `--method {}`", value.trim());
        }
        set(&mut table, key.trim(), parse(value.trim()))
            .with_context(|| format!("cannot apply `--set {change}`"))?;
    }
    Config::from_table(table).map_err(|error| refused(&base, changes, &error.to_string()))
}

/// The error for changes that settings refuse.
fn refused(base: &Config, changes: &[String], reason: &str) -> anyhow::Error {
    let reason = reason.trim_end();
    if !reason.contains("unknown field") {
        return anyhow!("`--set` gives a setting a value that it cannot have: {reason}");
    }
    let table = Table::try_from(base).unwrap_or_default();
    let sections = table.iter().filter_map(|(name, section)| Some((name, section.as_table()?)));
    let meant = sections.into_iter().find_map(|(section, settings)| {
        let wrong = changes.iter().filter_map(|change| change.split_once('='));
        let named = wrong.map(|(key, _)| key.trim()).find(|key| settings.contains_key(*key))?;
        Some(format!("\nhint: did you mean `{section}.{named}`?"))
    });
    let hint = meant.unwrap_or_else(|| "\nhint: docs/settings.md has them all".to_owned());
    anyhow!("`--set` gives a setting that does not exist: {reason}{hint}")
}

/// Sections of settings that only methods other than the probe have use for.
const NOT_OF_A_PROBE: [&str; 10] = [
    "augment",
    "deep_mil",
    "erase",
    "grad_cam",
    "loss",
    "mask",
    "optimizer",
    "pool",
    "train",
    "unet",
];

/// A TOML value; what is none is taken as text, so that quotes may be left out.
fn parse(text: &str) -> Value {
    let whole = format!("value = {text}").parse::<Table>();
    let value = whole.ok().and_then(|mut table| table.remove("value"));
    value.unwrap_or_else(|| Value::String(text.to_owned()))
}

fn set(table: &mut Table, key: &str, value: Value) -> anyhow::Result<()> {
    let Some((group, rest)) = key.split_once('.') else {
        table.insert(key.to_owned(), value);
        return Ok(());
    };
    let inner = table.entry(group).or_insert_with(|| Table::new().into()).as_table_mut();
    set(inner.with_context(|| format!("`{group}` is not a group of settings"))?, rest, value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(changes: &[&str]) -> anyhow::Result<Config> {
        let changes = changes.iter().map(|&change| change.to_owned()).collect();
        Overrides { changes, ..Overrides::default() }.settings(None, None)
    }

    #[test]
    fn flags_win_over_changes_and_changes_over_defaults() {
        let changes = vec!["train.epochs=7".to_owned(), "erase.sigma=5".to_owned()];
        let flags = Overrides { changes, epochs: Some(3), ..Overrides::default() };
        let config = flags.settings(None, None).unwrap();
        assert_eq!((config.train.epochs, config.erase.sigma), (3, 5.0));
    }

    #[test]
    fn text_needs_no_quotes_and_numbers_keep_their_kind() {
        let config = with(&["model.backbone=resnet18", "pool.top=1"]).unwrap();
        assert_eq!(config.model.backbone, pinpoint::config::Backbone::Resnet18);
        assert_eq!(config.pool.top, pinpoint::config::Cells::Count(1));
    }

    #[test]
    fn what_a_method_has_no_use_for_is_told() {
        let flags = Overrides {
            changes: vec!["erase.rounds=3".to_owned(), "probe.generations=1".to_owned()],
            epochs: Some(5),
            ..Overrides::default()
        };
        assert_eq!(without_effect(&flags.asked(), "probe"), ["`erase.rounds`", "`--epochs`"]);
        assert_eq!(without_effect(&flags.asked(), "minmax"), ["`probe.generations`"]);
    }

    #[test]
    fn what_was_meant_is_guessed_and_wrong_values_are_told_from_wrong_names() {
        let message = format!("{:#}", with(&["learning_rate=3"]).unwrap_err());
        assert!(message.contains("did you mean `optimizer.learning_rate`?"), "{message}");
        let message = format!("{:#}", with(&["erase.rounds=five"]).unwrap_err());
        assert!(message.contains("a value that it cannot have"), "{message}");
        assert!(message.contains("erase.rounds") && !message.ends_with('\n'), "{message}");
    }

    #[test]
    fn what_does_not_exist_cannot_be_set() {
        let message = format!("{:#}", with(&["erase.sigmma=5"]).unwrap_err());
        assert!(message.contains("sigmma"), "{message}");
        assert!(with(&["seed"]).is_err());
        assert!(with(&["seed.x=1"]).is_err());
        assert!(with(&["method=cam-avg"]).unwrap_err().to_string().contains("--method cam-avg"));
    }

    #[test]
    fn a_resumed_run_keeps_its_settings_but_for_what_is_changed() {
        let mut before = Config { seed: 7, ..Config::default() };
        before.erase.sigma = 3.0;
        let flags = Overrides { epochs: Some(9), ..Overrides::default() };
        let config = flags.settings(None, Some(before.clone())).unwrap();
        before.train.epochs = 9;
        assert_eq!(config, before);
    }

    #[test]
    fn a_method_brings_the_settings_it_was_published_with() {
        let flags = Overrides { method: Some("wildcat".to_owned()), ..Overrides::default() };
        let config = flags.settings(None, None).unwrap();
        assert_eq!((config.method.as_str(), config.pool.maps_per_class), ("wildcat", 4));
        assert_eq!(config.model.backbone, pinpoint::config::Backbone::Resnet18);
    }
}
