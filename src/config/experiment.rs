//! A settings file for several methods: what they share, and what sets each apart.
//!
//! ```toml
//! [preprocess]                 # for all
//! crop = 416
//!
//! [methods.minmax]             # for one of them
//! preprocess.crop = 480
//!
//! [methods.minmax-u0]          # the same, and what is set otherwise
//! method = "minmax"
//! erase.rounds = 0
//!
//! [sweep]                      # what `pinpoint sweep` trains
//! methods = ["minmax", "minmax-u0", "cam-avg"]
//! seeds = [0, 1, 2]
//! ```

use std::{
    iter,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use super::Config;
use crate::{
    error::{Error, Result},
    regular,
};

/// A settings file: settings for all methods, sections for some, and what to sweep over.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Experiment {
    path: PathBuf,
    shared: Table,
    methods: Table,
    /// What a sweep trains, if the file says so.
    pub sweep: Option<Sweep>,
}

/// What a sweep trains: every method with every seed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sweep {
    /// Rows of the comparison: names of methods, or of sections of the file.
    pub methods: Vec<String>,
    /// Roots of the random streams.
    #[serde(default = "first_seed")]
    pub seeds: Vec<u64>,
}

fn first_seed() -> Vec<u64> {
    vec![0]
}

impl Experiment {
    /// Reads a settings file.
    pub fn load(path: &Path) -> Result<Self> {
        let text = regular::read_text(path).map_err(Error::file("read", path))?;
        Self::parse(&text, path)
    }

    /// Reads the text of a settings file; `path` is what messages call it.
    pub fn parse(text: &str, path: &Path) -> Result<Self> {
        let parse = || {
            let mut shared: Table = text.parse()?;
            let methods = shared.remove("methods").map(Value::try_into).transpose()?;
            let sweep = shared.remove("sweep").map(Value::try_into).transpose()?;
            Ok(Self { path: path.to_owned(), shared, methods: methods.unwrap_or_default(), sweep })
        };
        let experiment: Self = parse().map_err(|source| unreadable(path, source))?;
        experiment.check()?;
        Ok(experiment)
    }

    /// The file it was read from.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The method that a row of the comparison trains: what its section says, or the row's name.
    pub fn method<'a>(&'a self, row: &'a str) -> &'a str {
        let of = |table: &'a Table| table.get("method").and_then(Value::as_str);
        self.section(row).and_then(of).unwrap_or(row)
    }

    /// The method that the file is for, if it names one for all.
    pub fn default_method(&self) -> Option<&str> {
        self.shared.get("method").and_then(Value::as_str)
    }

    /// The rows that have a section of their own.
    pub fn rows(&self) -> impl Iterator<Item = &str> {
        self.methods.keys().map(String::as_str)
    }

    /// The settings of a row, each layer over the one before: `published`, what the file says for
    /// all, the section of the row's method, the section of the row.
    pub fn settings(&self, row: &str, published: &Config) -> Result<Config> {
        let mut table = Table::try_from(published).expect("settings are plain data");
        let method = self.method(row);
        let sections = [self.section(method), self.section(row)];
        for layer in iter::once(&self.shared).chain(sections.into_iter().flatten()) {
            merge(&mut table, layer);
        }
        table.insert("method".to_owned(), Value::String(method.to_owned()));
        Config::from_table(table).map_err(|source| unreadable(&self.path, source))
    }

    fn section(&self, row: &str) -> Option<&Table> {
        self.methods.get(row).and_then(Value::as_table)
    }

    fn check(&self) -> Result<()> {
        let mut problems = Vec::new();
        for (row, section) in &self.methods {
            if !section.is_table() {
                problems.push(format!("`methods.{row}` must be a group of settings"));
            }
        }
        if let Some(Sweep { methods, seeds }) = &self.sweep {
            for (key, empty) in [("methods", methods.is_empty()), ("seeds", seeds.is_empty())] {
                if empty {
                    problems.push(format!("`sweep.{key}` must not be empty"));
                }
            }
            for (i, row) in methods.iter().enumerate() {
                if methods[..i].contains(row) {
                    problems.push(format!("`sweep.methods` names `{row}` twice"));
                }
            }
        }
        if problems.is_empty() { Ok(()) } else { Err(Error::Setting(problems)) }
    }
}

/// Lays one tree of settings over another; groups are merged, values replaced.
fn merge(below: &mut Table, above: &Table) {
    for (key, value) in above {
        match (below.get_mut(key), value) {
            (Some(Value::Table(below)), Value::Table(above)) => merge(below, above),
            _ => {
                below.insert(key.clone(), value.clone());
            }
        }
    }
}

fn unreadable(path: &Path, source: toml::de::Error) -> Error {
    Error::Settings { path: path.to_owned(), source: source.into() }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn experiment(text: &str) -> Result<Experiment> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("e.toml");
        fs::write(&path, text).unwrap();
        Experiment::load(&path)
    }

    const FILE: &str = "
        seed = 3
        [preprocess]
        crop = 416
        [methods.minmax]
        preprocess.crop = 480
        [methods.minmax-u0]
        method = 'minmax'
        erase.rounds = 0
        [sweep]
        methods = ['minmax', 'cam-avg']
    ";

    #[test]
    fn a_section_wins_over_the_file_and_the_file_over_what_was_published() {
        let experiment = experiment(FILE).unwrap();
        let mut published = Config::default();
        published.train.epochs = 7;
        let of = |row| experiment.settings(row, &published).unwrap();
        assert_eq!(of("minmax").preprocess.crop, 480);
        let other = of("cam-avg");
        assert_eq!((other.preprocess.crop, other.seed, other.train.epochs), (416, 3, 7));
        assert_eq!(other.method, "cam-avg");
    }

    #[test]
    fn a_row_may_be_a_method_set_otherwise() {
        let experiment = experiment(FILE).unwrap();
        let config = experiment.settings("minmax-u0", &Config::default()).unwrap();
        assert_eq!((config.method.as_str(), config.erase.rounds), ("minmax", 0));
        assert_eq!(config.preprocess.crop, 480, "what its method's section says holds for it");
        assert_eq!(experiment.rows().collect::<Vec<_>>(), ["minmax", "minmax-u0"]);
    }

    #[test]
    fn a_sweep_has_methods_and_one_seed_unless_told_otherwise() {
        let sweep = experiment(FILE).unwrap().sweep.unwrap();
        assert_eq!((sweep.methods.len(), sweep.seeds), (2, vec![0]));
    }

    #[test]
    fn unknown_keys_are_refused_wherever_they_stand() {
        let settings = |text: &str| experiment(text)?.settings("minmax", &Config::default());
        assert!(settings("[preprocess]\ncropp = 3").is_err());
        assert!(settings("[methods.minmax]\npreprocess.cropp = 3").is_err());
        assert!(experiment("[sweep]\nmethods = ['a']\nseed = 3").is_err());
        assert!(experiment("[sweep]\nmethods = []").is_err());
        assert!(experiment("[sweep]\nmethods = ['a', 'a']").is_err());
        assert!(experiment("[methods]\nminmax = 3").is_err());
    }
}
