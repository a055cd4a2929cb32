//! Exhibits on disk until it is known which of them are shown.

use std::{
    io::{Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
};

use super::Exhibit;
use crate::{
    error::{Error, Result},
    run::PartFile,
};

/// A file of exhibits, in the order of the split; it is removed with this value.
#[derive(Debug)]
pub struct Spool {
    part: PartFile,
    /// For messages.
    folder: PathBuf,
    /// Where each exhibit starts and how long its parts are.
    places: Vec<Place>,
    end: u64,
}

#[derive(Debug, Clone, Copy)]
struct Place {
    start: u64,
    image: usize,
    map: usize,
    truth: Option<usize>,
}

impl Spool {
    /// Starts a file in a folder, under a name of its own.
    pub fn create(folder: &Path) -> Result<Self> {
        let part = PartFile::beside(&folder.join("gallery"));
        let part = part.map_err(Error::file("write into", folder))?;
        Ok(Self { part, folder: folder.to_owned(), places: Vec::new(), end: 0 })
    }

    /// Adds the next exhibit.
    pub fn push(&mut self, exhibit: &Exhibit) -> Result<()> {
        let Exhibit { image, map, truth } = exhibit;
        self.places.push(Place {
            start: self.end,
            image: image.len(),
            map: map.len(),
            truth: truth.as_ref().map(Vec::len),
        });
        for part in [Some(image), Some(map), truth.as_ref()].into_iter().flatten() {
            self.part.file.write_all(part).map_err(Error::file("write into", &self.folder))?;
            self.end += part.len() as u64;
        }
        Ok(())
    }

    /// Reads an exhibit back.
    pub fn get(&mut self, index: usize) -> Result<Exhibit> {
        let Place { start, image, map, truth } = self.places[index];
        let mut parts = [image, map, truth.unwrap_or(0)].map(|length| vec![0; length]);
        let mut read = || {
            self.part.file.seek(SeekFrom::Start(start))?;
            parts.iter_mut().try_for_each(|part| self.part.file.read_exact(part))
        };
        read().map_err(Error::file("read from", &self.folder))?;
        let [image, map, mask] = parts;
        Ok(Exhibit { image, map, truth: truth.map(|_| mask) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exhibits_come_back_in_any_order_and_the_file_goes() {
        let folder = tempfile::tempdir().unwrap();
        let exhibit = |n: u8| Exhibit {
            image: vec![n; 3],
            map: vec![n; usize::from(n)],
            truth: n.is_multiple_of(2).then(|| vec![n; 2]),
        };
        let mut spool = Spool::create(folder.path()).unwrap();
        (0..5).for_each(|n| spool.push(&exhibit(n)).unwrap());
        for n in [3, 0, 4, 1] {
            assert_eq!(spool.get(usize::from(n)).unwrap(), exhibit(n));
        }
        drop(spool);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
