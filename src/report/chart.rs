//! Curves: training losses, errors, precision against recall.
//!
//! A [`Chart`] is data; a single layout turns it into shapes, and the shapes
//! into PNG or SVG, so both show the same ticks, colours and legend. Numbers
//! that cannot be drawn (NaN, infinite) leave a gap, a point between two gaps
//! is a dot, and a chart without data shows its axes.
//!
//! [`Chart`]: crate::report::chart::Chart

mod axis;
mod layout;
mod plot;
pub(super) mod scene;

use image::Rgb;

use super::canvas::{Stroke, rgb};
use layout::{Cell, Margins};
use scene::Scene;

/// Colours that remain distinct to the colour-blind and on white (Okabe and Ito, less yellow).
pub const PALETTE: [Rgb<u8>; 7] = [
    rgb(0x00_72_b2), // blue
    rgb(0xd5_5e_00), // vermilion
    rgb(0x00_9e_73), // bluish green
    rgb(0xcc_79_a7), // reddish purple
    rgb(0xe6_9f_00), // orange
    rgb(0x56_b4_e9), // sky blue
    rgb(0x00_00_00), // black
];

/// Ink and gap in pixels, with round ends; told apart without colour.
const DASHES: [&[f32]; 4] = [&[], &[9.0, 7.0], &[1.0, 6.0], &[12.0, 6.0, 1.0, 6.0]];

/// How a curve looks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Style {
    /// Its colour.
    pub colour: Rgb<u8>,
    /// Lengths of ink and gap in turn, in pixels; empty for an unbroken line.
    pub dashes: &'static [f32],
}

/// One curve.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// Its name in the legend.
    pub name: String,
    /// Its look.
    pub style: Style,
    /// `(x, y)` in drawing order; a point that is not finite leaves a gap.
    pub points: Vec<(f64, f64)>,
}

/// A vertical line at a remarkable place, such as the best epoch.
#[derive(Debug, Clone, PartialEq)]
pub struct Mark {
    /// Its name in the legend.
    pub name: String,
    /// Its look.
    pub style: Style,
    /// Where it stands.
    pub x: f64,
}

/// Curves over common axes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Chart {
    /// Above the data; left out if empty.
    pub title: String,
    /// Below the horizontal axis; left out if empty.
    pub x_label: String,
    /// Beside the vertical axis; left out if empty.
    pub y_label: String,
    /// The curves, in the legend's order.
    pub series: Vec<Series>,
    /// Vertical lines, named in the legend after the curves.
    pub marks: Vec<Mark>,
    /// What the horizontal axis shows; by default, all data.
    pub x_range: Option<(f64, f64)>,
    /// What the vertical axis shows; by default, all data, rounded to ticks.
    pub y_range: Option<(f64, f64)>,
}

/// Charts on one page, side by side in rows of `columns`; their axes line up.
#[derive(Debug, Clone, PartialEq)]
pub struct Grid {
    /// Number of charts in a row; 1 stacks them.
    pub columns: usize,
    /// The charts, row by row.
    pub charts: Vec<Chart>,
}

impl Style {
    /// The look of the `index`-th curve: the first 28 all differ.
    pub fn nth(index: usize) -> Self {
        Self { colour: PALETTE[index % PALETTE.len()], dashes: DASHES[index % DASHES.len()] }
    }

    fn stroke(self) -> Stroke {
        Stroke { colour: self.colour, width: 2.0, dashes: self.dashes }
    }
}

impl Chart {
    /// An empty chart with its titles.
    pub fn new(
        title: impl Into<String>,
        x_label: impl Into<String>,
        y_label: impl Into<String>,
    ) -> Self {
        let (title, x_label, y_label) = (title.into(), x_label.into(), y_label.into());
        Self { title, x_label, y_label, ..Self::default() }
    }

    /// Adds a curve in the next free style.
    pub fn add(&mut self, name: impl Into<String>, points: Vec<(f64, f64)>) {
        let style = Style::nth(self.series.len());
        self.series.push(Series { name: name.into(), style, points });
    }

    /// Adds a grey vertical line.
    pub fn mark(&mut self, name: impl Into<String>, x: f64) {
        let dashes = DASHES[(self.marks.len() + 1) % DASHES.len()];
        let style = Style { colour: rgb(0x70_70_70), dashes };
        self.marks.push(Mark { name: name.into(), style, x });
    }

    /// The chart as the bytes of a PNG file of this size in pixels.
    pub fn to_png(&self, width: u32, height: u32) -> Vec<u8> {
        scene(1, std::slice::from_ref(self), width, height).to_canvas().to_png()
    }

    /// The chart as an SVG document of this size in pixels.
    pub fn to_svg(&self, width: u32, height: u32) -> String {
        scene(1, std::slice::from_ref(self), width, height).to_svg()
    }
}

impl Grid {
    /// The charts as the bytes of a PNG file; the size is the whole page's, in pixels.
    pub fn to_png(&self, width: u32, height: u32) -> Vec<u8> {
        scene(self.columns, &self.charts, width, height).to_canvas().to_png()
    }

    /// The charts as an SVG document; the size is the whole page's, in pixels.
    pub fn to_svg(&self, width: u32, height: u32) -> String {
        scene(self.columns, &self.charts, width, height).to_svg()
    }
}

/// The page, cut into cells of equal size.
fn scene(columns: usize, charts: &[Chart], width: u32, height: u32) -> Scene {
    let columns = columns.clamp(1, charts.len().max(1));
    let rows = charts.len().div_ceil(columns).max(1);
    let size = (width as f32 / columns as f32, height as f32 / rows as f32);
    let cell = |index: usize| Cell {
        x: (index % columns) as f32 * size.0,
        y: (index / columns) as f32 * size.1,
        width: size.0,
        height: size.1,
    };
    let margins = charts.iter().map(|chart| layout::margins(chart, cell(0)));
    let Some(margins) = margins.reduce(Margins::widest) else {
        return Scene { width, height, shapes: Vec::new() };
    };
    let charts = charts.iter().enumerate();
    let shapes = charts.flat_map(|(i, chart)| layout::arrange(chart, cell(i), margins)).collect();
    Scene { width, height, shapes }
}

#[cfg(test)]
mod tests;
