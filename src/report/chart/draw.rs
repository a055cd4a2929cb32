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

/// Margin on the right, into which half of the last label along the axis reaches.
const RIGHT: f32 = 2.0 * GAP;

/// Margins of the data on the left, at the top and at the bottom.
fn margins(chart: &Chart, width: f32, data_height: f32) -> [f32; 3] {
    let ticks = y_axis(chart, data_height).ticks;
    let longest = ticks.iter().map(|tick| text_width(&tick.label)).fold(0.0, f32::max);
    let legend = legend(chart, width).last().map_or(0.0, |last| last.y + LINE_HEIGHT);
    [
        GAP + line(&chart.y_label) + longest + GAP,
        GAP + line(&chart.title) + legend + GAP,
        GAP / 2.0 + LINE_HEIGHT + line(&chart.x_label) + GAP,
    ]
}

/// Height of the line that a title needs.
fn line(title: &str) -> f32 {
    if title.is_empty() { 0.0 } else { LINE_HEIGHT }
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
    let margins = charts.iter().map(|chart| margins(chart, width, data_height));
    let widest = |a: [f32; 3], b: [f32; 3]| std::array::from_fn(|side| a[side].max(b[side]));
    let [left, top, bottom] = margins.fold([0.0; 3], widest);
    let height = top + data_height + bottom;
    let mut svg = Svg::new(columns as f32 * width, rows as f32 * height);
    for (index, chart) in charts.iter().enumerate() {
        let corner = ((index % columns) as f32 * width, (index / columns) as f32 * height);
        let area = Area {
            x: (corner.0 + left).floor() + 0.5,
            y: (corner.1 + top).floor() + 0.5,
            width: (width - left - RIGHT).max(20.0).floor(),
            height: data_height.floor(),
        };
        let plot = Plot { area, x: x_axis(chart, area.width), y: y_axis(chart, area.height) };
        plot.grid(&mut svg);
        chart.marks.iter().for_each(|(_, x)| plot.mark(*x, &mut svg));
        chart.series.iter().for_each(|series| plot.series(series, &mut svg));
        titles(chart, corner, width, area, &mut svg);
        for Entry { x, y, name, style, room } in legend(chart, width) {
            let y = corner.1 + GAP + line(&chart.title) + y + LINE_HEIGHT / 2.0;
            let (x, Style { paint, dashes, width }) = (corner.0 + x, style);
            svg.line(&[(x, y), (x + SAMPLE, y)], paint, width, dashes);
            svg.text((x + SAMPLE + GAP, y), &fit_text(name, room), TextStyle::default());
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
