//! The rectangle of the data: grid, tick labels and curves, cut at its border.

use super::{
    Series, Style,
    axis::{Axis, drawable},
};
use crate::report::svg::{Anchor, LINE_HEIGHT, Paint, Svg, TextStyle};

/// Radius of a point with no neighbour to be joined to.
const LONE_POINT: f32 = 3.5;
/// Radius of the points of a short series, of at most [`SHORT`] points.
const MARKED_POINT: f32 = 2.5;
const SHORT: usize = 30;
/// Points of a curve that are nearer to each other than this, in pixels, are drawn as one.
const NEAR: f32 = 0.7;

/// Shares of the two axes; the data's rectangle is `[0, 1] × [0, 1]`.
type Point = (f64, f64);

/// A rectangle of the drawing, in pixels.
#[derive(Debug, Clone, Copy)]
pub(super) struct Area {
    pub(super) x: f32,
    pub(super) y: f32,
    pub(super) width: f32,
    pub(super) height: f32,
}

/// Two axes and where they lie.
pub(super) struct Plot {
    pub(super) area: Area,
    pub(super) x: Axis,
    pub(super) y: Axis,
}

impl Plot {
    /// Grid lines with the labels of their ticks, and the frame around them.
    pub(super) fn grid(&self, svg: &mut Svg) {
        let label = |anchor| TextStyle { paint: Paint::Soft, anchor, ..TextStyle::default() };
        let bottom = self.area.y + self.area.height;
        for tick in &self.x.ticks {
            let share = self.x.share(tick.value).clamp(0.0, 1.0);
            self.grid_line([(share, 0.0), (share, 1.0)], svg);
            let at = (self.pixel((share, 0.0)).0, bottom + 4.0 + LINE_HEIGHT / 2.0);
            svg.text(at, &tick.label, label(Anchor::Middle));
        }
        for tick in &self.y.ticks {
            let share = self.y.share(tick.value).clamp(0.0, 1.0);
            self.grid_line([(0.0, share), (1.0, share)], svg);
            let at = (self.area.x - 7.0, self.pixel((0.0, share)).1);
            svg.text(at, &tick.label, label(Anchor::End));
        }
        let axes = [(0.0, 1.0), (0.0, 0.0), (1.0, 0.0)].map(|place| self.pixel(place));
        svg.line(&axes, Paint::Soft, 1.0, "");
    }

    /// One-pixel lines are kept on half pixels, where they are crisp.
    fn grid_line(&self, places: [Point; 2], svg: &mut Svg) {
        let crisp = |(x, y): (f32, f32)| (x.floor() + 0.5, y.floor() + 0.5);
        svg.line(&places.map(|place| crisp(self.pixel(place))), Paint::Line, 1.0, "");
    }

    /// A vertical line at a remarkable place, if that is in sight.
    pub(super) fn mark(&self, x: f64, svg: &mut Svg) {
        let share = self.x.share(x);
        if drawable(x) && inside((share, 0.0)) {
            let Style { paint, dashes, width } = Style::REFERENCE;
            let ends = [(share, 0.0), (share, 1.0)].map(|place| self.pixel(place));
            svg.line(&ends, paint, width, dashes);
        }
    }

    /// A curve with a gap wherever a point is missing; a point alone in a gap is a dot.
    pub(super) fn series(&self, series: &Series, svg: &mut Svg) {
        let Style { paint, dashes, width } = series.style;
        let missing = |point: &(f64, f64)| !drawable(point.0) || !drawable(point.1);
        let short = series.points.iter().filter(|point| !missing(point)).count() <= SHORT
            && series.style != Style::REFERENCE;
        for run in series.points.split(missing) {
            let run = run.iter().map(|point| self.place(*point)).collect::<Vec<_>>();
            for piece in pieces(&run) {
                let pixels: Vec<_> = piece.into_iter().map(|place| self.pixel(place)).collect();
                svg.line(&thinned(&pixels), paint, width, dashes);
            }
            if run.len() == 1 || short {
                let radius = if run.len() == 1 { LONE_POINT } else { MARKED_POINT };
                let dots = run.into_iter().filter(|place| inside(*place));
                dots.for_each(|place| svg.disc(self.pixel(place), radius, paint));
            }
        }
    }

    fn place(&self, (x, y): (f64, f64)) -> Point {
        // Far beyond the border all places look alike; the limit keeps clipping exact.
        let limited = |share: f64| share.clamp(-1e6, 1e6);
        (limited(self.x.share(x)), limited(self.y.share(y)))
    }

    fn pixel(&self, (x, y): Point) -> (f32, f32) {
        let Area { x: left, y: top, width, height } = self.area;
        (left + x as f32 * width, top + (1.0 - y as f32) * height)
    }
}

/// A curve without the points that nobody could tell from the one before; its ends stay.
fn thinned(points: &[(f32, f32)]) -> Vec<(f32, f32)> {
    let mut kept: Vec<(f32, f32)> = Vec::new();
    for (index, point) in points.iter().enumerate() {
        let near =
            |last: &(f32, f32)| (last.0 - point.0).abs() < NEAR && (last.1 - point.1).abs() < NEAR;
        if index + 1 == points.len() || !kept.last().is_some_and(near) {
            kept.push(*point);
        }
    }
    kept
}

/// Whether a place is within the data's rectangle, give or take a rounding error.
fn inside((x, y): Point) -> bool {
    let range = -1e-6..=1.0 + 1e-6;
    range.contains(&x) && range.contains(&y)
}

/// The parts of a curve within the data's rectangle.
fn pieces(run: &[Point]) -> Vec<Vec<Point>> {
    let mut pieces: Vec<Vec<Point>> = Vec::new();
    for ends in run.windows(2) {
        let Some((from, to)) = clip(ends[0], ends[1]) else { continue };
        match pieces.last_mut() {
            Some(piece) if piece.last() == Some(&from) => piece.push(to),
            _ => pieces.push(vec![from, to]),
        }
    }
    pieces
}

/// The part of a segment within the data's rectangle (Liang and Barsky's algorithm).
fn clip(from: Point, to: Point) -> Option<(Point, Point)> {
    let (dx, dy) = (to.0 - from.0, to.1 - from.1);
    let (mut enter, mut leave) = (0.0_f64, 1.0_f64);
    let borders = [(-dx, from.0), (dx, 1.0 - from.0), (-dy, from.1), (dy, 1.0 - from.1)];
    for (towards, room) in borders {
        if towards > 0.0 {
            leave = leave.min(room / towards);
        } else if towards < 0.0 {
            enter = enter.max(room / towards);
        } else if room < 0.0 {
            return None;
        }
    }
    let at = |share: f64| (from.0 + share * dx, from.1 + share * dy);
    // An end inside stays as it is, so that the next segment starts where this one stops.
    let end = if leave == 1.0 { to } else { at(leave) };
    (enter <= leave).then(|| (at(enter), end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn curves_are_cut_where_they_leave_the_rectangle() {
        assert_eq!(clip((0.5, 0.5), (1.5, 0.5)), Some(((0.5, 0.5), (1.0, 0.5))));
        assert_eq!(clip((-0.5, 0.0), (0.5, 1.0)), Some(((0.0, 0.5), (0.5, 1.0))));
        assert_eq!(clip((-0.5, 0.8), (0.2, 1.5)), None);
        assert_eq!(clip((2.0, 0.5), (3.0, 0.5)), None);
    }

    #[test]
    fn points_that_nobody_can_tell_apart_are_drawn_once_and_the_ends_stay() {
        let dense: Vec<_> = (0..=100).map(|i| (i as f32 / 10.0, 0.0)).collect();
        let kept = thinned(&dense);
        assert_eq!((kept[0], kept[kept.len() - 1]), ((0.0, 0.0), (10.0, 0.0)));
        assert!((10..20).contains(&kept.len()), "{}", kept.len());
        assert_eq!(thinned(&dense[..1]), dense[..1]);
        let steep = [(0.0, 0.0), (0.1, 5.0), (0.2, 0.0)];
        assert_eq!(thinned(&steep), steep);
    }

    #[test]
    fn a_curve_that_leaves_and_returns_is_two_pieces() {
        let run = [(0.0, 0.0), (0.25, 0.5), (0.5, 2.0), (0.75, 0.5), (1.0, 0.0)];
        let pieces = pieces(&run);
        assert_eq!(pieces.len(), 2);
        assert_eq!(pieces[0][..2], run[..2]);
        assert_eq!(pieces[0].len(), 3);
    }
}
