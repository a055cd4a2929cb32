//! Drawings as SVG: text stays text, and colours follow the page they stand on.
//!
//! Every shape has its colour twice: as an attribute, for programs that know no style sheets,
//! and as a class, by which `style/chart.css` gives it the colour of a light or a dark page. This is
//! what crates that draw charts cannot do, and why none is used.

use std::fmt::{Arguments, Write as _};

use unicode_width::UnicodeWidthChar as _;

use super::base64;

/// The colours of pages and drawings, as variables of a style sheet.
pub(super) const COLOURS: &str = include_str!("style/colours.css");
/// Which class has which colour.
pub(super) const CHART_STYLE: &str = include_str!("style/chart.css");
/// One font for pages and drawings.
const FONT: &str = "system-ui, -apple-system, 'Segoe UI', Roboto, Helvetica, Arial, sans-serif";
/// Size of text in drawings, in pixels.
pub(super) const FONT_SIZE: f32 = 13.0;
/// Height of a line of text.
pub(super) const LINE_HEIGHT: f32 = 18.0;

/// What a shape is, which decides its colour; curves are numbered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Paint {
    #[default]
    Ink,
    Soft,
    Line,
    Card,
    Curve(usize),
}

/// Colours that remain distinct to the colour-blind and on white (after Okabe and Ito).
const CURVES: [(&str, &str); 7] = [
    ("c0", "#0072b2"),
    ("c1", "#d55e00"),
    ("c2", "#00805d"),
    ("c3", "#b3548b"),
    ("c4", "#b47600"),
    ("c5", "#2a8fce"),
    ("c6", "#1d2126"),
];

impl Paint {
    /// Curves of this many numbers differ in colour.
    pub(super) const CURVES: usize = CURVES.len();

    /// Its class, and its colour on white.
    fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Ink => ("ink", "#1d2126"),
            Self::Soft => ("soft", "#5b6570"),
            Self::Line => ("line", "#dde1e5"),
            Self::Card => ("card", "#ffffff"),
            Self::Curve(index) => CURVES[index % CURVES.len()],
        }
    }
}

/// Which point of a text, along its reading direction, is put in place.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Anchor {
    #[default]
    Start,
    Middle,
    End,
}

/// How a text is drawn.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct TextStyle {
    pub(super) paint: Paint,
    pub(super) anchor: Anchor,
    /// Read from bottom to top, as the title of a vertical axis.
    pub(super) upward: bool,
    pub(super) bold: bool,
}

/// A drawing; coordinates are in pixels from the top left corner.
#[derive(Debug, Clone, Default)]
pub(super) struct Svg {
    pub(super) width: f32,
    pub(super) height: f32,
    body: String,
}

impl Svg {
    /// An empty drawing of that size.
    pub(super) fn new(width: f32, height: f32) -> Self {
        Self { width, height, body: String::new() }
    }

    /// The drawing as a file of its own.
    pub(super) fn document(&self) -> String {
        let background = "<rect class=\"card\" width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n";
        // Programs that know style sheets and no variables pass over what is in `@supports`.
        let style = format!("{COLOURS}@supports (color: var(--ink)) {{\n{CHART_STYLE}}}\n");
        self.tagged(&format!("<style>\n{style}</style>\n{background}"))
    }

    /// The drawing as a part of a page that has [`COLOURS`] and [`CHART_STYLE`].
    pub(super) fn inline(&self) -> String {
        self.tagged("")
    }

    fn tagged(&self, before: &str) -> String {
        let Self { width, height, body } = self;
        let (width, height) = (width.ceil(), height.ceil());
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"chart\" role=\"img\" \
             width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
             font-family=\"{FONT}\" font-size=\"{FONT_SIZE}\">\n{before}{body}</svg>\n"
        )
    }

    /// A line through `points`; `dashes` are lengths of ink and gap in turn, none for an
    /// unbroken line.
    pub(super) fn line(&mut self, points: &[(f32, f32)], paint: Paint, width: f32, dashes: &str) {
        let (class, colour) = paint.names();
        let points: Vec<_> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let dashes = match dashes {
            "" => String::new(),
            dashes => format!(" stroke-dasharray=\"{dashes}\""),
        };
        self.push(format_args!(
            "<polyline points=\"{}\" class=\"{class}\" fill=\"none\" stroke=\"{colour}\" \
             stroke-width=\"{width}\" stroke-linecap=\"round\" stroke-linejoin=\"round\"{dashes}/>\n",
            points.join(" ")
        ));
    }

    /// A filled circle.
    pub(super) fn disc(&mut self, (x, y): (f32, f32), radius: f32, paint: Paint) {
        let (class, colour) = paint.names();
        self.push(format_args!(
            "<circle class=\"{class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius}\" fill=\"{colour}\"/>\n"
        ));
    }

    /// A filled rectangle that hides what is below by `opacity`.
    pub(super) fn rect(
        &mut self,
        (x, y): (f32, f32),
        (width, height): (f32, f32),
        paint: Paint,
        opacity: f32,
    ) {
        let (class, colour) = paint.names();
        self.push(format_args!(
            "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" \
             height=\"{height:.1}\" fill=\"{colour}\" fill-opacity=\"{opacity:.3}\"/>\n"
        ));
    }

    /// One line of text, centred across its reading direction on the point.
    pub(super) fn text(&mut self, (x, y): (f32, f32), text: &str, style: TextStyle) {
        let (class, colour) = style.paint.names();
        let anchor = match style.anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let turn = match style.upward {
            true => format!(" transform=\"rotate(-90 {x:.1} {y:.1})\""),
            false => String::new(),
        };
        let weight = if style.bold { " font-weight=\"600\"" } else { "" };
        // A third of the font size brings the middle of the letters to `y`.
        self.push(format_args!(
            "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" dy=\".35em\" \
             text-anchor=\"{anchor}\"{weight} fill=\"{colour}\"{turn}>{}</text>\n",
            escape(text)
        ));
    }

    /// One line of text that is markup already, such as coloured spans.
    pub(super) fn markup(&mut self, (x, y): (f32, f32), markup: &str) {
        let (class, colour) = Paint::Ink.names();
        self.push(format_args!(
            "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" dy=\".35em\" fill=\"{colour}\" \
             xml:space=\"preserve\">{markup}</text>\n"
        ));
    }

    /// A photograph, as the bytes of a JPEG file.
    pub(super) fn jpeg(&mut self, (x, y): (f32, f32), (width, height): (f32, f32), bytes: &[u8]) {
        self.push(format_args!(
            "<image x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" \
             href=\"{}\"/>\n",
            base64::image_url("jpeg", bytes)
        ));
    }

    fn push(&mut self, text: Arguments<'_>) {
        self.body.write_fmt(text).expect("a string takes any text");
    }
}

/// About how wide a letter is, in ems: rather too wide than too narrow, since fonts differ.
fn ems(letter: char) -> f32 {
    match letter {
        'i' | 'j' | 'l' | '.' | ',' | ':' | ';' | '\'' | '|' | '!' => 0.31,
        'f' | 'r' | 't' | ' ' | '(' | ')' | '[' | ']' | '-' | '/' => 0.42,
        'm' | 'w' | 'M' | 'W' | '%' | '@' => 0.95,
        'A'..='Z' => 0.72,
        _ if letter.width() == Some(2) => 1.05,
        _ => 0.61,
    }
}

/// About how wide a text is at [`FONT_SIZE`].
pub(super) fn text_width(text: &str) -> f32 {
    FONT_SIZE * text.chars().map(ems).sum::<f32>()
}

/// The text, with its end replaced by an ellipsis if it needs more than `width` pixels.
pub(super) fn fit_text(text: &str, width: f32) -> String {
    if text_width(text) <= width {
        return text.to_owned();
    }
    let mut taken = 0.0;
    let fits = |letter: &char| {
        taken += ems(*letter);
        FONT_SIZE * taken + FONT_SIZE <= width
    };
    text.chars().take_while(fits).chain(['…']).collect()
}

/// The text as XML shows it; characters XML forbids become spaces.
pub(super) fn escape(text: &str) -> String {
    let forbidden = |letter: char| letter.is_control() || "\u{fffe}\u{ffff}".contains(letter);
    let shown = text.replace(forbidden, " ").replace('&', "&amp;");
    shown.replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
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

    #[test]
    fn text_is_cut_to_the_room_it_has_and_wide_letters_count_as_wide() {
        assert_eq!(fit_text("short", 200.0), "short");
        let cut = fit_text("a name that is much too long", 80.0);
        assert!(cut.ends_with('…') && text_width(&cut) <= 80.0, "{cut}");
        assert!(text_width("病变") > 1.5 * text_width("ab"));
        assert_eq!(fit_text("anything", 0.0), "…");
    }

    #[test]
    fn every_class_of_a_drawing_has_a_colour_in_the_style_sheets() {
        let curves = (0..Paint::CURVES).map(Paint::Curve);
        for (class, colour) in
            [Paint::Soft, Paint::Line, Paint::Card].into_iter().chain(curves).map(Paint::names)
        {
            assert!(CHART_STYLE.contains(&format!("var(--{class})")), "{class}");
            assert!(COLOURS.contains(&format!("--{class}: {colour};")), "{class}");
        }
    }

    #[test]
    fn a_file_carries_its_style_and_a_part_of_a_page_does_not() {
        let mut drawing = Svg::new(10.0, 20.0);
        drawing.rect((0.0, 0.0), (5.0, 5.0), Paint::Curve(0), 1.0);
        assert!(drawing.document().contains("prefers-color-scheme: dark"));
        assert!(!drawing.inline().contains("<style"));
        assert!(drawing.inline().contains("viewBox=\"0 0 10 20\""));
    }
}
