//! Where the parts of a chart go: title and legend above the data, labels of the axes around.

use super::{
    Chart, Style,
    axis::{Axis, AxisOptions, drawable},
    plot::{Area, Plot},
};
use crate::report::svg::{Anchor, LINE_HEIGHT, Paint, Svg, TextStyle, fit_text, text_width};

/// Distance between neighbouring things, in pixels.
const GAP: f32 = 8.0;
/// Length of the sample of line before a name in the legend.
const SAMPLE: f32 = 24.0;
/// Pixels between ticks, at least: across for horizontal labels, down for stacked ones.
const TICK_SPACING: (f32, f32) = (60.0, 40.0);

/// What stands around the data; charts in a grid share the most, so they line up.
#[derive(Debug, Clone, Copy, Default)]
struct Margins {
    left: f32,
    top: f32,
    bottom: f32,
}

impl Margins {
    /// Half of the last label along the axis hangs over the data.
    const RIGHT: f32 = 2.0 * GAP;

    fn of(chart: &Chart, width: f32, data_height: f32) -> Self {
        let ticks = y_axis(chart, data_height).ticks;
        let longest = ticks.iter().map(|tick| text_width(&tick.label)).fold(0.0, f32::max);
        let line = |text: &String| if text.is_empty() { 0.0 } else { LINE_HEIGHT };
        let legend = legend(chart, width).last().map_or(0.0, |last| last.y + LINE_HEIGHT);
        Self {
            left: GAP + line(&chart.y_label) + longest + GAP,
            top: GAP + line(&chart.title) + legend + GAP,
            bottom: GAP / 2.0 + LINE_HEIGHT + line(&chart.x_label) + GAP,
        }
    }

    fn most(self, other: Self) -> Self {
        Self {
            left: self.left.max(other.left),
            top: self.top.max(other.top),
            bottom: self.bottom.max(other.bottom),
        }
    }
}

/// Charts of equal size in rows of `columns`; their axes line up.
pub(in crate::report) fn grid(
    columns: usize,
    charts: &[Chart],
    (width, data_height): (f32, f32),
) -> Svg {
    let (width, data_height) = (width.max(60.0), data_height.max(20.0));
    let columns = columns.clamp(1, charts.len().max(1));
    let rows = charts.len().div_ceil(columns);
    let margins = charts.iter().map(|chart| Margins::of(chart, width, data_height));
    let margins = margins.fold(Margins::default(), Margins::most);
    let height = margins.top + data_height + margins.bottom;
    let mut svg = Svg::new(columns as f32 * width, rows as f32 * height);
    for (index, chart) in charts.iter().enumerate() {
        let corner = ((index % columns) as f32 * width, (index / columns) as f32 * height);
        let area = Area {
            x: (corner.0 + margins.left).floor() + 0.5,
            y: (corner.1 + margins.top).floor() + 0.5,
            width: (width - margins.left - Margins::RIGHT).max(20.0).floor(),
            height: data_height.floor(),
        };
        let plot = Plot { area, x: x_axis(chart, area.width), y: y_axis(chart, area.height) };
        plot.grid(&mut svg);
        chart.marks.iter().for_each(|(_, x)| plot.mark(*x, &mut svg));
        chart.series.iter().for_each(|series| plot.series(series, &mut svg));
        titles(chart, corner, width, area, &mut svg);
        for entry in legend(chart, width) {
            let titled = if chart.title.is_empty() { 0.0 } else { LINE_HEIGHT };
            let top = corner.1 + GAP + titled;
            entry.draw((corner.0, top), &mut svg);
        }
    }
    svg
}

fn y_axis(chart: &Chart, height: f32) -> Axis {
    let values = chart.series.iter().flat_map(|series| &series.points).map(|point| point.1);
    let intervals = ((height / TICK_SPACING.1) as u32).clamp(4, 10);
    Axis::over(values, AxisOptions { range: chart.y_range, intervals, rounded: true, whole: false })
}

fn x_axis(chart: &Chart, width: f32) -> Axis {
    let values = || {
        let points = chart.series.iter().flat_map(|series| &series.points).map(|point| point.0);
        points.chain(chart.marks.iter().map(|(_, x)| *x)).filter(|x| drawable(*x))
    };
    let whole = chart.x_range.is_none() && values().all(|x| x.fract() == 0.0);
    let intervals = ((width / TICK_SPACING.0) as u32).clamp(4, 10);
    Axis::over(values(), AxisOptions { range: chart.x_range, intervals, rounded: false, whole })
}

/// The names of the chart and of its axes, where they are given.
fn titles(chart: &Chart, corner: (f32, f32), width: f32, area: Area, svg: &mut Svg) {
    let title = TextStyle { bold: true, ..TextStyle::default() };
    let axis = TextStyle { paint: Paint::Soft, anchor: Anchor::Middle, ..TextStyle::default() };
    let centre = (area.x + area.width / 2.0, area.y + area.height / 2.0);
    let above = (corner.0 + GAP, corner.1 + GAP + LINE_HEIGHT / 2.0);
    let below = (centre.0, area.y + area.height + GAP / 2.0 + 1.5 * LINE_HEIGHT);
    let beside = (corner.0 + GAP / 2.0 + LINE_HEIGHT / 2.0, centre.1);
    for (text, at, style, room) in [
        (&chart.title, above, title, width - 2.0 * GAP),
        (&chart.x_label, below, axis, area.width),
        (&chart.y_label, beside, TextStyle { upward: true, ..axis }, area.height),
    ] {
        if !text.is_empty() {
            svg.text(at, &fit_text(text, room), style);
        }
    }
}

/// A name in the legend and where it goes, from the legend's top left corner.
struct Entry<'a> {
    x: f32,
    y: f32,
    name: &'a str,
    style: Style,
    /// Names are cut to this length.
    room: f32,
}

impl Entry<'_> {
    fn draw(&self, (left, top): (f32, f32), svg: &mut Svg) {
        let (x, y) = (left + self.x, top + self.y + LINE_HEIGHT / 2.0);
        let Style { paint, dashes, width } = self.style;
        svg.line(&[(x, y), (x + SAMPLE, y)], paint, width, dashes);
        let at = (x + SAMPLE + GAP, y);
        svg.text(at, &fit_text(self.name, self.room), TextStyle::default());
    }
}

/// The names of curves and marks, in as many lines as they need.
fn legend(chart: &Chart, width: f32) -> Vec<Entry<'_>> {
    let series = chart.series.iter().map(|series| (series.name.as_str(), series.style));
    let marks = chart.marks.iter().map(|(name, _)| (name.as_str(), Style::REFERENCE));
    let named = series.chain(marks).filter(|(name, _)| !name.is_empty());
    let room = width - SAMPLE - 3.0 * GAP;
    let (mut x, mut y) = (GAP, 0.0);
    let mut entries = Vec::new();
    for (name, style) in named {
        let needed = SAMPLE + GAP + text_width(name).min(room);
        if x > GAP && x + needed > width - GAP {
            (x, y) = (GAP, y + LINE_HEIGHT);
        }
        entries.push(Entry { x, y, name, style, room });
        x += needed + 1.5 * GAP;
    }
    entries
}
