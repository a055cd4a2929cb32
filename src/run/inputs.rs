//! The inputs of a run: initial weights, images and masks, identified by their content.

use std::{
    io::{self, Read as _, Seek as _, SeekFrom},
    path::{self, Path, PathBuf},
};

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::{INPUTS, Position, RunDir, write_atomically};
use crate::{
    config::DataConfig,
    data::{Dataset, Layout, Sample},
    digest::Digest,
    error::{Error, Result},
    model::weights,
    regular,
};

/// The inputs of a run, as in `inputs.json` and in reports.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inputs {
    /// The weight file that training started from; `None` for random weights.
    pub weights: Option<WeightFile>,
    /// The images of the training and validation splits.
    pub images: Fingerprint,
    /// Their masks; `None` if the method does not learn from masks, or an older version started the
    /// run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub masks: Option<Fingerprint>,
    /// The dataset, to resume or evaluate the run without naming it; older versions did not record
    /// it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<DataSource>,
}

/// Where a dataset is and how it is read; what counts as foreground is in the settings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataSource {
    /// The dataset.
    pub path: PathBuf,
    /// Its layout; `None` to detect it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layout: Option<Layout>,
    /// Where the images of list files are, when not beside the lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub images: Option<PathBuf>,
}

impl DataSource {
    /// A dataset whose layout is detected.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), layout: None, images: None }
    }

    /// Opens the dataset, read by these settings.
    pub fn open(&self, settings: &DataConfig) -> Result<Dataset> {
        Dataset::open(&self.path, &settings.open_options(self.layout, self.images.clone()))
    }

    /// The same with absolute paths.
    fn absolute(&self) -> Self {
        let images = self.images.as_deref().map(absolute);
        Self { path: absolute(&self.path), layout: self.layout, images }
    }
}

fn absolute(path: &Path) -> PathBuf {
    path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// A weight file, by name and by content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WeightFile {
    /// The last part of its path.
    pub name: String,
    /// Of its bytes, in hexadecimal digits.
    pub sha256: String,
    /// Its path; older versions did not record it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<PathBuf>,
}

/// The content of several files of a dataset.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fingerprint {
    /// How many there are.
    pub files: usize,
    /// Their length together.
    pub bytes: u64,
    /// Whether every byte was read, or a sample of each file.
    pub every_byte: bool,
    /// Of the length and the bytes of each file, in the order of the splits.
    pub sha256: String,
}

/// Bytes read at each of the three places of a sampled file.
const SAMPLE: u64 = 4096;

impl Inputs {
    /// Reads the inputs of a run; `masks_of` gives the mask files of a sample that the method
    /// learns from.
    pub fn of(
        dataset: &Dataset,
        masks_of: fn(&Sample) -> Vec<&Path>,
        weights: Option<&Path>,
        every_byte: bool,
    ) -> Result<Self> {
        let weights = weights.map(WeightFile::of).transpose()?;
        let samples = || dataset.train.iter().chain(&dataset.valid);
        let images: Vec<&Path> = samples().map(|sample| sample.image.as_path()).collect();
        let masks: Vec<&Path> = samples().flat_map(masks_of).collect();
        let images = Fingerprint::of(&images, every_byte)?;
        let masks = (!masks.is_empty()).then(|| Fingerprint::of(&masks, every_byte)).transpose()?;
        Ok(Self { weights, images, masks, data: None })
    }

    /// Records where the dataset is, by absolute paths.
    pub fn with_data(self, source: Option<&DataSource>) -> Self {
        Self { data: source.map(DataSource::absolute).or(self.data), ..self }
    }
}

impl WeightFile {
    /// Reads a weight file to identify it.
    pub fn of(path: &Path) -> Result<Self> {
        let mut digest = Digest::default();
        let file = regular::open(path).map_err(Error::file("read", path))?;
        digest.add_all(file).map_err(Error::file("read", path))?;
        let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        Ok(Self { name, sha256: digest.hex(), path: Some(absolute(path)) })
    }
}

impl Fingerprint {
    /// Reads the length of each file and its start, middle and end, or every byte.
    pub fn of(files: &[&Path], every_byte: bool) -> Result<Self> {
        let one = |path: &&Path| content_of(path, every_byte);
        let seen: Vec<(u64, String)> = files.par_iter().map(one).collect::<Result<_>>()?;
        let mut whole = Digest::default();
        for (length, digest) in &seen {
            whole.add(format!("{length} {digest}\n").as_bytes());
        }
        let bytes = seen.iter().map(|(length, _)| length).sum();
        Ok(Self { files: files.len(), bytes, every_byte, sha256: whole.hex() })
    }
}

/// The length of a file, and the digest of its bytes or of a sample of them.
pub(crate) fn content_of(path: &Path, every_byte: bool) -> Result<(u64, String)> {
    let read = || {
        let mut file = regular::open(path)?;
        let length = file.metadata()?.len();
        let mut digest = Digest::default();
        if every_byte || length <= 3 * SAMPLE {
            digest.add_all(file)?;
            return Ok((length, digest.hex()));
        }
        for place in [0, length / 2, length - SAMPLE] {
            file.seek(SeekFrom::Start(place))?;
            digest.add_all(file.by_ref().take(SAMPLE))?;
        }
        Ok((length, digest.hex()))
    };
    read().map_err(Error::file("read", path))
}

impl RunDir {
    /// The inputs of the run; `None` if an older version started it, or it was not started.
    pub fn inputs(&self) -> Result<Option<Inputs>> {
        let path = self.root.join(INPUTS);
        let text = match regular::read_text(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            outcome => outcome.map_err(Error::file("read", &path))?,
        };
        serde_json::from_str(&text).map(Some).map_err(|error| {
            let problem = format!("unreadable record of what the run was started from ({error})");
            Error::run(&path, problem, "restore the file, or start a new run in another `--out`")
        })
    }

    /// Reads the inputs of a training, and refuses to resume a run with other inputs than those it
    /// was started with.
    ///
    /// A run whose checkpoint exists needs no weight file; if one is given, it must be the same.
    /// Images may be mended, or others, as long as nothing was learned from them.
    pub fn require_inputs(
        &self,
        dataset: &Dataset,
        masks_of: fn(&Sample) -> Vec<&Path>,
        weights: Option<&Path>,
        every_byte: bool,
    ) -> Result<Inputs> {
        let Some(before) = self.inputs()? else {
            return Inputs::of(dataset, masks_of, weights, every_byte);
        };
        let now = Inputs::of(dataset, masks_of, weights, before.images.every_byte)?;
        let refuse = |problem: &str, remedy| Err(Error::run(&self.root, problem, remedy));
        let has_learned = self.has_learned();
        if has_learned && now.images != before.images {
            return refuse(
                "the images have changed since the run was started: same names, other content",
                "put the old images back, or start a new run in another `--out`",
            );
        }
        if has_learned && before.masks.is_some() && now.masks != before.masks {
            return refuse(
                "the masks that it learns from have changed since the run was started",
                "put the old masks back, or start a new run in another `--out`",
            );
        }
        match (&before.weights, &now.weights) {
            (Some(WeightFile { name, sha256, .. }), Some(new)) if *sha256 != new.sha256 => refuse(
                &format!("the run was started from other weights (`{name}`, SHA-256 {sha256})"),
                "give the weights it was started from, or none",
            ),
            (None, Some(_)) => refuse(
                "the run was started from drawn weights, not from a weight file",
                "resume without `--weights`, or start a new run in another `--out`",
            ),
            (Some(WeightFile { name, sha256, .. }), None) if !self.checkpoint().exists() => refuse(
                &format!(
                    "the run was stopped before it had loaded its weights (`{name}`, SHA-256 \
                     {sha256})"
                ),
                "resume with the `--weights` it was started from",
            ),
            _ if has_learned => Ok(before),
            _ => Ok(Inputs { images: now.images, masks: now.masks, ..before }),
        }
    }

    /// Whether the checkpoint is of more than the start; what is wrong with it is told when it is
    /// read.
    fn has_learned(&self) -> bool {
        let position = weights::read_note::<Position>(&self.checkpoint());
        position.is_ok_and(|position| !position.is_start())
    }

    /// Records what the run is started from.
    pub(super) fn write_inputs(&self, inputs: &Inputs) -> Result<()> {
        let text = serde_json::to_vec_pretty(inputs).expect("inputs are plain data");
        write_atomically(&self.root.join(INPUTS), &text)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_sample_sees_length_start_middle_and_end_and_every_byte_sees_the_rest() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("image");
        let print = |change: Option<usize>, length: usize, every_byte: bool| {
            let mut bytes = vec![7; length];
            change.into_iter().for_each(|at| bytes[at] = 8);
            fs::write(&path, bytes).unwrap();
            Fingerprint::of(&[&path], every_byte).unwrap().sha256
        };
        for every_byte in [false, true] {
            let whole = print(None, 100_000, every_byte);
            assert_eq!(whole, print(None, 100_000, every_byte));
            assert_ne!(whole, print(None, 100_001, every_byte));
            for at in [0, 50_000, 99_999] {
                assert_ne!(whole, print(Some(at), 100_000, every_byte), "{at}");
            }
            assert_eq!(whole == print(Some(20_000), 100_000, every_byte), !every_byte);
        }
        // Of a small file, every byte is in the sample.
        assert_ne!(print(None, 9000, false), print(Some(4500), 9000, false));
    }

    #[test]
    fn files_are_told_apart_by_order_and_by_where_one_ends() {
        let folder = tempfile::tempdir().unwrap();
        let [a, b] = ["a", "b"].map(|name| folder.path().join(name));
        let print = |first: &str, second: &str| {
            fs::write(&a, first).unwrap();
            fs::write(&b, second).unwrap();
            Fingerprint::of(&[&a, &b], false).unwrap()
        };
        let one = print("xy", "z");
        assert_eq!((one.files, one.bytes), (2, 3));
        assert_ne!(one.sha256, print("x", "yz").sha256);
        assert_ne!(one.sha256, print("z", "xy").sha256);
    }
}
