//! Opening of a complete run directory.

use std::path::Path;

use serde::Deserialize;

use super::{BEST, CONFIG, RunDir};
use crate::{
    error::{Error, Result},
    model::weights,
    regular,
};

impl RunDir {
    /// Opens a run to use it: it must be complete, and not written by a newer version.
    ///
    /// The error names all that is missing.
    pub fn open(root: &Path) -> Result<Self> {
        if !root.is_dir() {
            let remedy = "give the directory that `pinpoint train --out` wrote";
            return Err(Error::run(root, "there is no such run directory", remedy));
        }
        let missing = [CONFIG, BEST].into_iter().filter(|part| !root.join(part).is_file());
        let missing: Vec<String> = missing.map(|part| format!("`{part}`")).collect();
        if missing.len() == 2 {
            let runs = regular::entries(root).unwrap_or_default();
            let inside = runs.iter().find(|folder| Self::exists(folder));
            let inside = inside.map(|run| format!(", such as `{}`", run.display()));
            let remedy = "give the directory that `pinpoint train --out` wrote".to_owned();
            return Err(Error::run(
                root,
                format!("it is no run, as there is neither {}", missing.join(" nor ")),
                &(remedy + &inside.unwrap_or_default()),
            ));
        }
        if !missing.is_empty() {
            return Err(Error::run(
                root,
                format!("the run is incomplete, without {}", missing.join(" and ")),
                "let `pinpoint train --resume` finish it, or give a run directory",
            ));
        }
        const OURS: &str = env!("CARGO_PKG_VERSION");
        if let Some(version) = version(&root.join(BEST))
            && is_newer(&version, OURS)
        {
            let problem =
                format!("the run was written by pinpoint {version}, newer than this {OURS}");
            return Err(Error::run(root, problem, "update pinpoint"));
        }
        Ok(Self::at(root))
    }
}

/// The version of pinpoint that wrote a weight file; `None` if it cannot be read, which is reported
/// when the weights are read.
fn version(weights: &Path) -> Option<String> {
    #[derive(Deserialize)]
    struct Note {
        version: String,
    }
    weights::read_note::<Note>(weights).ok().map(|note| note.version)
}

fn is_newer(version: &str, than: &str) -> bool {
    let numbers = |version: &str| -> Vec<u64> {
        let plain = version.split(['-', '+']).next().unwrap_or_default();
        plain.split('.').map_while(|part| part.parse().ok()).collect()
    };
    numbers(version) > numbers(than)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn everything_that_is_missing_is_told_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let message = RunDir::open(folder.path()).unwrap_err().to_string();
        assert!(message.contains("`config.toml` nor `weights/best.safetensors`"), "{message}");
        assert!(message.contains("no run") && !message.contains("such as"), "{message}");
        let inside = folder.path().join("run");
        fs::create_dir(&inside).unwrap();
        fs::write(inside.join("config.toml"), "").unwrap();
        let message = RunDir::open(folder.path()).unwrap_err().to_string();
        assert!(message.contains(&format!("such as `{}`", inside.display())), "{message}");
        let message = RunDir::open(&inside).unwrap_err().to_string();
        assert!(message.contains("incomplete, without `weights/best.safetensors`"), "{message}");
        let message = RunDir::open(&folder.path().join("gone")).unwrap_err().to_string();
        assert!(message.contains("no such run"), "{message}");
    }

    #[test]
    fn a_run_from_the_future_is_refused_and_one_of_unknown_age_is_not() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("weights")).unwrap();
        fs::write(folder.path().join("config.toml"), "").unwrap();
        let open = |header: &str| {
            let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
            bytes.extend_from_slice(header.as_bytes());
            fs::write(folder.path().join("weights/best.safetensors"), bytes).unwrap();
            RunDir::open(folder.path())
        };
        let newer = r#"{"__metadata__":{"pinpoint":"{\"version\":\"99.1.0\",\"x\":1}"}}"#;
        let message = open(newer).unwrap_err().to_string();
        assert!(message.contains("pinpoint 99.1.0") && message.contains("update"), "{message}");
        assert!(open("no JSON").is_ok());
    }

    #[test]
    fn versions_are_compared_by_number() {
        assert!(is_newer("0.10.0", "0.9.3") && is_newer("1.0.0-rc.1", "0.9.9"));
        assert!(!is_newer("0.1.0", "0.1.0") && !is_newer("odd", "0.1.0"));
    }
}
