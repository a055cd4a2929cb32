//! Opening and decoding of image files, with the checks that they must pass.

use std::{
    fs::{self, File, Metadata},
    io::{self, BufReader, Seek},
    panic::{self, AssertUnwindSafe},
    path::Path,
};

use image::{
    ColorType, DynamicImage, ImageDecoder, ImageError, ImageFormat, ImageReader, Limits,
    metadata::Orientation,
};

use super::{jpeg, webp};
use crate::error::{Error, Result};

/// Memory a decoder may use beside the pixels: headers, colour profiles, rows in flight.
pub(super) const SPARE_BYTES: usize = 64 << 20;

/// An opened file of a known format; nothing of it is decoded yet.
#[derive(Debug)]
pub(super) struct Source<'a> {
    pub(super) path: &'a Path,
    pub(super) format: ImageFormat,
    pub(super) file: BufReader<File>,
    pub(super) max_megapixels: u32,
}

impl<'a> Source<'a> {
    /// Opens `path` if it is a file that begins like an image.
    pub(super) fn open(path: &'a Path, max_megapixels: u32) -> Result<Self> {
        let metadata = fs::metadata(path).map_err(missing(path))?;
        check_file(path, &metadata, max_megapixels)?;
        let file = BufReader::new(File::open(path).map_err(Error::file("read", path))?);
        let reader = ImageReader::new(file).with_guessed_format();
        let reader = reader.map_err(Error::file("read", path))?;
        let format = reader.format().ok_or_else(|| {
            let problem = "not an image in a supported format";
            Error::image(path, problem, "use PNG, JPEG, TIFF, BMP, WebP or GIF")
        })?;
        let mut source = Self { path, format, file: reader.into_inner(), max_megapixels };
        if format == ImageFormat::WebP {
            source.require_complete(|file| Ok(webp::chunks(file)?.is_some()))?;
        }
        Ok(source)
    }

    /// Width and height, upright, from the header.
    pub(super) fn size(self) -> Result<(u32, u32)> {
        let path = self.path;
        let mut decoder = self.into_decoder()?;
        let (width, height) = decoder.dimensions();
        let orientation = decoder.orientation().map_err(undecodable(path))?;
        Ok(if swaps_sides(orientation) { (height, width) } else { (width, height) })
    }

    /// All pixels, upright.
    pub(super) fn decode(mut self) -> Result<DynamicImage> {
        if self.format == ImageFormat::Jpeg {
            self.require_complete(jpeg::is_complete)?;
        }
        let path = self.path;
        pixels(path, self.into_decoder()?)
    }

    /// Reads the header, no further.
    fn into_decoder(self) -> Result<impl ImageDecoder> {
        let Self { path, format, file, max_megapixels } = self;
        let length = file.get_ref().metadata().map_err(Error::file("read", path))?.len();
        let mut reader = ImageReader::with_format(file, format);
        reader.limits(memory_limit(0));
        let decoder = reader.into_decoder().map_err(undecodable(path))?;
        check_size(path, decoder.dimensions(), max_megapixels)?;
        if format == ImageFormat::WebP {
            check_density(path, decoder.dimensions(), length)?;
        }
        Ok(decoder)
    }

    /// Refuses a file that ends early where the decoder would not notice, or too late.
    fn require_complete(
        &mut self,
        is_complete: impl FnOnce(&mut BufReader<File>) -> io::Result<bool>,
    ) -> Result<()> {
        if !is_complete(&mut self.file).map_err(Error::file("read", self.path))? {
            return Err(Error::image(self.path, "image file ends early", COPY_AGAIN));
        }
        self.file.rewind().map_err(Error::file("read", self.path))
    }
}

const COPY_AGAIN: &str = "the file is damaged; copy or download it again";

/// Runs a decoder, and turns a panic on a hostile file into an error that names the file.
pub(super) fn guard<T>(path: &Path, decode: impl FnOnce() -> Result<T>) -> Result<T> {
    panic::catch_unwind(AssertUnwindSafe(decode)).unwrap_or_else(|_| {
        Err(Error::image(path, "image that its decoder cannot cope with", COPY_AGAIN))
    })
}

/// Refuses an image whose header announces no pixels, or more than the limit.
pub(super) fn check_size(
    path: &Path,
    (width, height): (u32, u32),
    max_megapixels: u32,
) -> Result<()> {
    let pixels = u64::from(width) * u64::from(height);
    if pixels == 0 {
        let problem = format!("image of {width}×{height} pixels");
        return Err(Error::image(path, problem, "replace the file"));
    }
    if pixels > u64::from(max_megapixels) * 1_000_000 {
        let problem = format!(
            "image of {width}×{height} pixels is above the limit of {max_megapixels} megapixels"
        );
        return Err(Error::image(path, problem, "shrink it, or raise `data.max_megapixels`"));
    }
    Ok(())
}

/// Refuses a file that is far too short for its pixels to be a picture.
///
/// Lossless WebP can announce millions of equal pixels in a few bytes, which take a minute to
/// fill in. Deflate, within PNG and TIFF, cannot: it needs a byte for about a thousand.
fn check_density(path: &Path, (width, height): (u32, u32), length: u64) -> Result<()> {
    let pixels = u64::from(width) * u64::from(height);
    if pixels <= BLANK_PIXELS || pixels / length.max(1) <= PIXELS_PER_BYTE {
        return Ok(());
    }
    let problem =
        format!("file of {length} bytes that claims {width}×{height} pixels, too many to be true");
    Err(Error::image(path, problem, "if it is blank on purpose, save it as PNG"))
}

/// Fewer pixels than this are filled in at once, whatever they cost.
const BLANK_PIXELS: u64 = 4 << 20;
/// More pixels than this per byte are no picture.
const PIXELS_PER_BYTE: u64 = 1024;

/// Decodes what `decoder` has found in the header, and turns it upright.
pub(super) fn pixels(path: &Path, mut decoder: impl ImageDecoder) -> Result<DynamicImage> {
    if matches!(decoder.color_type(), ColorType::Rgb32F | ColorType::Rgba32F) {
        // Their range is unknown, so that a conversion might give white everywhere.
        return Err(Error::image(
            path,
            "image of floating-point pixels",
            "save it with 8 or 16 bits",
        ));
    }
    let orientation = decoder.orientation().map_err(undecodable(path))?;
    decoder.set_limits(memory_limit(decoder.total_bytes())).map_err(undecodable(path))?;
    let mut image = DynamicImage::from_decoder(decoder).map_err(undecodable(path))?;
    image.apply_orientation(orientation);
    Ok(image)
}

/// An image error in the user's terms.
pub(super) fn undecodable(path: &Path) -> impl FnOnce(ImageError) -> Error {
    move |error| match error {
        ImageError::Unsupported(_) => {
            let problem = format!("unsupported kind of image ({error})");
            Error::image(path, problem, "save it as 8-bit PNG")
        }
        ImageError::Limits(_) => {
            let problem = format!("image asks for too much memory ({error})");
            Error::image(path, problem, "if it is sound, raise `data.max_megapixels`")
        }
        _ => Error::image(path, format!("cannot decode image ({error})"), COPY_AGAIN),
    }
}

fn missing(path: &Path) -> impl FnOnce(io::Error) -> Error {
    move |error| match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Error::image(
            path,
            "no such image file",
            "check the path, and that the copy is complete",
        ),
        _ => Error::file("read", path)(error),
    }
}

/// Refuses what is not a file of a plausible length.
fn check_file(path: &Path, metadata: &Metadata, max_megapixels: u32) -> Result<()> {
    if metadata.is_dir() {
        return Err(Error::image(path, "folder where an image file should be", "name a file"));
    }
    if !metadata.is_file() {
        return Err(Error::image(path, "not a regular file", "name an image file"));
    }
    if metadata.len() == 0 {
        return Err(Error::image(path, "empty file where an image should be", COPY_AGAIN));
    }
    // Some decoders read the whole file first. Eight bytes hold any pixel uncompressed.
    let most = u64::from(max_megapixels) * 8_000_000 + SPARE_BYTES as u64;
    if metadata.len() > most {
        let problem =
            format!("file of {} MB is larger than any image allowed", metadata.len() >> 20);
        return Err(Error::image(path, problem, "shrink it, or raise `data.max_megapixels`"));
    }
    Ok(())
}

/// Room for `pixel_bytes` twice, as decoding may need a second buffer, and something to spare.
fn memory_limit(pixel_bytes: u64) -> Limits {
    let mut limits = Limits::default();
    limits.max_alloc = Some(pixel_bytes.saturating_mul(2).saturating_add(SPARE_BYTES as u64));
    limits
}

fn swaps_sides(orientation: Orientation) -> bool {
    use Orientation::{Rotate90, Rotate90FlipH, Rotate270, Rotate270FlipH};
    matches!(orientation, Rotate90 | Rotate270 | Rotate90FlipH | Rotate270FlipH)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panicking_decoder_becomes_an_error_that_names_the_file() {
        let error = guard(Path::new("evil.png"), || -> Result<()> { panic!("as a decoder might") });
        assert!(error.unwrap_err().to_string().contains("`evil.png`"));
    }

    #[test]
    fn memory_for_an_image_is_bounded_by_its_size() {
        assert_eq!(memory_limit(1000).max_alloc, Some(2000 + (64 << 20)));
        assert_eq!(memory_limit(u64::MAX).max_alloc, Some(u64::MAX));
    }
}
