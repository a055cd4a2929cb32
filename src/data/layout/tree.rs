//! Small datasets on disk for tests.

use std::{
    fs,
    path::{Path, PathBuf},
};

use image::{GrayImage, ImageFormat, Luma, Rgb, RgbImage};
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
        let sum = name.bytes().fold(7_u32, |sum, byte| sum.wrapping_mul(31) + u32::from(byte));
        let colour = Rgb([sum as u8, (sum >> 8) as u8, (sum >> 16) as u8]);
        let target = self.parent_of(name);
        RgbImage::from_pixel(width, height, colour)
            .save_with_format(target, ImageFormat::Png)
            .unwrap();
        self
    }

    /// Adds a PNG, whatever the extension, of as many colours as a photo has.
    pub(crate) fn noise(self, name: &str, width: u32, height: u32) -> Self {
        let sum = name.bytes().fold(7_u32, |sum, byte| sum.wrapping_mul(31) + u32::from(byte));
        let level = |x: u32, y: u32, by: u32| ((x * 37 + y * 91 + sum) * by % 251) as u8;
        let target = self.parent_of(name);
        RgbImage::from_fn(width, height, |x, y| Rgb([level(x, y, 1), level(y, x, 3), x as u8]))
            .save_with_format(target, ImageFormat::Png)
            .unwrap();
        self
    }

    /// Adds a grey PNG that is 255 in its left half and 0 in its right half.
    pub(crate) fn mask(self, name: &str, width: u32, height: u32) -> Self {
        let target = self.parent_of(name);
        GrayImage::from_fn(width, height, |x, _| Luma([if x < width / 2 { 255 } else { 0 }]))
            .save_with_format(target, ImageFormat::Png)
            .unwrap();
        self
    }

    /// Adds a PNG of one grey level.
    pub(crate) fn grey(self, name: &str, width: u32, height: u32, level: u8) -> Self {
        let target = self.parent_of(name);
        GrayImage::from_pixel(width, height, Luma([level]))
            .save_with_format(target, ImageFormat::Png)
            .unwrap();
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

/// The kinds of a dataset's problems, in the order they were found.
pub(crate) fn kinds(dataset: &Dataset) -> Vec<String> {
    dataset.problems.iter().map(|problem| problem.kind.to_string()).collect()
}
