//! Opens regular files only, and no pipe or device, which might never end; lists folders.

use std::{
    fs::{self, File},
    io::{self, Read as _},
    path::{Path, PathBuf},
};

/// Longest text file that is read: settings and records have kilobytes.
const LONGEST_TEXT: u64 = 64 << 20;

/// Opens a regular file to read it. Pipes are refused, as opening one would wait for a writer.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    let kind = fs::metadata(path)?;
    if kind.is_dir() {
        return Err(io::Error::new(io::ErrorKind::IsADirectory, "it is a folder"));
    }
    if !kind.is_file() {
        let problem = "it is a pipe or a device, and not a regular file";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, problem));
    }
    File::open(path)
}

/// The paths in a folder, sorted.
pub(crate) fn entries(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder)?.map(|entry| Ok(entry?.path()));
    let mut paths = entries.collect::<io::Result<Vec<PathBuf>>>()?;
    paths.sort();
    Ok(paths)
}

/// Reads a regular file of at most `limit` bytes.
pub(crate) fn read_bounded(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    // One byte more than allowed tells a full file from one that is too long, even
    // where the file system does not know the length.
    open(path)?.take(limit + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(io::Error::other(format!("larger than {} MiB", limit >> 20)));
    }
    Ok(bytes)
}

/// Reads a regular file of text.
pub(crate) fn read_text(path: &Path) -> io::Result<String> {
    let bytes = read_bounded(path, LONGEST_TEXT)?;
    String::from_utf8(bytes).map_err(|_| io::Error::other("not UTF-8 text"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_read_and_what_is_too_long_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        fs::write(&path, "hello").unwrap();
        assert_eq!(read_text(&path).unwrap(), "hello");
        assert!(read_bounded(&path, 5).is_ok() && read_bounded(&path, 4).is_err());
        assert!(open(folder.path()).is_err());
    }

    #[cfg(unix)]
    #[test]
    fn devices_are_refused_unopened() {
        assert!(open(Path::new("/dev/zero")).unwrap_err().to_string().contains("device"));
    }
}
