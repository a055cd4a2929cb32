//! Curves: training losses, errors, precision against recall.
//!
//! A [`Chart`] is data, of which `draw` makes SVG.
//! Numbers that cannot be drawn (NaN, infinite) leave a gap, a point between two gaps is a dot,
//! and a chart without data shows its axes.

mod axis;
mod draw;
mod plot;

pub(super) use self::draw::grid;
use super::svg::{Paint, Svg};

/// Lengths of ink and gap, with round ends; told apart without colour.
const DASHES: [&str; 4] = ["", "7 5", "1 5", "9 5 1 5"];

/// How a curve is drawn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Style {
    paint: Paint,
    dashes: &'static str,
    width: f32,
}

/// One curve.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Series {
    pub(super) name: String,
    pub(super) style: Style,
    /// `(x, y)` in drawing order; a point that is not finite leaves a gap.
    pub(super) points: Vec<(f64, f64)>,
}

/// Curves over common axes.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Chart {
    /// Above the data; left out if empty.
    pub(super) title: String,
    /// Below the horizontal axis; left out if empty.
    pub(super) x_label: String,
    /// Beside the vertical axis; left out if empty.
    pub(super) y_label: String,
    /// The curves, in the legend's order.
    pub(super) series: Vec<Series>,
    /// Vertical lines at remarkable places, such as the best epoch, with their names in the legend.
    pub(super) marks: Vec<(String, f64)>,
    /// What the horizontal axis shows; by default, all data.
    pub(super) x_range: Option<(f64, f64)>,
    /// What the vertical axis shows; by default, all data, rounded to ticks.
    pub(super) y_range: Option<(f64, f64)>,
}

impl Style {
    /// The style of the `index`-th curve: the first 28 all differ.
    pub(super) fn nth(index: usize) -> Self {
        let paint = Paint::Curve(index % Paint::CURVES);
        Self { paint, dashes: DASHES[index % DASHES.len()], width: 2.0 }
    }

    /// What curves are held against: chance, a threshold.
    pub(super) const REFERENCE: Self = Self { paint: Paint::Soft, dashes: "2 4", width: 1.5 };
}

impl Chart {
    pub(super) fn new(title: &str, x_label: &str, y_label: &str) -> Self {
        let [title, x_label, y_label] = [title, x_label, y_label].map(str::to_owned);
        Self { title, x_label, y_label, ..Self::default() }
    }

    /// Adds a curve in the next free style.
    pub(super) fn add(&mut self, name: impl Into<String>, points: Vec<(f64, f64)>) {
        let curves = self.series.iter().filter(|series| series.style != Style::REFERENCE);
        let style = Style::nth(curves.count());
        self.series.push(Series { name: name.into(), style, points });
    }

    /// Adds a thin grey line that curves are held against, such as chance.
    pub(super) fn reference(&mut self, name: impl Into<String>, points: Vec<(f64, f64)>) {
        self.series.push(Series { name: name.into(), style: Style::REFERENCE, points });
    }

    /// Adds a grey vertical line.
    pub(super) fn mark(&mut self, name: impl Into<String>, x: f64) {
        self.marks.push((name.into(), x));
    }

    /// The chart, so many pixels wide and its data so many high.
    pub(super) fn draw(&self, size: (f32, f32)) -> Svg {
        grid(1, std::slice::from_ref(self), size)
    }
}

#[cfg(test)]
mod tests;
