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

mod atomic;
mod complete;
mod difference;
mod state;

use std::{
    fs,
    path::{Path, PathBuf},
};

use burn::module::Module;

use self::difference::difference;
pub use self::{
    atomic::write_atomically,
    complete::open_run,
    state::{Best, EpochRecord, Position, Sums, WeightsNote, fingerprint},
};
use crate::{
    config::Config,
    error::{Error, Result},
    model::{
        params,
        weights::{self, Arrays},
    },
};

// Where things are; nobody outside this module knows.
const CONFIG: &str = "config.toml";
const BEST: &str = "weights/best.safetensors";
const LAST: &str = "weights/last.safetensors";
const CHECKPOINT: &str = "state/checkpoint.safetensors";
const METRICS: &str = "metrics.jsonl";
const METRICS_TABLE: &str = "metrics.csv";
const CURVES: &str = "curves.png";

/// A directory that holds one run.
#[derive(Debug, Clone)]
pub struct RunDir {
    root: PathBuf,
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
        if Self::exists(root) {
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

    /// Whether a run was started in a directory.
    pub fn exists(root: &Path) -> bool {
        root.join(CONFIG).is_file()
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
        self.root.join(BEST)
    }

    /// The weights of the last epoch.
    pub fn last(&self) -> PathBuf {
        self.root.join(LAST)
    }

    /// Everything a resumed run needs.
    pub fn checkpoint(&self) -> PathBuf {
        self.root.join(CHECKPOINT)
    }

    /// Takes over what another run has learned, which must be all that this one would learn.
    ///
    /// The checkpoint comes last: a copy that was cut short is no run that can be resumed.
    pub fn adopt(&self, other: &Self) -> Result<()> {
        let name = other.root.file_name().unwrap_or(other.root.as_os_str());
        write_atomically(&self.adopted_path(), name.to_string_lossy().as_bytes())?;
        for part in [METRICS, METRICS_TABLE, CURVES, BEST, LAST, CHECKPOINT] {
            let source = other.root.join(part);
            match fs::read(&source) {
                Ok(bytes) => write_atomically(&self.root.join(part), &bytes)?,
                // The picture is no part of the run.
                Err(_) if part == CURVES => {}
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
        write_atomically(&path, &weights::encode(&arrays, position))?;
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
        write_atomically(&self.root.join(METRICS), lines.as_bytes())?;
        write_atomically(&self.root.join(METRICS_TABLE), &table)
    }

    /// Keeps the picture of how the run has gone so far, a PNG file.
    pub fn write_curves(&self, picture: &[u8]) -> Result<()> {
        write_atomically(&self.root.join(CURVES), picture)
    }

    /// The metrics of all finished epochs.
    pub fn records(&self) -> Result<Vec<EpochRecord>> {
        let path = self.root.join(METRICS);
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
        self.root.join(CONFIG)
    }
}
