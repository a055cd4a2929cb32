//! Text in the one built-in font: ten by twenty pixels a letter, Latin-1.

use std::convert::Infallible;

use embedded_graphics::{
    Drawable, Pixel,
    draw_target::DrawTarget,
    geometry::{Dimensions, Point, Size},
    mono_font::{MonoTextStyle, iso_8859_1::FONT_10X20},
    pixelcolor::BinaryColor,
    primitives::Rectangle,
    text::{Baseline, Text},
};
use image::{Rgb, RgbImage};

use super::Direction;

/// Width of one letter in pixels.
pub const LETTER_WIDTH: u32 = FONT_10X20.character_size.width;
/// Height of one line of text in pixels.
pub const LINE_HEIGHT: u32 = FONT_10X20.character_size.height;

/// Width in pixels of a line of text.
pub fn text_width(text: &str) -> u32 {
    printable(text).chars().count() as u32 * LETTER_WIDTH
}

/// The text cut so that it takes at most `width` pixels, with dots where something is missing.
pub fn fit_text(text: &str, width: u32) -> String {
    let room = (width / LETTER_WIDTH) as usize;
    if printable(text).chars().count() <= room {
        return text.to_owned();
    }
    let kept = printable(text).chars().take(room.saturating_sub(2)).collect::<String>();
    (kept + "..").chars().take(room).collect()
}

/// Writes one line of text onto the image; see [`Canvas::text`](super::Canvas::text).
pub(super) fn write(
    image: &mut RgbImage,
    at: (i32, i32),
    text: &str,
    colour: Rgb<u8>,
    direction: Direction,
) {
    let style = MonoTextStyle::new(&FONT_10X20, BinaryColor::On);
    let text = printable(text);
    let text = Text::with_baseline(&text, Point::zero(), style, Baseline::Top);
    match text.draw(&mut Pen { image, at, colour, direction }) {
        Ok(_) => {}
        Err(never) => match never {},
    }
}

/// The text in letters that the built-in font has (Latin-1).
fn printable(text: &str) -> String {
    let mut letters = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '⁺' => letters.push('+'),
            '⁻' | '−' | '–' | '—' => letters.push('-'),
            '‘' | '’' => letters.push('\''),
            '“' | '”' => letters.push('"'),
            '…' => letters.push_str("..."),
            '≥' => letters.push_str(">="),
            '≤' => letters.push_str("<="),
            '→' => letters.push_str("->"),
            ' '..='~' | '\u{a0}'..='\u{ff}' => letters.push(letter),
            _ if letter.is_whitespace() || letter.is_control() => letters.push(' '),
            _ => letters.push('?'),
        }
    }
    letters
}

/// Puts the font's dots on the image, turned if need be.
struct Pen<'a> {
    image: &'a mut RgbImage,
    at: (i32, i32),
    colour: Rgb<u8>,
    direction: Direction,
}

impl Dimensions for Pen<'_> {
    fn bounding_box(&self) -> Rectangle {
        // Nothing is cut off here: the pen's own coordinates start at the text.
        Rectangle::new(Point::zero(), Size::new_equal(i32::MAX as u32))
    }
}

impl DrawTarget for Pen<'_> {
    type Color = BinaryColor;
    type Error = Infallible;

    fn draw_iter<I: IntoIterator<Item = Pixel<BinaryColor>>>(
        &mut self,
        dots: I,
    ) -> Result<(), Infallible> {
        for Pixel(dot, state) in dots {
            let (x, y) = match self.direction {
                Direction::Rightward => (self.at.0 + dot.x, self.at.1 + dot.y),
                Direction::Upward => (self.at.0 + dot.y, self.at.1 - 1 - dot.x),
            };
            let (Ok(x), Ok(y)) = (u32::try_from(x), u32::try_from(y)) else { continue };
            if let (BinaryColor::On, Some(pixel)) = (state, self.image.get_pixel_mut_checked(x, y))
            {
                *pixel = self.colour;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_the_font_lacks_are_replaced_by_their_nearest() {
        assert_eq!(printable("F1⁺ ≥ 0.5 – naïve\n日"), "F1+ >= 0.5 - naïve ?");
        assert_eq!(text_width("F1⁺"), 30);
    }

    #[test]
    fn long_text_is_cut_to_the_room_there_is() {
        assert_eq!(fit_text("localizer", 90), "localizer");
        assert_eq!(fit_text("localizer", 89), "locali..");
        assert_eq!(fit_text("localizer", 19), ".");
        assert_eq!(fit_text("localizer", 0), "");
    }
}
