//! Thumbnails on disk until it is known which of them are shown.

use std::{
    io::{Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
};

use super::Thumbnail;
use crate::{
    error::{Error, Result},
    run::PartFile,
};

/// A file of thumbnails, in the order of the split; it is removed with this value.
#[derive(Debug)]
pub struct ThumbnailFile {
    part: PartFile,
    /// For messages.
    folder: PathBuf,
    /// Where each thumbnail starts, and how long its image, map and truth are; no file is empty,
    /// so that a truth of no length is none.
    places: Vec<(u64, [usize; 3])>,
    end: u64,
}

impl ThumbnailFile {
    /// Starts a file in a folder, under a name of its own.
    pub fn create(folder: &Path) -> Result<Self> {
        let part = PartFile::beside(&folder.join("gallery"));
        let part = part.map_err(Error::file("write into", folder))?;
        Ok(Self { part, folder: folder.to_owned(), places: Vec::new(), end: 0 })
    }

    /// Adds the next thumbnail.
    pub fn push(&mut self, thumbnail: &Thumbnail) -> Result<()> {
        let Thumbnail { image, map, truth } = thumbnail;
        let parts = [image.as_slice(), map, truth.as_deref().unwrap_or_default()];
        self.places.push((self.end, parts.map(<[u8]>::len)));
        for part in parts {
            self.part.file.write_all(part).map_err(Error::file("write into", &self.folder))?;
            self.end += part.len() as u64;
        }
        Ok(())
    }

    /// Reads a thumbnail back.
    pub fn get(&mut self, index: usize) -> Result<Thumbnail> {
        let (start, lengths) = self.places[index];
        let mut parts = lengths.map(|length| vec![0; length]);
        let mut read = || {
            self.part.file.seek(SeekFrom::Start(start))?;
            parts.iter_mut().try_for_each(|part| self.part.file.read_exact(part))
        };
        read().map_err(Error::file("read from", &self.folder))?;
        let [image, map, truth] = parts;
        Ok(Thumbnail { image, map, truth: Some(truth).filter(|file| !file.is_empty()) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thumbnails_come_back_in_any_order_and_the_file_goes() {
        let folder = tempfile::tempdir().unwrap();
        let thumbnail = |n: u8| Thumbnail {
            image: vec![n; 3],
            map: vec![n; usize::from(n)],
            truth: n.is_multiple_of(2).then(|| vec![n; 2]),
        };
        let mut file = ThumbnailFile::create(folder.path()).unwrap();
        (0..5).for_each(|n| file.push(&thumbnail(n)).unwrap());
        for n in [3, 0, 4, 1] {
            assert_eq!(file.get(usize::from(n)).unwrap(), thumbnail(n));
        }
        drop(file);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
