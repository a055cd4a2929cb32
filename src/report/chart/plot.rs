//! The rectangle of the data: grid, tick labels and curves.

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
        if drawable(x) && (0.0..=1.0).contains(&share) {
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
            let run: Vec<_> = run.iter().map(|point| self.pixel(self.place(*point))).collect();
            if run.len() > 1 {
                svg.line(&thinned(&run), paint, width, dashes);
            }
            if run.len() == 1 || short {
                let radius = if run.len() == 1 { LONE_POINT } else { MARKED_POINT };
                run.iter().for_each(|at| svg.disc(*at, radius, paint));
            }
        }
    }

    /// Where a point lies: at the border if it is beyond a range that was asked for.
    fn place(&self, (x, y): (f64, f64)) -> Point {
        (self.x.share(x).clamp(0.0, 1.0), self.y.share(y).clamp(0.0, 1.0))
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

#[cfg(test)]
mod tests {
    use super::*;

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
}
