//! Where the parts of a chart go: the data in the middle, titles and legend around them.

use super::{
    Chart, Style,
    axis::{Axis, Wish, drawable},
    plot::Plot,
    scene::{Anchor, Label, Shape},
};
use crate::report::canvas::{Direction, INK, LINE_HEIGHT, fit_text, text_width};

/// Distance between neighbouring things, in pixels.
const GAP: f32 = 10.0;
const LINE: f32 = LINE_HEIGHT as f32;
/// Distance between two names in the legend, from middle to middle.
const LEGEND_LINE: f32 = LINE + 4.0;
/// Length of the sample of line before a name in the legend.
const SWATCH: f32 = 36.0;
/// Pixels between ticks, at least: across for horizontal labels, down for stacked ones.
const TICK_SPACING: (f32, f32) = (90.0, 45.0);

/// The part of a page one chart may use, in pixels.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cell {
    pub(super) x: f32,
    pub(super) y: f32,
    pub(super) width: f32,
    pub(super) height: f32,
}

/// What the labels beside the data need; charts in a grid share the widest, so they line up.
#[derive(Debug, Clone, Copy)]
pub(super) struct Margins {
    left: f32,
    right: f32,
}

impl Margins {
    pub(super) fn widest(self, other: Self) -> Self {
        Self { left: self.left.max(other.left), right: self.right.max(other.right) }
    }
}

/// Room beside the data of a chart in a cell of this size.
pub(super) fn margins(chart: &Chart, cell: Cell) -> Margins {
    let (top, bottom) = vertical_margins(chart);
    let ticks = y_axis(chart, cell.height - top - bottom).ticks;
    let longest = ticks.iter().map(|tick| text_width(&tick.label)).max().unwrap_or(0) as f32;
    let title = if chart.y_label.is_empty() { 0.0 } else { LINE + GAP };
    let names = legend(chart).map(|(name, _)| text_width(name).min(name_width(cell))).max();
    // Without a legend, half of the last label along the axis still hangs over.
    let right = names.map_or(4.0 * GAP, |width| SWATCH + 4.0 * GAP + width as f32);
    Margins { left: GAP + title + longest + GAP, right }
}

/// Names in the legend are cut to this length, so that they leave room for the data.
fn name_width(cell: Cell) -> u32 {
    (cell.width / 4.0) as u32
}

/// Room above and below the data.
fn vertical_margins(chart: &Chart) -> (f32, f32) {
    let title = if chart.title.is_empty() { 0.0 } else { LINE + GAP };
    let label = if chart.x_label.is_empty() { 0.0 } else { LINE + GAP / 2.0 };
    (1.5 * GAP + title, GAP / 2.0 + LINE + label + GAP)
}

fn y_axis(chart: &Chart, height: f32) -> Axis {
    let values = chart.series.iter().flat_map(|series| &series.points).map(|point| point.1);
    let intervals = ((height / TICK_SPACING.1) as u32).clamp(4, 10);
    Axis::over(values, Wish { range: chart.y_range, intervals, rounded: true, whole: false })
}

fn x_axis(chart: &Chart, width: f32) -> Axis {
    let values = || {
        let points = chart.series.iter().flat_map(|series| &series.points).map(|point| point.0);
        points.chain(chart.marks.iter().map(|mark| mark.x)).filter(|x| drawable(*x))
    };
    let whole = chart.x_range.is_none() && values().all(|x| x.fract() == 0.0);
    let intervals = ((width / TICK_SPACING.0) as u32).clamp(4, 10);
    Axis::over(values(), Wish { range: chart.x_range, intervals, rounded: false, whole })
}

/// What the legend explains, in its order.
fn legend(chart: &Chart) -> impl Iterator<Item = (&str, Style)> {
    let series = chart.series.iter().map(|series| (series.name.as_str(), series.style));
    series.chain(chart.marks.iter().map(|mark| (mark.name.as_str(), mark.style)))
}

/// All shapes of a chart inside `cell`.
pub(super) fn arrange(chart: &Chart, cell: Cell, margins: Margins) -> Vec<Shape> {
    let (top, bottom) = vertical_margins(chart);
    // Half pixels keep the frame and the grid crisp.
    let area = Cell {
        x: (cell.x + margins.left).floor() + 0.5,
        y: (cell.y + top).floor() + 0.5,
        width: (cell.width - margins.left - margins.right).max(20.0).floor(),
        height: (cell.height - top - bottom).max(20.0).floor(),
    };
    let plot = Plot { area, x: x_axis(chart, area.width), y: y_axis(chart, area.height) };

    let mut shapes = plot.grid();
    shapes.extend(chart.marks.iter().filter_map(|mark| plot.mark(mark)));
    shapes.extend(chart.series.iter().flat_map(|series| plot.series(series)));
    shapes.extend(titles(chart, cell, area));
    shapes.extend(legend_shapes(chart, cell, area));
    shapes
}

/// The names of the chart and of its axes, where they are given.
fn titles(chart: &Chart, cell: Cell, area: Cell) -> Vec<Shape> {
    let centre = (area.x + area.width / 2.0, area.y + area.height / 2.0);
    // A title longer than the data are wide is centred on the page instead.
    let room = cell.width - 2.0 * GAP;
    let fits = text_width(&chart.title) as f32 <= area.width;
    let middle = if fits { centre.0 } else { cell.x + cell.width / 2.0 };
    let above = (middle, area.y - GAP / 2.0 - LINE / 2.0);
    let below = (centre.0, area.y + area.height + GAP + 1.5 * LINE);
    let beside = (cell.x + GAP + LINE / 2.0, centre.1);
    [
        (&chart.title, above, Direction::Rightward, room),
        (&chart.x_label, below, Direction::Rightward, area.width),
        (&chart.y_label, beside, Direction::Upward, cell.height),
    ]
    .into_iter()
    .filter(|(text, ..)| !text.is_empty())
    .map(|(text, at, direction, room)| {
        let text = fit_text(text, room as u32);
        let bold = at == above;
        Shape::Label(Label { at, text, colour: INK, anchor: Anchor::Middle, direction, bold })
    })
    .collect()
}

/// A sample of each line with its name, to the right of the data.
fn legend_shapes(chart: &Chart, cell: Cell, area: Cell) -> Vec<Shape> {
    let left = area.x + area.width + 2.0 * GAP;
    let entries = legend(chart).collect::<Vec<_>>();
    let rows = (area.height / LEGEND_LINE).max(1.0) as usize;
    // The last row is given up for a remark when there are too many names.
    let shown = if entries.len() > rows { rows - 1 } else { entries.len() };
    let at = |row: usize, x: f32| (left + x, area.y + LINE / 2.0 + row as f32 * LEGEND_LINE);
    let name = |row: usize, text: String| {
        let (anchor, direction) = (Anchor::Start, Direction::Rightward);
        let at = at(row, SWATCH + GAP);
        Shape::Label(Label { at, text, colour: INK, anchor, direction, bold: false })
    };

    let mut shapes = Vec::new();
    for (row, (text, style)) in entries[..shown].iter().enumerate() {
        shapes.push(Shape::Line {
            points: vec![at(row, 0.0), at(row, SWATCH)],
            stroke: style.stroke(),
        });
        shapes.push(name(row, fit_text(text, name_width(cell))));
    }
    if shown < entries.len() {
        shapes.push(name(shown, format!("+ {} more", entries.len() - shown)));
    }
    shapes
}
