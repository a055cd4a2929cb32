//! Preprocessing of an image for evaluation, and how scores are brought back to its own pixels.

use std::borrow::Cow;

use image::RgbImage;
use rayon::prelude::*;

use super::{Normalizer, Planes, Size, reflected_run, rescale, resize_align_corners, working_size};
use crate::config::PreprocessConfig;

/// How an image is resized and padded for evaluation, and how to undo that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EvalGeometry {
    /// The size of the image file; scores are wanted for these pixels.
    pub original: Size,
    /// The size after resizing, which brings the short side within its limits.
    pub upscaled: Size,
    /// The size of the network's input.
    pub padded: Size,
    /// Pixels of padding to the left of the enlarged image.
    pub left: u32,
    /// Pixels of padding above it.
    pub top: u32,
}

impl EvalGeometry {
    /// Decides what happens to an image of this size.
    pub fn new(original: Size, preprocess: &PreprocessConfig) -> Self {
        let upscaled = working_size(original, preprocess);
        let multiple = preprocess.eval_multiple;
        let padded = Size {
            width: upscaled.width.next_multiple_of(multiple),
            height: upscaled.height.next_multiple_of(multiple),
        };
        // An odd pixel of padding goes to the right and to the bottom.
        let left = (padded.width - upscaled.width) / 2;
        let top = (padded.height - upscaled.height) / 2;
        Self { original, upscaled, padded, left, top }
    }

    /// The network's input `[3, H, W]` at the [`padded`](Self::padded) size.
    pub fn input(&self, image: &RgbImage, normalizer: &Normalizer) -> Vec<f32> {
        self.view(image, normalizer).whole()
    }

    /// The network's input, to be read piece by piece.
    pub fn view<'a>(&self, image: &'a RgbImage, normalizer: &'a Normalizer) -> InputView<'a> {
        assert_eq!(Size::of(image), self.original, "the geometry of this image");
        let image = rescale(image, self.upscaled).map_or(Cow::Borrowed(image), Cow::Owned);
        let line = |offset: u32, padded: u32, size: u32| {
            reflected_run(-i64::from(offset), padded as usize, size as usize)
        };
        let rows = line(self.top, self.padded.height, self.upscaled.height);
        let columns = line(self.left, self.padded.width, self.upscaled.width);
        InputView { image, rows, columns, normalizer }
    }

    /// Brings one score per padded pixel back to one per original pixel.
    ///
    /// The padding is cut off where it was really added, then the rest is
    /// resized with [`resize_align_corners`]; without enlarging it stays as it is.
    pub fn restore(&self, scores: &[f32]) -> Vec<f32> {
        assert_eq!(scores.len(), self.padded.area(), "one score per pixel of the input");
        let width = self.padded.width as usize;
        self.restore_rows(|row, left, line| {
            line.copy_from_slice(&scores[row * width + left..][..line.len()]);
        })
    }

    /// The same for scores that are computed as they are asked for, from any thread.
    ///
    /// `fill(row, left, line)` writes the scores of a row of the padded image from column
    /// `left` on.
    pub fn restore_rows(&self, fill: impl Fn(usize, usize, &mut [f32]) + Sync) -> Vec<f32> {
        let mut inside = vec![0.0; self.upscaled.area()];
        inside
            .par_chunks_exact_mut(self.upscaled.width as usize)
            .enumerate()
            .for_each(|(row, line)| fill(self.top as usize + row, self.left as usize, line));
        if self.upscaled == self.original {
            return inside;
        }
        resize_align_corners(&inside, self.upscaled, self.original)
    }
}

/// A rectangle of pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the type's line says what the fields are")]
pub struct Window {
    pub left: usize,
    pub top: usize,
    pub width: usize,
    pub height: usize,
}

/// The network's input for an image, read window by window, so that the whole input, at twelve
/// bytes a pixel, need not be in memory.
#[derive(Debug)]
pub struct InputView<'a> {
    image: Cow<'a, RgbImage>,
    /// The row of the image that each row of the input is read from.
    rows: Vec<usize>,
    /// Likewise.
    columns: Vec<usize>,
    normalizer: &'a Normalizer,
}

impl InputView<'_> {
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

#[cfg(test)]
mod tests {
    use image::Rgb;
    use proptest::prelude::*;

    use super::*;
    use crate::config::Normalization;

    fn geometry(width: u32, height: u32, upscale_short_side: u32) -> EvalGeometry {
        let preprocess =
            PreprocessConfig { upscale_short_side, eval_multiple: 32, ..Default::default() };
        EvalGeometry::new(Size { width, height }, &preprocess)
    }

    #[test]
    fn padding_is_split_with_the_odd_pixel_at_the_end() {
        let EvalGeometry { padded, left, top, .. } = geometry(775, 522, 0);
        assert_eq!(padded, Size { width: 800, height: 544 });
        // 775 + 12 + 13 = 800, 522 + 11 + 11 = 544.
        assert_eq!((left, top), (12, 11));
    }

    #[test]
    fn a_multiple_is_not_padded_further() {
        let EvalGeometry { padded, left, top, .. } = geometry(64, 32, 0);
        assert_eq!((padded, left, top), (Size { width: 64, height: 32 }, 0, 0));
    }

    #[test]
    fn padding_mirrors_the_image_without_its_edge() {
        let image = RgbImage::from_fn(30, 32, |x, _| Rgb([x as u8, 0, 0]));
        let input = geometry(30, 32, 0).input(&image, &Normalizer::new(Normalization::Half));
        let first_row: Vec<u8> =
            input[..32].iter().map(|x| ((x * 0.5 + 0.5) * 255.0).round() as u8).collect();
        assert_eq!((first_row[0], first_row[1], first_row[2], first_row[31]), (1, 0, 1, 28));
    }

    #[test]
    fn scores_of_an_enlarged_image_come_back_at_its_own_size() {
        let geometry = geometry(20, 40, 100);
        assert_eq!(geometry.upscaled, Size { width: 100, height: 200 });
        let restored = geometry.restore(&vec![0.25; geometry.padded.area()]);
        assert_eq!(restored, vec![0.25; 800]);
    }

    #[test]
    fn a_window_shows_a_piece_of_the_input() {
        let image = RgbImage::from_fn(37, 21, |x, y| Rgb([x as u8, y as u8, (x * y) as u8]));
        let (geometry, normalizer) = (geometry(37, 21, 30), Normalizer::new(Normalization::Half));
        let (whole, width) = (geometry.input(&image, &normalizer), geometry.padded.width as usize);
        let window = Window { left: 5, top: 17, width: 20, height: 3 };
        let piece = geometry.view(&image, &normalizer).read(window);
        for (row, line) in piece.chunks_exact(20).enumerate() {
            let (channel, row) = (row / 3, row % 3 + 17);
            let start = channel * geometry.padded.area() + row * width + 5;
            assert_eq!(line, &whole[start..][..20], "channel {channel}, row {row}");
        }
    }

    proptest! {
        #[test]
        fn unpadding_undoes_padding_exactly(width in 1_u32..90, height in 1_u32..90, seed: u8) {
            let pixel = |x: u32, y: u32| (x * 7 + y * 13) as u8 ^ seed;
            let image = RgbImage::from_fn(width, height, |x, y| Rgb([pixel(x, y), 0, 0]));
            let geometry = geometry(width, height, 0);
            let input = geometry.input(&image, &Normalizer::new(Normalization::Half));
            prop_assert_eq!(input.len(), 3 * geometry.padded.area());

            let restored = geometry.restore(&input[..geometry.padded.area()]);
            let mut expected = Vec::new();
            Normalizer::new(Normalization::Half).append(&Planes::from_rgb(&image), &mut expected);
            prop_assert_eq!(&restored[..], &expected[..geometry.original.area()]);
        }
    }
}
