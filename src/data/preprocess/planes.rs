//! Channel-separated pixels, and their way to normalized floats.

use image::RgbImage;

use super::Size;
use crate::config::Normalization;

/// The pixel of a line of `size` that stands at `position` once the line is
/// mirrored at both ends for ever, without repeating the edge pixel.
///
/// ```text
/// position  … -3 -2 -1  0  1  2  3  4  5 …      size 4
/// pixel     …  3  2  1  0  1  2  3  2  1 …
/// ```
///
/// Defined for any padding, even one wider than the line.
fn reflect(position: i64, size: usize) -> usize {
    assert!(size > 0, "an image has at least one pixel");
    let last = size as i64 - 1;
    if last == 0 {
        return 0;
    }
    let folded = position.rem_euclid(2 * last);
    folded.min(2 * last - folded) as usize
}

/// Where `length` pixels from `start` on are read from; `start` may lie before the line.
pub(crate) fn reflected_run(start: i64, length: usize, size: usize) -> Vec<usize> {
    (start..).take(length).map(|position| reflect(position, size)).collect()
}

/// An 8-bit RGB image stored channel by channel, as the network wants it: `[3, H, W]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Planes {
    size: Size,
    data: Vec<u8>,
}

impl Planes {
    /// Separates the channels of a whole image.
    pub fn from_rgb(image: &RgbImage) -> Self {
        let Size { width, height } = Size::of(image);
        let rows: Vec<usize> = (0..height as usize).collect();
        let columns: Vec<usize> = (0..width as usize).collect();
        Self::gather(image, &rows, &columns)
    }

    /// Reads pixel `(y, x)` of the result from `(rows[y], columns[x])` of `image`.
    ///
    /// Padding, cropping and flipping are all of this form, so together they cost one copy.
    pub(crate) fn gather(image: &RgbImage, rows: &[usize], columns: &[usize]) -> Self {
        let mut planes = Self::black(columns.len(), rows.len());
        let stride = image.width() as usize * 3;
        let width = columns.len();
        let [red, green, blue] = planes.channels_mut();
        for (y, &row) in rows.iter().enumerate() {
            let (pixels, _) = image.as_raw()[row * stride..][..stride].as_chunks::<3>();
            let line = y * width..(y + 1) * width;
            let lines = red[line.clone()].iter_mut().zip(&mut green[line.clone()]);
            for (((r, g), b), &column) in lines.zip(&mut blue[line]).zip(columns) {
                [*r, *g, *b] = pixels[column];
            }
        }
        planes
    }

    pub(crate) fn transposed(&self) -> Self {
        let (width, height) = (self.size.width as usize, self.size.height as usize);
        let mut turned = Self::black(height, width);
        for (from, to) in self.channels().into_iter().zip(turned.channels_mut()) {
            for (x, line) in to.chunks_exact_mut(height).enumerate() {
                for (y, pixel) in line.iter_mut().enumerate() {
                    *pixel = from[y * width + x];
                }
            }
        }
        turned
    }

    pub(crate) fn black(width: usize, height: usize) -> Self {
        let size = Size { width: width as u32, height: height as u32 };
        Self { size, data: vec![0; 3 * width * height] }
    }

    /// Width and height.
    pub fn size(&self) -> Size {
        self.size
    }

    /// Red, green and blue, each row by row.
    pub fn channels(&self) -> [&[u8]; 3] {
        let (red, rest) = self.data.split_at(self.size.area());
        let (green, blue) = rest.split_at(self.size.area());
        [red, green, blue]
    }

    pub(crate) fn channels_mut(&mut self) -> [&mut [u8]; 3] {
        let (red, rest) = self.data.split_at_mut(self.size.area());
        let (green, blue) = rest.split_at_mut(self.size.area());
        [red, green, blue]
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.data
    }
}

/// Turns bytes into the floats the network was trained on: `(x / 255 − mean) / std`.
#[derive(Debug, Clone)]
pub struct Normalizer {
    /// The result for each byte of each channel: exact, and cheaper than two divisions.
    tables: [[f32; 256]; 3],
}

impl Normalizer {
    /// Tabulates a normalization.
    pub fn new(normalization: Normalization) -> Self {
        let (mean, std) = normalization.mean_std();
        let value =
            |channel: usize, byte: usize| (byte as f32 / 255.0 - mean[channel]) / std[channel];
        let tables = std::array::from_fn(|c| std::array::from_fn(|byte| value(c, byte)));
        Self { tables }
    }

    /// Appends the normalized `[3, H, W]` values of `planes` to `values`.
    pub fn append(&self, planes: &Planes, values: &mut Vec<f32>) {
        for (channel, table) in planes.channels().into_iter().zip(&self.tables) {
            values.extend(channel.iter().map(|&byte| table[usize::from(byte)]));
        }
    }
}

#[cfg(test)]
mod tests {
    use image::Rgb;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn channels_are_separated() {
        let image = RgbImage::from_fn(3, 2, |x, y| Rgb([x as u8, y as u8, 9]));
        let planes = Planes::from_rgb(&image);
        assert_eq!(planes.channels(), [[0, 1, 2, 0, 1, 2], [0, 0, 0, 1, 1, 1], [9; 6]]);
    }

    #[test]
    fn transposing_swaps_rows_and_columns() {
        let image = RgbImage::from_fn(3, 2, |x, y| Rgb([x as u8, y as u8, 0]));
        let turned = Planes::from_rgb(&image).transposed();
        assert_eq!(turned.size(), Size { width: 2, height: 3 });
        assert_eq!(turned.channels()[..2], [[0, 0, 1, 1, 2, 2], [0, 1, 0, 1, 0, 1]]);
    }

    #[test]
    fn bytes_become_normalized_floats() {
        let planes = Planes::from_rgb(&RgbImage::from_pixel(1, 1, Rgb([0, 255, 51])));
        let mut values = Vec::new();
        Normalizer::new(Normalization::Half).append(&planes, &mut values);
        assert_eq!(values, [-1.0, 1.0, (0.2 - 0.5) / 0.5]);
        Normalizer::new(Normalization::Imagenet).append(&planes, &mut values);
        assert_eq!(values[3..], [-0.485 / 0.229, (1.0 - 0.456) / 0.224, (0.2 - 0.406) / 0.225]);
    }

    #[test]
    fn the_edge_pixel_is_not_repeated() {
        assert_eq!(reflected_run(-3, 10, 4), [3, 2, 1, 0, 1, 2, 3, 2, 1, 0]);
    }

    #[test]
    fn a_line_narrower_than_its_padding_is_reflected_again_and_again() {
        assert_eq!(reflected_run(-3, 8, 2), [1, 0, 1, 0, 1, 0, 1, 0]);
        assert_eq!(reflected_run(-15, 32, 1), [0; 32]);
    }

    proptest! {
        #[test]
        fn neighbours_stay_neighbours(position in -10_000_i64..10_000, size in 2_usize..700) {
            let step = reflect(position, size).abs_diff(reflect(position + 1, size));
            prop_assert_eq!(step, 1);
        }

        #[test]
        fn the_image_itself_is_left_alone(size in 1_usize..700) {
            prop_assert_eq!(reflected_run(0, size, size), (0..size).collect::<Vec<_>>());
        }
    }
}
