//! The lock by which only one process at a time writes a run.
//!
//! It is a lock of the operating system, on a file that stays in the run: it ends with the process
//! that holds it, however that ends. A file beside it says which process that is, for the error
//! message of one that is refused.

use std::{
    fs::{self, File, TryLockError},
    path::Path,
    process,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use serde::{Deserialize, Serialize};

use super::{HOLDER, LOCK, write_atomically};
use crate::{
    error::{Error, Result},
    regular,
};

/// The right to write a run, for as long as this value lives.
#[derive(Debug)]
pub(super) struct Lock {
    _file: File,
}

impl Lock {
    /// Takes the lock of the run in `root`, or says who has it.
    ///
    /// On a file system that knows no locks, the run is written without.
    pub(super) fn take(root: &Path) -> Result<Self> {
        let path = root.join(LOCK);
        let file = File::options().read(true).write(true).create(true).truncate(false).open(&path);
        let file = file.map_err(Error::file("create", &path))?;
        if let Err(TryLockError::WouldBlock) = file.try_lock() {
            let holder = Holder::read(root).map_or_else(String::new, |it| format!(" ({it})"));
            return Err(Error::run(
                root,
                format!("another process is writing this run{holder}"),
                "wait until it ends, or stop it; meanwhile the run can be evaluated, but not \
                 trained",
            ));
        }
        let note = serde_json::to_vec(&Holder::this_process()).expect("plain data");
        write_atomically(&root.join(HOLDER), &note)?;
        Ok(Self { _file: file })
    }
}

/// Who holds a lock.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Holder {
    process: u32,
    /// If the system provides it.
    host: Option<String>,
    /// Likewise.
    command: Option<String>,
    /// Seconds since 1970.
    since: u64,
}

impl Holder {
    fn this_process() -> Self {
        let read = |path: &str| fs::read(path).ok().filter(|bytes| !bytes.is_empty());
        let line = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).trim().to_owned();
        // Arguments end in zeros.
        let words = |bytes: Vec<u8>| bytes.iter().map(|&b| if b == 0 { b' ' } else { b }).collect();
        Self {
            process: process::id(),
            host: read("/proc/sys/kernel/hostname").or_else(|| read("/etc/hostname")).map(line),
            command: read("/proc/self/cmdline").map(words).map(line),
            since: now().as_secs(),
        }
    }

    fn read(root: &Path) -> Option<Self> {
        serde_json::from_slice(regular::read_text(&root.join(HOLDER)).ok()?.as_bytes()).ok()
    }
}

impl std::fmt::Display for Holder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "process {}", self.process)?;
        if let Some(host) = &self.host {
            write!(f, " on `{host}`")?;
        }
        match now().as_secs().saturating_sub(self.since) {
            seconds @ 0..120 => write!(f, ", for {seconds} s")?,
            seconds @ 120..7200 => write!(f, ", for {} min", seconds / 60)?,
            seconds => write!(f, ", for {} h", seconds / 3600)?,
        }
        match &self.command {
            Some(command) => write!(f, ": `{command}`"),
            None => Ok(()),
        }
    }
}

fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_holder_is_refused_until_the_first_lets_go() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("state")).unwrap();
        let first = Lock::take(folder.path()).unwrap();
        let message = Lock::take(folder.path()).unwrap_err().to_string();
        let process = format!("process {}", process::id());
        assert!(message.contains(&process) && message.contains("hint:"), "{message}");
        drop(first);
        Lock::take(folder.path()).unwrap();
    }

    #[test]
    fn a_holder_is_described_by_what_is_known_of_it() {
        let since = now().as_secs() - 180;
        let known = Holder {
            process: 7,
            host: Some("lab".to_owned()),
            command: Some("pinpoint train".to_owned()),
            since,
        };
        assert_eq!(known.to_string(), "process 7 on `lab`, for 3 min: `pinpoint train`");
        let unknown = Holder { host: None, command: None, ..known };
        assert_eq!(unknown.to_string(), "process 7, for 3 min");
    }
}
