//! One image, its truth and its map, small enough to be put on a page; and a file of such, until it
//! is known which of them are shown.

use std::{
    io::{Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
};

use image::{
    GrayImage,
    codecs::png::PngEncoder,
    imageops::{self, FilterType},
};

use serde::{Deserialize, Serialize};

use crate::{
    data::mask::Mask,
    error::{Error, Result},
    evaluate::Case,
    report::{
        base64::image_url,
        picture::{encode_jpeg, shrunk, thumbnail},
    },
    run::PartFile,
};

/// Longer side of what is shown, in pixels; smaller images are shown as they are.
const SIDE: u32 = 256;
/// Bytes of an image and of its map, so that a page of many stays small.
const IMAGE_BYTES: usize = 11_000;
const MAP_BYTES: usize = 4_000;
/// Stands for a pixel that the truth ignores; foreground is 255, background 0.
const IGNORED: u8 = 128;

/// Pictures of one size, as addresses that hold them: image and map as JPEG, truth as PNG.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::report) struct Thumbnail {
    pub(in crate::report) image: String,
    /// The score map, in grey: 255 is 1.
    pub(in crate::report) map: String,
    /// The truth, in grey: 255 is foreground, 128 ignored; none if it is not known.
    pub(in crate::report) truth: Option<String>,
}

impl Thumbnail {
    /// Makes an image small.
    pub(in crate::report) fn of(case: &Case) -> Self {
        let (width, height) = case.image.dimensions();
        let size = shrunk((width, height), SIDE);
        let levels = case.map.iter().map(|score| (score * 255.0).round() as u8).collect();
        let map = GrayImage::from_raw(width, height, levels).expect("a score for each pixel");
        let map = imageops::resize(&map, size.0, size.1, FilterType::Triangle);
        Self {
            image: image_url("jpeg", &encode_jpeg(&thumbnail(&case.image, SIDE), IMAGE_BYTES)),
            map: image_url("jpeg", &encode_jpeg(&map, MAP_BYTES)),
            truth: case.truth.as_ref().map(|truth| image_url("png", &png(truth, size))),
        }
    }
}

/// Each pixel has the value at its centre, so that none is made up.
fn shrunk_truth(truth: &Mask, (width, height): (u32, u32)) -> GrayImage {
    GrayImage::from_fn(width, height, |x, y| {
        let source = |at: u32, of: u32, all: u32| {
            ((2 * u64::from(at) + 1) * u64::from(all) / (2 * u64::from(of))) as usize
        };
        let (x, y) = (source(x, width, truth.width), source(y, height, truth.height));
        let at = y * truth.width as usize + x;
        image::Luma([match truth.foreground[at] {
            true => u8::MAX,
            false if truth.is_ignored(at) => IGNORED,
            false => 0,
        }])
    })
}

fn png(truth: &Mask, size: (u32, u32)) -> Vec<u8> {
    let mut bytes = Vec::new();
    let written = shrunk_truth(truth, size).write_with_encoder(PngEncoder::new(&mut bytes));
    written.expect("an image in memory can be written to memory");
    bytes
}

/// A file of thumbnails, in the order of the split; it is removed with this value.
#[derive(Debug)]
pub(in crate::report) struct ThumbnailFile {
    part: PartFile,
    /// For messages.
    folder: PathBuf,
    /// Where each thumbnail starts, and where the next one will.
    starts: Vec<u64>,
}

impl ThumbnailFile {
    /// Starts a file in a folder, under a name of its own.
    pub(in crate::report) fn create(folder: &Path) -> Result<Self> {
        let part = PartFile::beside(&folder.join("gallery"));
        let part = part.map_err(Error::file("write into", folder))?;
        Ok(Self { part, folder: folder.to_owned(), starts: vec![0] })
    }

    pub(in crate::report) fn push(&mut self, thumbnail: &Thumbnail) -> Result<()> {
        let bytes = serde_json::to_vec(thumbnail).expect("plain data");
        self.part.file.write_all(&bytes).map_err(Error::file("write into", &self.folder))?;
        self.starts.push(self.starts[self.starts.len() - 1] + bytes.len() as u64);
        Ok(())
    }

    pub(in crate::report) fn get(&mut self, index: usize) -> Result<Thumbnail> {
        let (start, end) = (self.starts[index], self.starts[index + 1]);
        let mut bytes = vec![0; (end - start) as usize];
        let mut read = || {
            self.part.file.seek(SeekFrom::Start(start))?;
            self.part.file.read_exact(&mut bytes)?;
            Ok(serde_json::from_slice(&bytes)?)
        };
        read().map_err(Error::file("read from", &self.folder))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thumbnails_come_back_in_any_order_and_the_file_goes() {
        let folder = tempfile::tempdir().unwrap();
        let thumbnail = |n: u8| Thumbnail {
            image: format!("image {n}"),
            map: "x".repeat(usize::from(n)),
            truth: n.is_multiple_of(2).then(|| format!("truth {n}")),
        };
        let mut file = ThumbnailFile::create(folder.path()).unwrap();
        (0..5).for_each(|n| file.push(&thumbnail(n)).unwrap());
        for n in [3, 0, 4, 1] {
            assert_eq!(file.get(usize::from(n)).unwrap(), thumbnail(n));
        }
        drop(file);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn truth_keeps_foreground_background_and_ignored_apart() {
        let truth = Mask {
            width: 4,
            height: 2,
            foreground: vec![true, true, false, false, true, true, false, false],
            ignored: Some(vec![false, false, false, true, false, false, false, true]),
        };
        assert_eq!(shrunk_truth(&truth, (4, 2)).as_raw()[..4], [255, 255, 0, 128]);
        assert_eq!(shrunk_truth(&truth, (2, 1)).as_raw(), &[255, 128]);
    }
}
