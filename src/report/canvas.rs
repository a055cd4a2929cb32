//! A drawing surface over [`RgbImage`].
//!
//! Coordinates are in pixels from the top left corner; pixel `(i, j)` covers
//! `[i, i + 1) × [j, j + 1)`, so a crisp line one pixel wide runs at `i + 0.5`.
//! Whatever falls outside is cut off.
//!
//! [`RgbImage`]: image::RgbImage

mod line;
mod text;

pub use text::{LETTER_WIDTH, LINE_HEIGHT, fit_text, text_width};

use std::ops::Range;

use image::{
    ImageEncoder, Rgb, RgbImage,
    codecs::png::{CompressionType, FilterType as PngFilter, PngEncoder},
    imageops::{self, FilterType},
};

use line::Coverage;

/// White, the background of every figure.
pub const WHITE: Rgb<u8> = rgb(0xff_ff_ff);
/// Near-black, for text.
pub const INK: Rgb<u8> = rgb(0x22_22_22);

/// A colour from its usual hexadecimal notation, `0xRRGGBB`.
pub const fn rgb(hex: u32) -> Rgb<u8> {
    let [_, red, green, blue] = hex.to_be_bytes();
    Rgb([red, green, blue])
}

/// `top` laid over `bottom`; an `alpha` of 1 hides the bottom.
pub fn blend(bottom: Rgb<u8>, top: Rgb<u8>, alpha: f32) -> Rgb<u8> {
    let mix = |b: u8, t: u8| (f32::from(b) * (1.0 - alpha) + f32::from(t) * alpha).round() as u8;
    Rgb(std::array::from_fn(|channel| mix(bottom[channel], top[channel])))
}

/// A rectangle of whole pixels; it may reach beyond the canvas.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Area {
    /// First column.
    pub x: i64,
    /// First row.
    pub y: i64,
    /// Number of columns.
    pub width: u32,
    /// Number of rows.
    pub height: u32,
}

/// How a line looks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stroke {
    /// Its colour.
    pub colour: Rgb<u8>,
    /// Its thickness in pixels.
    pub width: f32,
    /// Lengths of ink and gap in turn, in pixels; empty for an unbroken line.
    pub dashes: &'static [f32],
}

/// Which way a line of text runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Left to right.
    Rightward,
    /// Bottom to top, as the title of a vertical axis.
    Upward,
}

/// How an image is brought to another size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scaling {
    /// Keeps the values that are there: masks, and enlarged pixels.
    Nearest,
    /// Smooth: photographs.
    Bilinear,
}

/// An image being drawn.
#[derive(Debug, Clone)]
pub struct Canvas {
    image: RgbImage,
}

impl Canvas {
    /// A surface of one colour, at least one pixel in size.
    pub fn new(width: u32, height: u32, background: Rgb<u8>) -> Self {
        Self { image: RgbImage::from_pixel(width.max(1), height.max(1), background) }
    }

    /// Fills a rectangle.
    pub fn fill(&mut self, area: Area, colour: Rgb<u8>) {
        let (columns, rows) = (area.columns(&self.image), area.rows(&self.image));
        for y in rows {
            for x in columns.clone() {
                self.image.put_pixel(x, y, colour);
            }
        }
    }

    /// Draws the border of a rectangle, `thickness` pixels wide and inside of it.
    pub fn outline(&mut self, area: Area, thickness: u32, colour: Rgb<u8>) {
        let Area { x, y, width, height } = area;
        let (across, down) = (thickness.min(width), thickness.min(height));
        let right = x + i64::from(width - across);
        let bottom = y + i64::from(height - down);
        self.fill(Area { height: down, ..area }, colour);
        self.fill(Area { y: bottom, height: down, ..area }, colour);
        self.fill(Area { width: across, ..area }, colour);
        self.fill(Area { x: right, width: across, ..area }, colour);
    }

    /// Draws a smooth line through `points`, with round joints and ends.
    pub fn line(&mut self, points: &[(f32, f32)], stroke: Stroke) {
        let mut ink = Coverage::around(points, stroke.width, &self.image);
        ink.line(points, stroke.width, stroke.dashes);
        ink.lay_on(&mut self.image, stroke.colour);
    }

    /// Draws a filled circle.
    pub fn disc(&mut self, centre: (f32, f32), radius: f32, colour: Rgb<u8>) {
        let mut ink = Coverage::around(&[centre], 2.0 * radius, &self.image);
        ink.line(&[centre, centre], 2.0 * radius, &[]);
        ink.lay_on(&mut self.image, colour);
    }

    /// Writes one line of text; `at` is the top left corner of its first letter as it is read.
    pub fn text(&mut self, at: (i32, i32), text: &str, colour: Rgb<u8>, direction: Direction) {
        text::write(&mut self.image, at, text, colour, direction);
    }

    /// Copies an image to where its top left corner shall be.
    pub fn paste(&mut self, image: &RgbImage, x: i64, y: i64) {
        imageops::replace(&mut self.image, image, x, y);
    }

    /// Copies an image into `area`, whatever its own size.
    pub fn paste_scaled(&mut self, image: &RgbImage, area: Area, scaling: Scaling) {
        self.paste(&scaled(image, area.width, area.height, scaling), area.x, area.y);
    }

    /// The picture as the bytes of a PNG file.
    pub fn to_png(&self) -> Vec<u8> {
        encode_png(&self.image)
    }

    /// The picture itself.
    pub fn into_image(self) -> RgbImage {
        self.image
    }
}

impl From<RgbImage> for Canvas {
    fn from(image: RgbImage) -> Self {
        Self { image }
    }
}

impl Area {
    fn columns(&self, image: &RgbImage) -> Range<u32> {
        clip(self.x, self.width, image.width())
    }

    fn rows(&self, image: &RgbImage) -> Range<u32> {
        clip(self.y, self.height, image.height())
    }
}

fn clip(start: i64, length: u32, limit: u32) -> Range<u32> {
    let inside = |position: i64| position.clamp(0, i64::from(limit)) as u32;
    inside(start)..inside(start.saturating_add(i64::from(length)))
}

/// The image at another size, each side at least one pixel.
pub fn scaled(image: &RgbImage, width: u32, height: u32, scaling: Scaling) -> RgbImage {
    let filter = match scaling {
        Scaling::Nearest => FilterType::Nearest,
        Scaling::Bilinear => FilterType::Triangle,
    };
    imageops::resize(image, width.max(1), height.max(1), filter)
}

/// An image as the bytes of a PNG file.
pub fn encode_png(image: &RgbImage) -> Vec<u8> {
    let mut bytes = Vec::new();
    PngEncoder::new_with_quality(&mut bytes, CompressionType::Default, PngFilter::Adaptive)
        .write_image(image, image.width(), image.height(), image::ExtendedColorType::Rgb8)
        .expect("an RGB image in memory can be written to memory");
    bytes
}

/// Brightnesses in rows of `width` as the bytes of a grey PNG file.
pub fn encode_grey_png(width: u32, pixels: &[u8]) -> Vec<u8> {
    let height = (pixels.len() / width as usize) as u32;
    let mut bytes = Vec::new();
    // Masks are runs of few values, which hardly get smaller with more effort.
    PngEncoder::new_with_quality(&mut bytes, CompressionType::Fast, PngFilter::NoFilter)
        .write_image(pixels, width, height, image::ExtendedColorType::L8)
        .expect("whole rows in memory can be written to memory");
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLACK: Rgb<u8> = rgb(0);

    #[test]
    fn a_rectangle_covers_its_pixels_and_no_others() {
        let mut canvas = Canvas::new(4, 3, WHITE);
        canvas.fill(Area { x: 1, y: -5, width: 2, height: 7 }, BLACK);
        assert_eq!(inked(&canvas), [(1, 0), (2, 0), (1, 1), (2, 1)]);
    }

    #[test]
    fn an_outline_lies_inside_its_rectangle() {
        let mut canvas = Canvas::new(5, 5, WHITE);
        canvas.outline(Area { x: 1, y: 1, width: 3, height: 3 }, 1, BLACK);
        let ring = [(1, 1), (2, 1), (3, 1), (1, 2), (3, 2), (1, 3), (2, 3), (3, 3)];
        assert_eq!(inked(&canvas), ring);
    }

    #[test]
    fn a_thin_line_through_pixel_centres_is_crisp() {
        let mut canvas = Canvas::new(6, 3, WHITE);
        let stroke = Stroke { colour: BLACK, width: 1.0, dashes: &[] };
        canvas.line(&[(1.5, 1.5), (3.5, 1.5)], stroke);
        assert_eq!(inked(&canvas), [(1, 1), (2, 1), (3, 1)]);
        assert_eq!(canvas.image[(2, 1)], BLACK);
    }

    #[test]
    fn upward_text_is_rightward_text_turned_left() {
        let mut rightward = Canvas::new(30, 20, WHITE);
        rightward.text((0, 0), "Fg1", BLACK, Direction::Rightward);
        let mut upward = Canvas::new(20, 30, WHITE);
        upward.text((0, 30), "Fg1", BLACK, Direction::Upward);
        assert!(!inked(&rightward).is_empty());
        assert_eq!(imageops::rotate270(&rightward.image), upward.image);
    }

    #[test]
    fn drawing_far_outside_changes_nothing() {
        let mut canvas = Canvas::new(3, 3, WHITE);
        let stroke = Stroke { colour: BLACK, width: 2.0, dashes: &[4.0, 4.0] };
        canvas.line(&[(-90.0, -90.0), (-80.0, 70.0)], stroke);
        canvas.line(&[], stroke);
        canvas.disc((50.0, 50.0), 4.0, BLACK);
        canvas.text((-500, 900), "far", BLACK, Direction::Upward);
        canvas.paste(&RgbImage::new(2, 2), 40, -40);
        assert_eq!(inked(&canvas), []);
    }

    #[test]
    fn nearest_scaling_keeps_the_colours_and_png_keeps_the_pixels() {
        let two = RgbImage::from_fn(2, 1, |x, _| if x == 0 { WHITE } else { BLACK });
        let mut canvas = Canvas::new(4, 2, rgb(0x12_34_56));
        canvas.paste_scaled(&two, Area { x: 0, y: 0, width: 4, height: 2 }, Scaling::Nearest);
        assert_eq!(inked(&canvas), [(2, 0), (3, 0), (2, 1), (3, 1)]);
        let decoded = image::load_from_memory(&canvas.to_png()).unwrap().to_rgb8();
        assert_eq!(decoded, canvas.image);
    }

    /// Where the canvas is not white, row by row.
    fn inked(canvas: &Canvas) -> Vec<(u32, u32)> {
        let pixels = canvas.image.enumerate_pixels();
        pixels.filter(|(_, _, pixel)| **pixel != WHITE).map(|(x, y, _)| (x, y)).collect()
    }
}
