//! The rectangle of the data: grid, tick labels and curves, cut at its border.

use super::{
    Mark, Series,
    axis::{Axis, drawable},
    layout::Cell,
    scene::{Anchor, Label, Shape},
};
use crate::report::canvas::{Direction, INK, LINE_HEIGHT, Stroke, rgb};

const GRID_LINE: Stroke = Stroke { colour: rgb(0xe3_e3_e3), width: 1.0, dashes: &[] };
const FRAME_LINE: Stroke = Stroke { colour: rgb(0x80_80_80), width: 1.0, dashes: &[] };
/// Radius of a point with no neighbour to be joined to.
const LONE_POINT: f32 = 4.0;
/// Radius of the points of a short series, of at most [`SHORT`] points.
const MARKED_POINT: f32 = 3.0;
const SHORT: usize = 30;

/// Shares of the two axes; the data's rectangle is `[0, 1] × [0, 1]`.
type Place = (f64, f64);

/// Two axes and where they lie.
pub(super) struct Plot {
    pub(super) area: Cell,
    pub(super) x: Axis,
    pub(super) y: Axis,
}

impl Plot {
    /// Grid lines with the labels of their ticks, and the frame around them.
    pub(super) fn grid(&self) -> Vec<Shape> {
        let mut shapes = Vec::new();
        let bottom = self.area.y + self.area.height;
        for tick in &self.x.ticks {
            let share = self.x.share(tick.value).clamp(0.0, 1.0);
            shapes.push(self.line(&[(share, 0.0), (share, 1.0)], GRID_LINE));
            let at = (self.pixel((share, 0.0)).0, bottom + 5.0 + LINE_HEIGHT as f32 / 2.0);
            shapes.push(tick_label(at, &tick.label, Anchor::Middle));
        }
        for tick in &self.y.ticks {
            let share = self.y.share(tick.value).clamp(0.0, 1.0);
            shapes.push(self.line(&[(0.0, share), (1.0, share)], GRID_LINE));
            let at = (self.area.x - 8.0, self.pixel((0.0, share)).1);
            shapes.push(tick_label(at, &tick.label, Anchor::End));
        }
        let frame = [(0.0, 1.0), (0.0, 0.0), (1.0, 0.0), (1.0, 1.0), (0.0, 1.0)];
        shapes.push(self.line(&frame, FRAME_LINE));
        shapes
    }

    /// A vertical line at a remarkable place, if that is in sight.
    pub(super) fn mark(&self, mark: &Mark) -> Option<Shape> {
        let share = self.x.share(mark.x);
        let in_sight = drawable(mark.x) && inside((share, 0.0));
        in_sight.then(|| self.line(&[(share, 0.0), (share, 1.0)], mark.style.stroke()))
    }

    /// A curve with a gap wherever a point is missing; a point alone in a gap is a dot.
    pub(super) fn series(&self, series: &Series) -> Vec<Shape> {
        let missing = |point: &(f64, f64)| !drawable(point.0) || !drawable(point.1);
        let short = series.points.iter().filter(|point| !missing(point)).count() <= SHORT;
        let mut shapes = Vec::new();
        for run in series.points.split(missing) {
            let run = run.iter().map(|point| self.place(*point)).collect::<Vec<_>>();
            let pieces = pieces(&run);
            shapes.extend(pieces.iter().map(|piece| self.line(piece, series.style.stroke())));
            if run.len() == 1 || short {
                let radius = if run.len() == 1 { LONE_POINT } else { MARKED_POINT };
                let colour = series.style.colour;
                let dot = |place| Shape::Disc { centre: self.pixel(place), radius, colour };
                shapes.extend(run.into_iter().filter(|place| inside(*place)).map(dot));
            }
        }
        shapes
    }

    fn place(&self, (x, y): (f64, f64)) -> Place {
        // Far beyond the border all places look alike; the limit keeps clipping exact.
        let limited = |share: f64| share.clamp(-1e6, 1e6);
        (limited(self.x.share(x)), limited(self.y.share(y)))
    }

    fn pixel(&self, (x, y): Place) -> (f32, f32) {
        let Cell { x: left, y: top, width, height } = self.area;
        (left + x as f32 * width, top + (1.0 - y as f32) * height)
    }

    fn line(&self, places: &[Place], stroke: Stroke) -> Shape {
        // One-pixel lines are kept on half pixels, where they are crisp.
        let snap = |v: f32| if stroke.width == 1.0 { v.floor() + 0.5 } else { v };
        let pixels = places.iter().map(|place| self.pixel(*place));
        Shape::Line { points: pixels.map(|(x, y)| (snap(x), snap(y))).collect(), stroke }
    }
}

fn tick_label(at: (f32, f32), text: &str, anchor: Anchor) -> Shape {
    let direction = Direction::Rightward;
    Shape::Label(Label { at, text: text.to_owned(), colour: INK, anchor, direction, bold: false })
}

/// Whether a place is within the data's rectangle, give or take a rounding error.
fn inside((x, y): Place) -> bool {
    let range = -1e-6..=1.0 + 1e-6;
    range.contains(&x) && range.contains(&y)
}

/// The parts of a curve within the data's rectangle.
fn pieces(run: &[Place]) -> Vec<Vec<Place>> {
    let mut pieces: Vec<Vec<Place>> = Vec::new();
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
fn clip(from: Place, to: Place) -> Option<(Place, Place)> {
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
    fn a_curve_that_leaves_and_returns_is_two_pieces() {
        let run = [(0.0, 0.0), (0.25, 0.5), (0.5, 2.0), (0.75, 0.5), (1.0, 0.0)];
        let pieces = pieces(&run);
        assert_eq!(pieces.len(), 2);
        assert_eq!(pieces[0][..2], run[..2]);
        assert_eq!(pieces[0].len(), 3);
    }
}
