//! The run directory: what training leaves on disk, and how it goes on from there.
//!
//! ```text
//! RUN/config.toml                      merged settings, complete
//!     weights/{best,last}.safetensors  with classes, normalization and threshold inside
//!     state/checkpoint.safetensors     everything a resumed run needs, in one file
//!     metrics.jsonl metrics.csv        one line per epoch
//!     trained-in.txt                   the run that was trained for this one, if one was
//! ```
//!
//! Every file appears whole or not at all. The checkpoint is *one* file, so that a
//! run killed at any moment goes on from a state that existed.

use std::{
    fs,
    path::{Path, PathBuf},
};

use burn::module::Module;
use serde::{Deserialize, Serialize};

use super::event::EpochRecord;
use crate::{
    config::{Config, Normalization, Semantics},
    data::Dataset,
    error::{Error, Result},
    method::Terms,
    model::{
        params,
        weights::{self, Arrays, write_atomically},
    },
};

/// A directory that holds one run.
#[derive(Debug, Clone)]
pub struct RunDir {
    root: PathBuf,
}

/// What a weight file says about itself, so that prediction needs nothing else.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WeightsNote {
    /// Version of pinpoint that wrote the file.
    pub version: String,
    /// Class names, in the order of the scores.
    pub classes: Vec<String>,
    /// How input must be normalized.
    pub normalization: Normalization,
    /// Mask values from here on are foreground.
    pub threshold: f64,
    /// Whose reading of the method was trained.
    pub semantics: Semantics,
    /// Epochs trained.
    pub epoch: usize,
}

/// Where a run stands, beside its tensors.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Position {
    /// What was learned from, by content of the manifest.
    pub dataset: u64,
    /// The epoch in progress.
    pub epoch: usize,
    /// Its next step.
    pub step: usize,
    /// Updates the optimizer has made.
    pub updates: u64,
    /// Sums over the epoch so far.
    pub sums: Sums,
    /// The epoch whose weights are kept.
    pub best: Option<Best>,
    /// Finished epochs.
    pub records: Vec<EpochRecord>,
}

/// Sums over the images of an epoch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "each is the sum of what it is named after")]
pub struct Sums {
    pub images: usize,
    pub looks: usize,
    pub mistakes: f64,
    pub terms: Terms,
    pub seconds: f64,
}

/// The epoch whose weights are kept.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "as in `EpochRecord`")]
pub struct Best {
    pub epoch: usize,
    pub error: f64,
    pub loss: f64,
}

impl RunDir {
    /// Starts a run in a directory that holds none yet.
    pub fn create(root: &Path, config: &Config) -> Result<Self> {
        let run = Self { root: root.to_owned() };
        if run.config_path().exists() {
            return Err(Error::Run {
                path: root.to_owned(),
                problem: "there is a run here already".to_owned(),
                remedy: "continue it with `--resume`, or give another `--out`".to_owned(),
            });
        }
        for folder in ["weights", "state"] {
            let folder = root.join(folder);
            fs::create_dir_all(&folder).map_err(Error::file("create", &folder))?;
        }
        let text = toml::to_string(config).expect("settings are plain data");
        write_atomically(&run.config_path(), text.as_bytes())?;
        Ok(run)
    }

    /// Opens a run that was started before.
    pub fn open(root: &Path) -> Result<Self> {
        let run = Self { root: root.to_owned() };
        if run.config_path().is_file() {
            return Ok(run);
        }
        Err(Error::Run {
            path: root.to_owned(),
            problem: "no run here: `config.toml` is missing".to_owned(),
            remedy: "give the directory that `pinpoint train --out` wrote".to_owned(),
        })
    }

    /// Opens a run to continue it, which only its own settings can.
    pub fn reopen(root: &Path, config: &Config) -> Result<Self> {
        let run = Self::open(root)?;
        let before = run.config()?;
        if before == *config {
            return Ok(run);
        }
        Err(Error::Run {
            path: root.to_owned(),
            problem: format!(
                "the run was started with other settings\n{}",
                difference(&before, config)
            ),
            remedy: "resume without changing settings, or start a new run in another `--out`"
                .to_owned(),
        })
    }

    /// The settings of the run.
    pub fn config(&self) -> Result<Config> {
        Config::load(&self.config_path())
    }

    /// The directory itself.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The weights of the best epoch.
    pub fn best(&self) -> PathBuf {
        self.root.join("weights/best.safetensors")
    }

    /// The weights of the last epoch.
    pub fn last(&self) -> PathBuf {
        self.root.join("weights/last.safetensors")
    }

    /// Everything a resumed run needs.
    pub fn checkpoint(&self) -> PathBuf {
        self.root.join("state/checkpoint.safetensors")
    }

    /// Takes over what another run has learned, which must be all that this one would learn.
    ///
    /// The checkpoint comes last: a copy that was cut short is no run that can be resumed.
    pub fn adopt(&self, other: &Self) -> Result<()> {
        let name = other.root.file_name().unwrap_or(other.root.as_os_str());
        write_atomically(&self.adopted_path(), name.to_string_lossy().as_bytes())?;
        let parts = ["metrics.jsonl", "metrics.csv", "curves.png"].map(PathBuf::from);
        let weights = ["weights/best.safetensors", "weights/last.safetensors"].map(PathBuf::from);
        let checkpoint = PathBuf::from("state/checkpoint.safetensors");
        for part in parts.into_iter().chain(weights).chain([checkpoint]) {
            let source = other.root.join(&part);
            match fs::read(&source) {
                Ok(bytes) => write_atomically(&self.root.join(&part), &bytes)?,
                // The picture is no part of the run.
                Err(_) if part.ends_with("curves.png") => {}
                Err(error) => return Err(Error::file("read", &source)(error)),
            }
        }
        Ok(())
    }

    /// The name of the run whose learning this one took over, if it did.
    pub fn adopted(&self) -> Option<String> {
        fs::read_to_string(self.adopted_path()).ok()
    }

    /// Saves where the run stands.
    pub fn save(
        &self,
        model: &impl Module,
        memory: Arrays,
        position: &Position,
    ) -> Result<PathBuf> {
        let mut arrays = params::collect(model);
        arrays.extend(memory.into_iter().map(|(name, array)| (format!("optimizer.{name}"), array)));
        let path = self.checkpoint();
        weights::write(&path, &arrays, position)?;
        Ok(path)
    }

    /// Reads back what [`Self::save`] wrote: weights, optimizer memory, position.
    pub fn restore(&self) -> Result<Option<(Arrays, Arrays, Position)>> {
        let path = self.checkpoint();
        if !path.exists() {
            return Ok(None);
        }
        let (arrays, position) = weights::read_with_note(&path)?;
        let (mut weights, mut memory) = (Arrays::new(), Arrays::new());
        for (name, array) in arrays {
            match name.strip_prefix("optimizer.") {
                Some(name) => memory.insert(name.to_owned(), array),
                None => weights.insert(name, array),
            };
        }
        Ok(Some((weights, memory, position)))
    }

    /// Writes the metrics of all finished epochs.
    pub fn write_metrics(&self, records: &[EpochRecord]) -> Result<()> {
        let mut lines = String::new();
        let mut table = csv::Writer::from_writer(Vec::new());
        for record in records {
            lines.push_str(&serde_json::to_string(record).expect("records are plain data"));
            lines.push('\n');
            table.serialize(record).expect("records are plain data");
        }
        let table = table.into_inner().expect("writing to memory does not fail");
        write_atomically(&self.root.join("metrics.jsonl"), lines.as_bytes())?;
        write_atomically(&self.root.join("metrics.csv"), &table)
    }

    /// The metrics of all finished epochs.
    pub fn records(&self) -> Result<Vec<EpochRecord>> {
        let path = self.root.join("metrics.jsonl");
        let text = fs::read_to_string(&path).map_err(Error::file("read", &path))?;
        let records = text.lines().map(serde_json::from_str).collect::<Result<_, _>>();
        records.map_err(|error| Error::Run {
            path,
            problem: format!("unreadable metrics ({error})"),
            remedy: "resume the run, which writes them again".to_owned(),
        })
    }

    fn adopted_path(&self) -> PathBuf {
        self.root.join("trained-in.txt")
    }

    fn config_path(&self) -> PathBuf {
        self.root.join("config.toml")
    }
}

/// A number that changes when the training or validation samples do.
pub fn fingerprint(dataset: &Dataset) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut mix = |bytes: &[u8]| {
        for &byte in bytes.iter().chain(&[0xff]) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    };
    for sample in dataset.train.iter().chain(&dataset.valid) {
        mix(sample.id.as_bytes());
        mix(dataset.classes[sample.label].as_bytes());
    }
    hash
}

/// The settings that differ, one per line.
fn difference(before: &Config, now: &Config) -> String {
    let leaves = |config: &Config| {
        let mut leaves = Vec::new();
        let table = toml::Table::try_from(config).expect("settings are plain data");
        flatten("", &toml::Value::Table(table), &mut leaves);
        leaves
    };
    let (before, now) = (leaves(before), leaves(now));
    let value = |list: &[(String, String)], key: &str| {
        let found = list.iter().find(|(name, _)| name == key);
        found.map_or_else(|| "unset".to_owned(), |(_, value)| value.clone())
    };
    let mut keys: Vec<&String> = before.iter().chain(&now).map(|(key, _)| key).collect();
    keys.sort();
    keys.dedup();
    let changed = keys.into_iter().filter_map(|key| {
        let (was, is) = (value(&before, key), value(&now, key));
        (was != is).then(|| format!("  `{key}` was {was}, is {is}"))
    });
    changed.collect::<Vec<_>>().join("\n")
}

fn flatten(prefix: &str, value: &toml::Value, leaves: &mut Vec<(String, String)>) {
    match value {
        toml::Value::Table(table) => {
            for (key, value) in table {
                let dot = if prefix.is_empty() { "" } else { "." };
                flatten(&format!("{prefix}{dot}{key}"), value, leaves);
            }
        }
        leaf => leaves.push((prefix.to_owned(), leaf.to_string())),
    }
}
