//! Files that appear whole or not at all.

use std::{fs, io::Write as _, path::Path};

use crate::error::{Error, Result};

/// Writes a file so that a reader finds the old content or the new, whatever happens in between.
pub fn write_atomically(path: &Path, content: &[u8]) -> Result<()> {
    let temporary = path.with_extension("part");
    let save = || {
        let mut file = fs::File::create(&temporary)?;
        file.write_all(content)?;
        file.sync_all()?;
        fs::rename(&temporary, path)
    };
    save().map_err(|source| {
        // What is left of a failed attempt would only confuse; the old file is untouched.
        let _ = fs::remove_file(&temporary);
        Error::File { action: "write", path: path.to_owned(), source }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_write_leaves_the_old_file_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("weights.safetensors");
        fs::write(&path, b"old").unwrap();
        // A folder where the temporary file should go stands for a full disk.
        fs::create_dir(path.with_extension("part")).unwrap();
        let message = write_atomically(&path, b"new").unwrap_err().to_string();
        assert!(message.contains("weights.safetensors"), "{message}");
        assert_eq!(fs::read(&path).unwrap(), b"old");
    }
}
