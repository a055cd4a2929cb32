//! Where the pixels of an evaluated image went, and the way back.

use std::borrow::Cow;

use image::RgbImage;
use rayon::prelude::*;

use super::{
    InputView, Normalizer, Size, reflected_run, rescale, resize_align_corners, working_size,
};
use crate::config::PreprocessConfig;

/// How one image was enlarged and padded for evaluation, and how to undo it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EvalGeometry {
    /// The size of the image file; scores are wanted for these pixels.
    pub original: Size,
    /// The size after its short side was brought to the required length, or within its limits.
    pub upscaled: Size,
    /// The size of the network's input.
    pub padded: Size,
    /// Where the enlarged image starts in the padded one.
    pub offsets: Offsets,
}

/// Pixels of padding before an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the type's line says what the fields are")]
pub struct Offsets {
    pub left: u32,
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
        let offsets = Offsets {
            left: (padded.width - upscaled.width) / 2,
            top: (padded.height - upscaled.height) / 2,
        };
        Self { original, upscaled, padded, offsets }
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
        let rows = line(self.offsets.top, self.padded.height, self.upscaled.height);
        let columns = line(self.offsets.left, self.padded.width, self.upscaled.width);
        InputView::new(image, rows, columns, normalizer)
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
        let Offsets { left, top } = self.offsets;
        let mut inside = vec![0.0; self.upscaled.area()];
        inside
            .par_chunks_exact_mut(self.upscaled.width as usize)
            .enumerate()
            .for_each(|(row, line)| fill(top as usize + row, left as usize, line));
        if self.upscaled == self.original {
            return inside;
        }
        resize_align_corners(&inside, self.upscaled, self.original)
    }
}

#[cfg(test)]
mod tests {
    use image::Rgb;
    use proptest::prelude::*;

    use super::*;
    use crate::{
        config::Normalization,
        data::preprocess::{Planes, Window},
    };

    fn geometry(width: u32, height: u32, upscale_short_side: u32) -> EvalGeometry {
        let preprocess =
            PreprocessConfig { upscale_short_side, eval_multiple: 32, ..Default::default() };
        EvalGeometry::new(Size { width, height }, &preprocess)
    }

    #[test]
    fn padding_is_split_with_the_odd_pixel_at_the_end() {
        let EvalGeometry { padded, offsets, .. } = geometry(775, 522, 0);
        assert_eq!(padded, Size { width: 800, height: 544 });
        // 775 + 12 + 13 = 800, 522 + 11 + 11 = 544.
        assert_eq!(offsets, Offsets { left: 12, top: 11 });
    }

    #[test]
    fn a_multiple_is_not_padded_further() {
        let EvalGeometry { padded, offsets, .. } = geometry(64, 32, 0);
        assert_eq!(
            (padded, offsets),
            (Size { width: 64, height: 32 }, Offsets { left: 0, top: 0 })
        );
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
