//! Folders that appear whole or not at all.
//!
//! Files are written into a hidden folder beside the target, which takes the
//! target's name once everything is there. Whatever interrupts the work, no
//! half-written folder is ever found under the name the user gave.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use crate::error::{Error, Result};

/// Makes the folder `target` from what `fill` writes into the folder that it is given.
///
/// Leftovers of a killed process are removed, and a folder of that name is replaced.
pub(super) fn make_folder(target: &Path, fill: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    let (work, old) = (sibling(target, "partial")?, sibling(target, "old")?);
    remove_all(&work)?;
    fs::create_dir_all(&work).map_err(Error::file("create", &work))?;
    let publish = || {
        remove_all(&old)?;
        if target.exists() {
            fs::rename(target, &old).map_err(Error::file("replace", target))?;
        }
        fs::rename(&work, target).map_err(Error::file("create", target))?;
        remove_all(&old)
    };
    let made = fill(&work).and_then(|()| publish());
    // After success there is nothing left; after a failure, its error is the one to tell.
    let _ = fs::remove_dir_all(&work);
    made
}

/// Whether a folder may be made at `path`: nothing is there, or an empty folder.
pub(super) fn is_vacant(path: &Path) -> Result<bool> {
    match fs::read_dir(path) {
        Ok(mut entries) => Ok(entries.next().is_none()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
        Err(error) => Err(Error::file("look into", path)(error)),
    }
}

/// `.name.suffix` beside `name`: on the same file system, where renaming is one step.
fn sibling(target: &Path, suffix: &str) -> Result<PathBuf> {
    let name = target.file_name().ok_or_else(|| {
        Error::data(target, "cannot make a folder of this name", "name a new folder")
    })?;
    let mut hidden = std::ffi::OsString::from(".");
    hidden.push(name);
    hidden.push(".");
    hidden.push(suffix);
    Ok(target.with_file_name(hidden))
}

fn remove_all(path: &Path) -> Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(Error::file("remove", path)(error))
        }
        _ => Ok(()),
    }
}
