//! The run directory: what training writes to disk, and how it is resumed from that.
//!
//! ```text
//! RUN/config.toml                      merged settings, complete
//!     inputs.json                      initial weights and images, by content
//!     weights/{best,last}.safetensors  with classes, normalization and threshold inside
//!     state/checkpoint.safetensors     everything a resumed run needs, in one file
//!     state/{lock,holder.json}         held by the process that writes the run; which process
//!     metrics.jsonl metrics.csv        one line per epoch
//!     tensorboard/events.…             the same for TensorBoard, if asked for
//!     trained-in.txt                   the run that was trained for this one, if one was
//! ```
//!
//! Every file is written atomically. The checkpoint is *one* file, so that a run killed at any
//! moment is resumed from a state that existed. Of a new run `config.toml` is written last: a
//! directory that has it has a run.

mod atomic;
mod complete;
mod difference;
mod inputs;
mod lock;
mod state;

use std::{
    fs, iter,
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
};

use burn::module::Module;

use self::lock::Lock;
pub(crate) use self::{atomic::link_atomically, difference::difference, inputs::content_of};
pub use self::{
    atomic::{PartFile, write_atomically, write_atomically_by},
    inputs::{DataSource, Fingerprint, Inputs, WeightFile},
    state::{Best, EpochRecord, Position, Sums, WeightsNote},
};
use crate::{
    config::Config,
    error::{Error, Result},
    model::{
        params,
        weights::{self, Arrays, Noted},
    },
    regular,
};

// The paths in a run directory, which no other module uses.
const CONFIG: &str = "config.toml";
const BEST: &str = "weights/best.safetensors";
const LAST: &str = "weights/last.safetensors";
const CHECKPOINT: &str = "state/checkpoint.safetensors";
const METRICS: &str = "metrics.jsonl";
const METRICS_TABLE: &str = "metrics.csv";
const CURVES: &str = "curves.svg";
// TensorBoard knows its files by the word `tfevents`.
const TENSORBOARD: &str = "tensorboard/events.out.tfevents.pinpoint";
const INPUTS: &str = "inputs.json";
const ADOPTED: &str = "trained-in.txt";
const LOCK: &str = "state/lock";
const HOLDER: &str = "state/holder.json";

/// Settings that may be changed after training: they say how data is read, and how long to train.
const UNTRAINED: [&str; 4] =
    ["`data.max_megapixels`", "`data.cache_mib`", "`data.mask_rule`", "`train.epochs`"];

/// A directory that holds one run, or will.
#[derive(Debug, Clone)]
pub struct RunDir {
    root: PathBuf,
    /// Held while the run is written, until the last copy of this value is dropped.
    lock: Arc<OnceLock<Lock>>,
}

/// A checkpoint as it was saved.
#[derive(Debug)]
pub struct Checkpoint {
    /// Of the network.
    pub weights: Arrays,
    /// Of the optimizer.
    pub memory: Arrays,
    /// The progress of the run.
    pub position: Position,
    /// Whether checksums have shown it to be what was saved; older versions wrote none.
    pub verified: bool,
}

impl RunDir {
    /// A run that is to be started in a directory without one; nothing is written yet.
    pub fn plan(root: &Path) -> Result<Self> {
        let run = Self::at(root);
        run.require_vacant()?;
        Ok(run)
    }

    /// Starts a planned run, or continues a reopened one, of which only the number of epochs may
    /// have changed.
    ///
    /// To be called after everything that could fail.
    pub fn begin(&self, config: &Config, inputs: Option<&Inputs>) -> Result<()> {
        if self.lock.get().is_some() {
            let before = self.inputs()?;
            if let (Some(before), Some(now)) = (before, inputs)
                && (before.images != now.images || before.masks != now.masks)
            {
                self.write_inputs(now)?;
            }
            // Going on for more epochs than planned is all that may have changed.
            return if self.config()? == *config { Ok(()) } else { self.write_config(config) };
        }
        self.hold()?;
        // Another process may have started a run here meanwhile.
        self.require_vacant()?;
        if let Some(inputs) = inputs {
            self.write_inputs(inputs)?;
        }
        self.write_config(config)?;
        let around = self.root.parent().filter(|around| !around.as_os_str().is_empty());
        // The run's own name must survive a power cut too.
        atomic::sync_folder(around.unwrap_or(Path::new(".")))
            .map_err(Error::file("write", &self.root))
    }

    /// A run that was started, but need not be complete.
    pub fn started(root: &Path) -> Result<Self> {
        if Self::exists(root) {
            return Ok(Self::at(root));
        }
        let remedy = "give the directory that `pinpoint train --out` wrote";
        Err(Error::run(root, "no run here: `config.toml` is missing", remedy))
    }

    /// Opens a run to resume it, by one process at a time.
    ///
    /// The settings must be those of the run, but for more epochs.
    pub fn reopen(root: &Path, config: &Config) -> Result<Self> {
        let run = Self::started(root)?;
        let before = run.config()?;
        let mut longer = before.clone();
        longer.train.epochs = longer.train.epochs.max(config.train.epochs);
        if longer != *config {
            let changed = difference(&before, config).join("\n");
            return Err(Error::run(
                root,
                format!("the run was started with other settings\n{changed}"),
                "resume without changing settings, but for more `--epochs`, or start a new run in \
                 another `--out`",
            ));
        }
        run.hold()?;
        Ok(run)
    }

    fn at(root: &Path) -> Self {
        Self { root: root.to_owned(), lock: Arc::default() }
    }

    fn write_config(&self, config: &Config) -> Result<()> {
        let text = toml::to_string(config).expect("settings are plain data");
        write_atomically(&self.config_path(), text.as_bytes())
    }

    /// Makes the folders, takes the lock, and clears away what a killed process left half-written.
    fn hold(&self) -> Result<()> {
        let folders = [self.root.join("weights"), self.root.join("state")];
        for folder in &folders {
            fs::create_dir_all(folder).map_err(Error::file("create", folder))?;
        }
        let lock = Lock::take(&self.root)?;
        folders.iter().chain([&self.root]).for_each(|folder| atomic::clear(folder));
        self.lock.set(lock).expect("a run is begun by one thread");
        Ok(())
    }

    fn require_vacant(&self) -> Result<()> {
        if Self::exists(&self.root) {
            let remedy = "continue it with `--resume`, or give another `--out`";
            return Err(Error::run(&self.root, "there is a run here already", remedy));
        }
        if self.checkpoint().exists() {
            // Its settings are not known, and training would silently resume from it.
            let problem = "there is a checkpoint here of a run without settings";
            let remedy = "restore `config.toml`, remove the folder, or give another `--out`";
            return Err(Error::run(&self.root, problem, remedy));
        }
        Ok(())
    }

    /// A directory in `parent` that does not exist yet, named after a dataset and numbered.
    pub fn unused(parent: &Path, data: &Path) -> PathBuf {
        let whole = data.canonicalize().unwrap_or_else(|_| data.to_owned());
        // The extension of a file, such as a table of images, is left out.
        let name = if whole.is_file() { whole.file_stem() } else { whole.file_name() };
        let first = parent.join(name.unwrap_or("run".as_ref()));
        let numbered = |number| {
            let mut path = first.clone().into_os_string();
            path.push(format!("-{number}"));
            PathBuf::from(path)
        };
        let mut paths = iter::once(first.clone()).chain((2..).map(numbered));
        paths.find(|path| !path.exists()).expect("numbers do not end")
    }

    /// Whether a run was started in a directory.
    pub fn exists(root: &Path) -> bool {
        root.join(CONFIG).is_file()
    }

    /// The settings of the run, which may have been edited and are therefore checked.
    pub fn config(&self) -> Result<Config> {
        let path = self.config_path();
        let config = Config::load(&path)?;
        let remedy = "put the settings back that the run was started with";
        config.check().map_err(|problems| Error::run(&path, problems.to_string(), remedy))?;
        Ok(config)
    }

    /// Refuses weights that were trained with other settings than the run has now, but for settings
    /// that the weights do not depend on.
    pub fn require_settings(&self, config: &Config, note: &WeightsNote) -> Result<()> {
        let changed = match &note.settings {
            Some(trained) => difference(trained, config),
            None if note.normalization != config.preprocess.normalization => {
                vec!["  `preprocess.normalization` has changed".to_owned()]
            }
            None => Vec::new(),
        };
        let matters = |line: &&String| !UNTRAINED.iter().any(|key| line.contains(key));
        let changed: Vec<&str> = changed.iter().filter(matters).map(String::as_str).collect();
        if changed.is_empty() {
            return Ok(());
        }
        let changed = changed.join("\n");
        Err(Error::run(
            &self.config_path(),
            format!("the weights were trained with other settings\n{changed}"),
            "put the settings back, or train anew with the other ones",
        ))
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

    /// Copies the training of another run, which must be the same as this one's would be.
    ///
    /// The checkpoint comes last: a copy that was cut short is no run that can be resumed.
    pub fn adopt(&self, other: &Self) -> Result<()> {
        let name = other.root.file_name().unwrap_or(other.root.as_os_str());
        write_atomically(&self.root.join(ADOPTED), name.to_string_lossy().as_bytes())?;
        // This run's own settings would have given the same weights.
        let settings = Box::new(self.config()?);
        for part in [BEST, LAST] {
            let from: Noted<WeightsNote> = weights::read_with_note(&other.root.join(part))?;
            let note = WeightsNote { settings: Some(settings.clone()), ..from.note };
            let path = self.root.join(part);
            write_atomically_by(&path, |file| weights::write(file, &from.arrays, &note))?;
        }
        for part in [INPUTS, METRICS, METRICS_TABLE, CURVES, CHECKPOINT] {
            let source = other.root.join(part);
            match fs::read(&source) {
                Ok(bytes) => write_atomically(&self.root.join(part), &bytes)?,
                // The curves are not needed, and older runs have no inputs.
                Err(_) if [CURVES, INPUTS].contains(&part) => {}
                Err(error) => return Err(Error::file("read", &source)(error)),
            }
        }
        Ok(())
    }

    /// The name of the run whose training this one has copied, if it has.
    pub fn adopted(&self) -> Option<String> {
        regular::read_text(&self.root.join(ADOPTED)).ok()
    }

    /// Saves a checkpoint.
    pub fn save(
        &self,
        model: &impl Module,
        memory: Arrays,
        position: &Position,
    ) -> Result<PathBuf> {
        let mut arrays = params::collect(model);
        arrays.extend(memory.into_iter().map(|(name, array)| (format!("optimizer.{name}"), array)));
        let path = self.checkpoint();
        write_atomically_by(&path, |file| weights::write(file, &arrays, position))?;
        Ok(path)
    }

    /// Saves the checkpoint of a finished run, which needs no weights.
    pub fn save_finished(&self, position: &Position) -> Result<PathBuf> {
        let path = self.checkpoint();
        write_atomically_by(&path, |file| weights::write(file, &Arrays::new(), position))?;
        Ok(path)
    }

    /// Reads back what [`Self::save`] wrote, if anything was.
    pub fn restore(&self) -> Result<Option<Checkpoint>> {
        let path = self.checkpoint();
        if !path.exists() {
            return Ok(None);
        }
        let Noted { arrays, note: position, verified } = weights::read_with_note(&path)?;
        let (mut weights, mut memory) = (Arrays::new(), Arrays::new());
        for (name, array) in arrays {
            match name.strip_prefix("optimizer.") {
                Some(name) => memory.insert(name.to_owned(), array),
                None => weights.insert(name, array),
            };
        }
        Ok(Some(Checkpoint { weights, memory, position, verified }))
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

    /// Writes the training curves, an SVG file.
    pub fn write_curves(&self, picture: &str) -> Result<()> {
        write_atomically(&self.root.join(CURVES), picture.as_bytes())
    }

    /// The event file of TensorBoard, if one was asked for.
    pub fn tensorboard(&self) -> PathBuf {
        self.root.join(TENSORBOARD)
    }

    /// The metrics of all finished epochs.
    pub fn records(&self) -> Result<Vec<EpochRecord>> {
        let path = self.root.join(METRICS);
        let text = regular::read_text(&path).map_err(Error::file("read", &path))?;
        let records = text.lines().map(serde_json::from_str).collect::<Result<_, _>>();
        let unreadable = |error| format!("unreadable metrics ({error})");
        let remedy = "resume the run, which writes them again";
        records.map_err(|error: serde_json::Error| Error::run(&path, unreadable(error), remedy))
    }

    fn config_path(&self) -> PathBuf {
        self.root.join(CONFIG)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_several_trainings_that_found_the_folder_empty_one_has_it() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("run");
        let [one, two] = [1, 2].map(|seed| Config { seed, ..Config::default() });
        let [first, second, third] = [(); 3].map(|()| RunDir::plan(&root).unwrap());
        fs::create_dir_all(root.join("state")).unwrap();
        // The first one has the lock and has written nothing yet.
        first.hold().unwrap();
        assert!(second.begin(&two, None).is_err());
        assert!(!RunDir::exists(&root));
        first.write_config(&one).unwrap();
        drop(first);
        // It is gone, and what it began is left alone.
        assert!(third.begin(&two, None).is_err());
        assert_eq!(RunDir::started(&root).unwrap().config().unwrap(), one);
    }
}
