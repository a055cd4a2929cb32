//! A drawing as a list of shapes, painted as pixels or written as SVG.
//!
//! Both outputs come from the same list, so they cannot disagree.

use std::fmt::Write as _;

use image::Rgb;

use crate::report::canvas::{Area, Canvas, Direction, LINE_HEIGHT, Stroke, WHITE, text_width};

/// Everything on one page, in drawing order.
pub(in crate::report) struct Scene {
    pub(in crate::report) width: u32,
    pub(in crate::report) height: u32,
    pub(in crate::report) shapes: Vec<Shape>,
}

pub(in crate::report) enum Shape {
    Line { points: Vec<(f32, f32)>, stroke: Stroke },
    Disc { centre: (f32, f32), radius: f32, colour: Rgb<u8> },
    Block { area: Area, colour: Rgb<u8> },
    Label(Label),
}

/// One line of text, centred across its reading direction on `at`.
pub(in crate::report) struct Label {
    pub(in crate::report) at: (f32, f32),
    pub(in crate::report) text: String,
    pub(in crate::report) colour: Rgb<u8>,
    pub(in crate::report) anchor: Anchor,
    pub(in crate::report) direction: Direction,
    pub(in crate::report) bold: bool,
}

/// Which point of a text, along its reading direction, is put in place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::report) enum Anchor {
    Start,
    Middle,
    End,
}

impl Scene {
    pub(in crate::report) fn to_canvas(&self) -> Canvas {
        let mut canvas = Canvas::new(self.width, self.height, WHITE);
        for shape in &self.shapes {
            match shape {
                Shape::Line { points, stroke } => canvas.line(points, *stroke),
                Shape::Disc { centre, radius, colour } => canvas.disc(*centre, *radius, *colour),
                Shape::Block { area, colour } => canvas.fill(*area, *colour),
                Shape::Label(label) => label.paint(&mut canvas),
            }
        }
        canvas
    }

    pub(in crate::report) fn to_svg(&self) -> String {
        let Self { width, height, .. } = self;
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" width=\"{width}\" \
             height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
             font-family=\"Helvetica, Arial, sans-serif\" font-size=\"16\">\n\
             <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n"
        );
        for shape in &self.shapes {
            match shape {
                Shape::Line { points, stroke } => write_line(&mut svg, points, *stroke),
                Shape::Disc { centre: (x, y), radius, colour } => {
                    let fill = hex(*colour);
                    push(
                        &mut svg,
                        format_args!(
                            "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius}\" fill=\"{fill}\"/>\n"
                        ),
                    );
                }
                Shape::Block { area: Area { x, y, width, height }, colour } => {
                    let fill = hex(*colour);
                    push(
                        &mut svg,
                        format_args!(
                            "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" \
                             fill=\"{fill}\"/>\n"
                        ),
                    );
                }
                Shape::Label(label) => label.write_svg(&mut svg),
            }
        }
        svg.push_str("</svg>\n");
        svg
    }
}

impl Label {
    fn paint(&self, canvas: &mut Canvas) {
        let length = text_width(&self.text) as f32;
        let before = match self.anchor {
            Anchor::Start => 0.0,
            Anchor::Middle => length / 2.0,
            Anchor::End => length,
        };
        let above = LINE_HEIGHT as f32 / 2.0;
        let (x, y) = match self.direction {
            Direction::Rightward => (self.at.0 - before, self.at.1 - above),
            Direction::Upward => (self.at.0 - above, self.at.1 + before),
        };
        let at = (x.round() as i32, y.round() as i32);
        canvas.text(at, &self.text, self.colour, self.direction);
        if self.bold {
            canvas.text((at.0 + 1, at.1), &self.text, self.colour, self.direction);
        }
    }

    fn write_svg(&self, svg: &mut String) {
        let (x, y) = self.at;
        let anchor = match self.anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let turn = match self.direction {
            Direction::Rightward => String::new(),
            Direction::Upward => format!(" transform=\"rotate(-90 {x:.1} {y:.1})\""),
        };
        let weight = if self.bold { " font-weight=\"bold\"" } else { "" };
        // A third of the font size brings the middle of the letters to `y`.
        let (fill, text) = (hex(self.colour), escape(&self.text));
        push(
            svg,
            format_args!(
                "<text x=\"{x:.1}\" y=\"{y:.1}\" dy=\".35em\" text-anchor=\"{anchor}\"{weight} \
             fill=\"{fill}\"{turn}>{text}</text>\n"
            ),
        );
    }
}

fn write_line(svg: &mut String, points: &[(f32, f32)], stroke: Stroke) {
    svg.push_str("<polyline points=\"");
    for (i, (x, y)) in points.iter().enumerate() {
        let space = if i == 0 { "" } else { " " };
        push(svg, format_args!("{space}{x:.1},{y:.1}"));
    }
    let (colour, width) = (hex(stroke.colour), stroke.width);
    push(
        svg,
        format_args!(
            "\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"{width}\" \
         stroke-linecap=\"round\" stroke-linejoin=\"round\""
        ),
    );
    if !stroke.dashes.is_empty() {
        let dashes = stroke.dashes.iter().map(f32::to_string).collect::<Vec<_>>().join(" ");
        push(svg, format_args!(" stroke-dasharray=\"{dashes}\""));
    }
    svg.push_str("/>\n");
}

fn push(svg: &mut String, text: std::fmt::Arguments<'_>) {
    svg.write_fmt(text).expect("a string takes any text");
}

fn hex(colour: Rgb<u8>) -> String {
    let [red, green, blue] = colour.0;
    format!("#{red:02x}{green:02x}{blue:02x}")
}

/// The text as XML shows it; characters XML forbids become spaces.
pub(in crate::report) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\u{fffe}' | '\u{ffff}' => escaped.push(' '),
            _ if letter.is_control() => escaped.push(' '),
            _ => escaped.push(letter),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_in_text_is_escaped_and_control_characters_are_dropped() {
        assert_eq!(
            escape("a<b> & \"c\"\u{0}\u{1b}\u{ffff}é"),
            "a&lt;b&gt; &amp; &quot;c&quot;   é"
        );
    }
}
