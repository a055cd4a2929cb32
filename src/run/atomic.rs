//! Files that appear whole or not at all.
//!
//! Content goes into a new file beside the target, which then takes the target's
//! name. The new file is created exclusively, under a name that nobody else uses:
//! two processes may write into one folder, and no link planted there is followed.
//! Its writer keeps it locked: an unlocked one is left from a process that was killed, and is
//! removed. (The crate `tempfile` locks nothing, and leaves such files.)

use std::{
    collections::BTreeSet,
    fs::{self, File, TryLockError},
    io::{self, Write as _},
    path::{Path, PathBuf},
    process,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{SystemTime, UNIX_EPOCH},
};

use crate::{
    error::{Error, Result},
    regular,
};

/// How the names of unfinished files end; they start with a dot.
const ENDING: &str = ".pinpoint-part";

/// Names that are tried before giving up; each is as good as unique.
const ATTEMPTS: usize = 16;

/// Writes a file so that a reader finds the old content or the new, whatever happens in between.
///
/// The first write into a folder removes what killed writers left there.
pub fn write_atomically(path: &Path, content: &[u8]) -> Result<()> {
    write_atomically_by(path, |file| file.write_all(content))
}

/// The same for content that is not held in memory: `write` writes it, piece by piece.
pub fn write_atomically_by(
    path: &Path,
    write: impl FnOnce(&mut File) -> io::Result<()>,
) -> Result<()> {
    let save = || {
        let mut part = PartFile::beside(path)?;
        write(&mut part.file)?;
        part.publish(path)
    };
    save().map_err(Error::file("write", path))
}

/// Gives a file that is never changed in place a second name, and so takes no space for a copy; on
/// file systems without links it is copied.
pub(crate) fn link_atomically(from: &Path, to: &Path) -> Result<()> {
    let linked = || {
        // For its name; what is still there in the end is removed, as `to` may have been a name of
        // the same file already.
        let part = PartFile::beside(to)?;
        fs::remove_file(&part.path)?;
        fs::hard_link(from, &part.path)?;
        fs::rename(&part.path, to)?;
        sync_folder(folder_of(to))
    };
    linked().or_else(|_| {
        let mut content = regular::open(from).map_err(Error::file("read", from))?;
        write_atomically_by(to, |file| io::copy(&mut content, file).map(drop))
    })
}

/// A file in the making, which is removed unless it is published.
#[derive(Debug)]
pub struct PartFile {
    /// Open for reading and writing, and locked.
    pub file: File,
    path: PathBuf,
    published: bool,
}

impl PartFile {
    /// Creates an empty file in the folder of `target`, under a name of its own.
    pub fn beside(target: &Path) -> io::Result<Self> {
        static COUNTER: AtomicU64 = AtomicU64::new(0);
        let folder = folder_of(target);
        clear_once(folder);
        for _ in 0..ATTEMPTS {
            let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
            let count = COUNTER.fetch_add(1, Ordering::Relaxed);
            let path = folder.join(format!(".{:x}-{time:x}-{count:x}{ENDING}", process::id()));
            let file = match File::options().read(true).write(true).create_new(true).open(&path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                outcome => outcome?,
            };
            let part = Self { file, path, published: false };
            // Another process that clears the folder may have removed it before it was locked.
            match part.file.try_lock() {
                Err(TryLockError::WouldBlock) => {}
                // Where there are no locks, nobody clears.
                Ok(()) | Err(TryLockError::Error(_)) if part.path.exists() => return Ok(part),
                _ => {}
            }
        }
        Err(io::Error::other("no name is free for a temporary file"))
    }

    /// Where it is until it is published.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Gives the file its name, once its content is safe on disk.
    pub fn publish(mut self, target: &Path) -> io::Result<()> {
        self.file.sync_all()?;
        fs::rename(&self.path, target)?;
        self.published = true;
        sync_folder(folder_of(target))
    }
}

impl Drop for PartFile {
    fn drop(&mut self) {
        if !self.published {
            // The error of the failed attempt is the one to report.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Makes a new name in a folder survive a power cut, where folders can be synchronized.
pub(super) fn sync_folder(folder: &Path) -> io::Result<()> {
    if cfg!(not(unix)) {
        return Ok(());
    }
    match File::open(folder)?.sync_all() {
        // Some network file systems do not support it.
        Err(error) if is_unsupported(&error) => Ok(()),
        outcome => outcome,
    }
}

fn is_unsupported(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::Unsupported | io::ErrorKind::InvalidInput)
}

/// The folder that a file is in.
fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// Clears a folder the first time that this process writes into it.
fn clear_once(folder: &Path) {
    static CLEARED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
    let is_first = CLEARED.lock().unwrap_or_else(PoisonError::into_inner).insert(folder.to_owned());
    if is_first {
        clear(folder);
    }
}

/// Removes unfinished files whose writers have ended; what cannot be removed stays.
pub(super) fn clear(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let is_part = name.to_str().is_some_and(|it| it.starts_with('.') && it.ends_with(ENDING));
        // No link is followed, and nothing opened that could block.
        if !is_part || !entry.file_type().is_ok_and(|kind| kind.is_file()) {
            continue;
        }
        if let Ok(file) = File::options().write(true).open(entry.path())
            && file.try_lock().is_ok()
        {
            let _ = fs::remove_file(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_failed_write_leaves_the_old_file_alone_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        // A folder cannot be replaced by a file.
        let path = folder.path().join("taken");
        fs::create_dir(&path).unwrap();
        fs::write(path.join("inside"), "old").unwrap();
        let message = write_atomically(&path, b"new").unwrap_err().to_string();
        assert!(message.contains("taken"), "{message}");
        assert_eq!(names(folder.path()), ["taken"]);
        assert_eq!(fs::read(path.join("inside")).unwrap(), b"old");
    }

    #[test]
    fn a_second_name_is_given_once_or_twice_and_outlives_the_first() {
        let folder = tempfile::tempdir().unwrap();
        let [best, last] = ["best", "last"].map(|name| folder.path().join(name));
        fs::write(&last, "old").unwrap();
        write_atomically(&best, b"new").unwrap();
        for _ in 0..2 {
            link_atomically(&best, &last).unwrap();
            assert_eq!(names(folder.path()), ["best", "last"]);
        }
        write_atomically(&best, b"newer").unwrap();
        assert_eq!(fs::read(&last).unwrap(), b"new");
        let message = link_atomically(&folder.path().join("gone"), &last).unwrap_err().to_string();
        assert!(message.contains("gone") && names(folder.path()) == ["best", "last"], "{message}");
    }

    #[test]
    fn files_that_users_call_part_are_theirs() {
        let folder = tempfile::tempdir().unwrap();
        let theirs = folder.path().join("x.part");
        fs::write(&theirs, "theirs").unwrap();
        write_atomically(&folder.path().join("x.png"), b"ours").unwrap();
        assert_eq!(fs::read(theirs).unwrap(), b"theirs");
        assert_eq!(names(folder.path()), ["x.part", "x.png"]);
    }

    #[test]
    fn files_of_ended_writers_are_removed_and_those_of_running_ones_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        let alive = PartFile::beside(&path).unwrap();
        let dead = folder.path().join(format!(".1-2-3{ENDING}"));
        fs::write(&dead, "half").unwrap();
        clear(folder.path());
        assert!(!dead.exists() && alive.path.exists());
        alive.publish(&path).unwrap();
        assert_eq!(names(folder.path()), ["x"]);
    }

    #[cfg(unix)]
    #[test]
    fn a_planted_link_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let (target, victim) = (folder.path().join("mask.png"), folder.path().join("victim"));
        fs::write(&victim, "precious").unwrap();
        std::os::unix::fs::symlink(&victim, &target).unwrap();
        let planted = folder.path().join(format!(".1-2-3{ENDING}"));
        std::os::unix::fs::symlink(&victim, &planted).unwrap();
        write_atomically(&target, b"mask").unwrap();
        assert_eq!(fs::read(&victim).unwrap(), b"precious");
        assert!(!target.is_symlink() && planted.is_symlink());
    }

    #[test]
    fn many_writers_of_one_file_leave_one_of_their_contents() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        std::thread::scope(|scope| {
            for writer in 0..8_u8 {
                let path = &path;
                scope.spawn(move || {
                    for _ in 0..20 {
                        write_atomically(path, &[writer; 1000]).unwrap();
                    }
                });
            }
        });
        let content = fs::read(&path).unwrap();
        assert!(content.len() == 1000 && content.iter().all(|byte| *byte == content[0]));
        assert_eq!(names(folder.path()), ["x"]);
    }
}
