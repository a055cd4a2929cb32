//! Pictures side by side: strips for comparison, sheets for a gallery.

use image::{Rgb, RgbImage};

use crate::report::canvas::{
    Area, Canvas, Direction, INK, LETTER_WIDTH, LINE_HEIGHT, Scaling, WHITE, fit_text, scaled,
    text_width,
};

/// White space between pictures and around them, in pixels.
const GAP: u32 = 12;
/// Space between a picture and its caption.
const CAPTION_GAP: u32 = 4;
/// Columns are at least this wide, so that captions of tiny images can be read.
const LEAST_COLUMN: u32 = 16 * LETTER_WIDTH;

/// A picture and the words under it.
#[derive(Debug, Clone)]
pub struct Panel {
    /// The picture.
    pub image: RgbImage,
    /// Lines under the picture; what is too long is cut.
    pub caption: String,
    /// Colour of the caption.
    pub ink: Rgb<u8>,
}

/// Pictures of one subject, under a heading.
#[derive(Debug, Clone, Default)]
pub struct Row {
    /// Above the pictures; left out if empty.
    pub heading: String,
    /// From left to right.
    pub panels: Vec<Panel>,
}

impl Panel {
    /// A picture with a dark caption.
    pub fn new(caption: impl Into<String>, image: RgbImage) -> Self {
        Self { image, caption: caption.into(), ink: INK }
    }

    /// The same with a caption in another colour, such as green for right and red for wrong.
    pub fn with_ink(self, ink: Rgb<u8>) -> Self {
        Self { ink, ..self }
    }
}

/// Pictures of one subject side by side, each over its caption.
pub fn strip(panels: &[Panel]) -> RgbImage {
    compose(&[("", panels)], &[])
}

/// Rows of pictures in aligned columns, with a key to their colours at the foot.
pub fn sheet(rows: &[Row], key: &[(&str, Rgb<u8>)]) -> RgbImage {
    let rows = rows.iter().map(|row| (row.heading.as_str(), row.panels.as_slice()));
    compose(&rows.collect::<Vec<_>>(), key)
}

/// The image with its longer side brought to `side` pixels, so that panels match.
///
/// Small images are enlarged pixel by pixel: nothing is made up.
pub fn thumbnail(image: &RgbImage, side: u32) -> RgbImage {
    let (width, height) = image.dimensions();
    let longer = u64::from(width.max(height).max(1));
    let size = |length: u32| (u64::from(length) * u64::from(side) / longer) as u32;
    let scaling = if longer < u64::from(side) { Scaling::Nearest } else { Scaling::Bilinear };
    scaled(image, size(width), size(height), scaling)
}

fn compose(rows: &[(&str, &[Panel])], key: &[(&str, Rgb<u8>)]) -> RgbImage {
    let columns = column_widths(rows);
    let inner = columns.iter().sum::<u32>() + GAP * (columns.len() as u32).saturating_sub(1);
    let key_lines = key_lines(key, inner);
    let key_height = key_lines.last().map_or(0, |last| last.y + LINE_HEIGHT + GAP);
    let height = rows.iter().map(|row| row_height(row) + GAP).sum::<u32>() + key_height;

    let mut canvas = Canvas::new(inner + 2 * GAP, height + GAP, WHITE);
    let mut y = GAP;
    for row in rows {
        draw_row(&mut canvas, row, &columns, y);
        y += row_height(row) + GAP;
    }
    for entry in &key_lines {
        entry.draw(&mut canvas, y);
    }
    canvas.into_image()
}

fn column_widths(rows: &[(&str, &[Panel])]) -> Vec<u32> {
    let count = rows.iter().map(|(_, panels)| panels.len()).max().unwrap_or(0);
    let widest = |column: usize| {
        let panels = rows.iter().filter_map(|(_, panels)| panels.get(column));
        panels.map(|panel| panel.image.width()).max().unwrap_or(0).max(LEAST_COLUMN)
    };
    (0..count).map(widest).collect()
}

fn heading_height(heading: &str) -> u32 {
    if heading.is_empty() { 0 } else { LINE_HEIGHT + CAPTION_GAP }
}

fn row_height((heading, panels): &(&str, &[Panel])) -> u32 {
    let panel = |panel: &Panel| {
        let lines = panel.caption.lines().count() as u32;
        let caption = if lines == 0 { 0 } else { CAPTION_GAP + lines * LINE_HEIGHT };
        (panel.image.height(), caption)
    };
    let tallest = panels.iter().map(|p| panel(p).0).max().unwrap_or(0);
    let captions = panels.iter().map(|p| panel(p).1).max().unwrap_or(0);
    heading_height(heading) + tallest + captions
}

fn draw_row(canvas: &mut Canvas, (heading, panels): &(&str, &[Panel]), columns: &[u32], top: u32) {
    let inner = columns.iter().sum::<u32>() + GAP * (columns.len() as u32).saturating_sub(1);
    write(canvas, GAP, top, &fit_text(heading, inner), INK);
    let top = top + heading_height(heading);
    let tallest = panels.iter().map(|panel| panel.image.height()).max().unwrap_or(0);
    let mut left = GAP;
    for (panel, width) in panels.iter().zip(columns) {
        canvas.paste(&panel.image, i64::from(left), i64::from(top));
        let caption = top + tallest + CAPTION_GAP;
        for (line, text) in (0..).zip(panel.caption.lines()) {
            let text = fit_text(text, *width);
            write(canvas, left, caption + line * LINE_HEIGHT, &text, panel.ink);
        }
        left += width + GAP;
    }
}

fn write(canvas: &mut Canvas, x: u32, y: u32, text: &str, ink: Rgb<u8>) {
    canvas.text((x as i32, y as i32), text, ink, Direction::Rightward);
}

/// One colour of the key and where it goes, from the left edge and the top of the key.
struct KeyEntry<'a> {
    x: u32,
    y: u32,
    name: &'a str,
    colour: Rgb<u8>,
}

/// The key broken into lines of at most `width` pixels.
fn key_lines<'a>(key: &[(&'a str, Rgb<u8>)], width: u32) -> Vec<KeyEntry<'a>> {
    let (mut x, mut y) = (0, 0);
    let mut entries = Vec::new();
    for &(name, colour) in key {
        let needed = LINE_HEIGHT + CAPTION_GAP + text_width(name);
        if x > 0 && x + needed > width {
            (x, y) = (0, y + LINE_HEIGHT + CAPTION_GAP);
        }
        entries.push(KeyEntry { x: x + GAP, y, name, colour });
        x += needed + 2 * GAP;
    }
    entries
}

impl KeyEntry<'_> {
    fn draw(&self, canvas: &mut Canvas, top: u32) {
        let (x, y) = (self.x, top + self.y);
        let side = LINE_HEIGHT - 4;
        let swatch = Area { x: i64::from(x), y: i64::from(y + 2), width: side, height: side };
        canvas.fill(swatch, self.colour);
        write(canvas, x + LINE_HEIGHT + CAPTION_GAP, y, self.name, INK);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::canvas::rgb;

    const RED: Rgb<u8> = rgb(0xff_00_00);

    fn panel(caption: &str, width: u32, height: u32) -> Panel {
        Panel::new(caption, RgbImage::from_pixel(width, height, RED))
    }

    #[test]
    fn a_strip_has_gaps_between_its_panels_and_captions_under_them() {
        let picture = strip(&[panel("image", 200, 100), panel("truth", 200, 100)]);
        assert_eq!(picture.dimensions(), (12 + 200 + 12 + 200 + 12, 12 + 100 + 4 + 20 + 12));
        let red = |x, y| picture[(x, y)] == RED;
        assert!(red(12, 12) && red(211, 111) && red(224, 12) && red(423, 111));
        assert!(!red(11, 12) && !red(212, 50) && !red(223, 50) && !red(424, 50) && !red(12, 112));
        let written = |x| (116..136).any(|y| (x..x + 50).any(|x| picture[(x, y)] == INK));
        assert!(written(12) && written(224));
    }

    #[test]
    fn columns_of_a_sheet_are_as_wide_as_their_widest_panel() {
        let rows = [
            Row {
                heading: "one".to_owned(),
                panels: vec![panel("a", 300, 50), panel("b", 200, 80)],
            },
            Row { heading: String::new(), panels: vec![panel("", 200, 40)] },
        ];
        let picture = sheet(&rows, &[("red", RED)]);
        let height = 12 + (24 + 80 + 4 + 20) + 12 + 40 + 12 + 20 + 12;
        assert_eq!(picture.dimensions(), (12 + 300 + 12 + 200 + 12, height));
        assert_eq!(picture[(12 + 300 + 12, 12 + 24)], RED);
        assert_eq!(picture[(12, 12 + 24 + 80 + 24 + 12)], RED);
    }

    #[test]
    fn tiny_panels_leave_room_for_their_caption() {
        assert_eq!(strip(&[panel("a caption", 2, 2)]).width(), 12 + 160 + 12);
    }

    #[test]
    fn nothing_to_show_is_a_blank_picture() {
        assert_eq!(strip(&[]).dimensions(), (24, 24));
        assert_eq!(sheet(&[], &[]).dimensions(), (24, 12));
        strip(&[Panel::new("empty", RgbImage::new(0, 0))]);
    }

    #[test]
    fn thumbnails_keep_the_shape_of_the_image() {
        assert_eq!(thumbnail(&RgbImage::new(800, 200), 400).dimensions(), (400, 100));
        assert_eq!(thumbnail(&RgbImage::new(3, 6), 60).dimensions(), (30, 60));
        assert_eq!(thumbnail(&RgbImage::new(10_000, 1), 100).dimensions(), (100, 1));
    }

    #[test]
    fn a_long_key_is_broken_into_lines() {
        let lines = key_lines(&[("twelve chars", RED), ("twelve chars", RED)], 200);
        assert_eq!((lines[0].y, lines[1].y), (0, 24));
    }
}
