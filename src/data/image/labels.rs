//! Label maps: image files whose numbers are labels, not brightness.

use std::{collections::BTreeMap, io::Seek, path::Path};

use image::{
    DynamicImage, GrayImage, ImageDecoder, ImageError, ImageFormat, Luma,
    codecs::bmp::BmpDecoder,
    error::{DecodingError, ImageFormatHint},
    metadata::Orientation,
};
use png::{BitDepth, ColorType, Transformations};

use super::{
    budget,
    source::{SPARE_BYTES, Source, check_size, pixels, undecodable},
    webp,
};
use crate::error::{Error, Result};

/// Reads the numbers of a label map as they are stored, upright: palette indices, and grey of 1, 2
/// or 4 bits unscaled; alpha is ignored.
///
/// The flag says whether the compression is lossless, unlike that of JPEG.
pub(crate) fn read_labels(path: &Path, max_megapixels: u32) -> Result<(DynamicImage, bool)> {
    budget::within(budget::of(max_megapixels), path, move |path| {
        let mut source = Source::open(path, max_megapixels)?;
        let exact = source.keeps_numbers()?;
        let image = match source.format {
            ImageFormat::Png => source.png_labels()?,
            ImageFormat::Bmp => source.bmp_labels()?,
            _ => source.decode()?,
        };
        Ok((image, exact))
    })
}

impl Source<'_> {
    fn keeps_numbers(&mut self) -> Result<bool> {
        match self.format {
            ImageFormat::Jpeg => Ok(false),
            ImageFormat::WebP => {
                let chunks =
                    webp::chunks(&mut self.file).map_err(Error::file("read", self.path))?;
                self.file.rewind().map_err(Error::file("read", self.path))?;
                Ok(chunks.is_none_or(|names| names.contains(b"VP8L")))
            }
            _ => Ok(true),
        }
    }

    /// Palette indices and grey of up to 8 bits are read raw; all else is decoded as an image.
    fn png_labels(self) -> Result<DynamicImage> {
        let Self { path, max_megapixels, file, .. } = self;
        let limits = png::Limits { bytes: SPARE_BYTES };
        let mut decoder = png::Decoder::new_with_limits(file, limits);
        decoder.set_transformations(Transformations::IDENTITY);
        let mut reader = decoder.read_info().map_err(bad_png(path))?;
        let (color, depth) = reader.output_color_type();
        if depth == BitDepth::Sixteen || !matches!(color, ColorType::Indexed | ColorType::Grayscale)
        {
            return Source::open(path, max_megapixels)?.decode();
        }

        let size = reader.info().size();
        check_size(path, size, max_megapixels)?;
        let mut packed = vec![0; reader.output_buffer_size().expect("checked by `read_info`")];
        reader.next_frame(&mut packed).map_err(bad_png(path))?;
        let mut labels = DynamicImage::ImageLuma8(unpack(&packed, depth as u32, size));
        let exif = reader.info().exif_metadata.as_deref();
        if let Some(orientation) = exif.and_then(Orientation::from_exif_chunk) {
            labels.apply_orientation(orientation);
        }
        Ok(labels)
    }

    /// Colours are mapped back to palette indices; of entries with the same colour, to the first.
    fn bmp_labels(self) -> Result<DynamicImage> {
        let Self { path, max_megapixels, file, .. } = self;
        let decoder = BmpDecoder::new(file).map_err(undecodable(path))?;
        check_size(path, decoder.dimensions(), max_megapixels)?;
        let palette = decoder.get_palette().map(<[_]>::to_vec);
        let image = pixels(path, decoder)?;
        let Some(palette) = palette else { return Ok(image) };

        let entries = palette.iter().zip(0..=255).rev();
        let index_of: BTreeMap<[u8; 3], u8> = entries.map(|(&color, i)| (color, i)).collect();
        let colors = image.into_rgb8();
        let labels = GrayImage::from_fn(colors.width(), colors.height(), |x, y| {
            // A run-length file may skip pixels, which then have no entry.
            Luma([index_of.get(&colors[(x, y)].0).copied().unwrap_or(0)])
        });
        Ok(DynamicImage::ImageLuma8(labels))
    }
}

/// Spreads samples of `bits` each, most significant first and rows padded to bytes.
fn unpack(packed: &[u8], bits: u32, (width, height): (u32, u32)) -> GrayImage {
    let row_bytes = (u64::from(width) * u64::from(bits)).div_ceil(8) as usize;
    let per_byte = 8 / bits;
    GrayImage::from_fn(width, height, |x, y| {
        let byte = packed[y as usize * row_bytes + (x / per_byte) as usize];
        let shift = 8 - bits * (x % per_byte + 1);
        Luma([(byte >> shift) & (0xFF >> (8 - bits))])
    })
}

fn bad_png(path: &Path) -> impl FnOnce(png::DecodingError) -> Error {
    let format = ImageFormatHint::Exact(ImageFormat::Png);
    move |error| undecodable(path)(ImageError::Decoding(DecodingError::new(format, error)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_samples_are_spread_row_by_row() {
        // Two rows of three 2-bit samples, the last two bits of each byte being padding.
        let labels = unpack(&[0b00_01_10_11, 0b11_00_01_00], 2, (3, 2));
        assert_eq!(labels.into_raw(), [0, 1, 2, 3, 0, 1]);
    }

    #[test]
    fn eight_bit_samples_stay_as_they_are() {
        assert_eq!(unpack(&[7, 0, 255, 1], 8, (2, 2)).into_raw(), [7, 0, 255, 1]);
    }
}
