//! Small datasets on disk for tests.

use std::{
    fs,
    path::{Path, PathBuf},
};

use image::{DynamicImage, GrayImage, ImageFormat, Luma, Rgb, RgbImage};
use tempfile::TempDir;

use crate::{
    data::{Dataset, OpenOptions},
    error::Result,
};

/// A temporary folder that is filled file by file.
pub(crate) struct Tree {
    folder: TempDir,
}

impl Tree {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    /// The folder itself for `""`.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name).components().collect()
    }

    /// Adds a PNG, whatever the extension, whose colour depends on its name.
    pub(crate) fn png(self, name: &str, width: u32, height: u32) -> Self {
        let [red, green, blue, _] = number_of(name).to_le_bytes();
        self.save(name, RgbImage::from_pixel(width, height, Rgb([red, green, blue])))
    }

    /// Adds a PNG, whatever the extension, of as many colours as a photo has.
    pub(crate) fn noise(self, name: &str, width: u32, height: u32) -> Self {
        let sum = number_of(name);
        let level = |x: u32, y: u32, by: u32| ((x * 37 + y * 91 + sum) * by % 251) as u8;
        let pixel = |x: u32, y: u32| Rgb([level(x, y, 1), level(y, x, 3), x as u8]);
        self.save(name, RgbImage::from_fn(width, height, pixel))
    }

    /// Adds a grey PNG that is 255 in its left half and 0 in its right half.
    pub(crate) fn mask(self, name: &str, width: u32, height: u32) -> Self {
        let pixel = |x: u32, _| Luma([if x < width / 2 { 255_u8 } else { 0 }]);
        self.save(name, GrayImage::from_fn(width, height, pixel))
    }

    /// Adds a PNG of one grey level.
    pub(crate) fn grey(self, name: &str, width: u32, height: u32, level: u8) -> Self {
        self.save(name, GrayImage::from_pixel(width, height, Luma([level])))
    }

    fn save(self, name: &str, picture: impl Into<DynamicImage>) -> Self {
        let target = self.parent_of(name);
        picture.into().save_with_format(target, ImageFormat::Png).unwrap();
        self
    }

    pub(crate) fn text(self, name: &str, content: &str) -> Self {
        self.bytes(name, content.as_bytes())
    }

    pub(crate) fn bytes(self, name: &str, content: &[u8]) -> Self {
        fs::write(self.parent_of(name), content).unwrap();
        self
    }

    pub(crate) fn folder(self, name: &str) -> Self {
        fs::create_dir_all(self.path(name)).unwrap();
        self
    }

    pub(crate) fn open(&self) -> Result<Dataset> {
        self.open_at("", &OpenOptions::default())
    }

    pub(crate) fn open_at(&self, name: &str, options: &OpenOptions) -> Result<Dataset> {
        Dataset::open(&self.path(name), options)
    }

    fn parent_of(&self, name: &str) -> PathBuf {
        let target = self.path(name);
        fs::create_dir_all(target.parent().unwrap_or(Path::new("/"))).unwrap();
        target
    }
}

fn number_of(name: &str) -> u32 {
    name.bytes().fold(7_u32, |sum, byte| sum.wrapping_mul(31) + u32::from(byte))
}

/// The kinds of a dataset's problems, in the order they were found.
pub(crate) fn kinds(dataset: &Dataset) -> Vec<String> {
    dataset.problems.iter().map(|problem| problem.kind.to_string()).collect()
}
