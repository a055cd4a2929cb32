//! The network's input of an image, read piece by piece.

use std::borrow::Cow;

use image::RgbImage;

use super::{Normalizer, Planes, Size};

/// A rectangle of pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the type's line says what the fields are")]
pub struct Window {
    pub left: usize,
    pub top: usize,
    pub width: usize,
    pub height: usize,
}

/// What the network is shown of an image, through windows: the whole of it, at twelve bytes
/// a pixel, need never exist.
#[derive(Debug)]
pub struct InputView<'a> {
    image: Cow<'a, RgbImage>,
    /// The row of the image that each row of the input is read from.
    rows: Vec<usize>,
    /// Likewise.
    columns: Vec<usize>,
    normalizer: &'a Normalizer,
}

impl<'a> InputView<'a> {
    pub(super) fn new(
        image: Cow<'a, RgbImage>,
        rows: Vec<usize>,
        columns: Vec<usize>,
        normalizer: &'a Normalizer,
    ) -> Self {
        Self { image, rows, columns, normalizer }
    }

    /// The size of the network's input.
    pub fn size(&self) -> Size {
        Size { width: self.columns.len() as u32, height: self.rows.len() as u32 }
    }

    /// The whole input `[3, H, W]`.
    pub fn whole(&self) -> Vec<f32> {
        let (width, height) = (self.columns.len(), self.rows.len());
        self.read(Window { left: 0, top: 0, width, height })
    }

    /// The input within a window, `[3, height, width]`.
    pub fn read(&self, window: Window) -> Vec<f32> {
        let Window { left, top, width, height } = window;
        let (rows, columns) = (&self.rows[top..][..height], &self.columns[left..][..width]);
        let mut input = Vec::with_capacity(3 * width * height);
        self.normalizer.append(&Planes::gather(&self.image, rows, columns), &mut input);
        input
    }
}
