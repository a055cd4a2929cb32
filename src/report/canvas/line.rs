//! Smooth lines: how much of each pixel a stroke covers.

use std::ops::Range;

use image::{Rgb, RgbImage};

use super::blend;

/// The covered share of each pixel, over the part of the image a line can touch.
///
/// Ink is gathered here first and laid on once; else joints would come out darker.
pub(super) struct Coverage {
    columns: Range<u32>,
    rows: Range<u32>,
    shares: Vec<f32>,
}

impl Coverage {
    /// Nothing covered yet, with room for a line through `points`.
    pub(super) fn around(points: &[(f32, f32)], width: f32, image: &RgbImage) -> Self {
        let reach = reach(width);
        let room = |values: &mut dyn Iterator<Item = f32>, limit: u32| {
            let (low, high) = values.fold((f32::INFINITY, f32::NEG_INFINITY), |(low, high), v| {
                (low.min(v), high.max(v))
            });
            within(low - reach, high + reach, &(0..limit))
        };
        let columns = room(&mut points.iter().map(|point| point.0), image.width());
        let rows = room(&mut points.iter().map(|point| point.1), image.height());
        let shares = vec![0.0; columns.len() * rows.len()];
        Self { columns, rows, shares }
    }

    /// Covers a line with round joints and ends; `dashes` as in [`Stroke`](super::Stroke).
    pub(super) fn line(&mut self, points: &[(f32, f32)], width: f32, dashes: &[f32]) {
        let segments = points.windows(2).map(|ends| (ends[0], ends[1]));
        if dashes.is_empty() {
            segments.for_each(|(from, to)| self.segment(from, to, width));
            return;
        }
        let mut pattern = dashes.iter().copied().enumerate().cycle();
        let (mut part, mut left) = pattern.next().expect("dashes are not empty");
        for (from, to) in segments {
            let length = distance(from, to);
            let at = |done: f32| {
                let share = done / length;
                (from.0 + (to.0 - from.0) * share, from.1 + (to.1 - from.1) * share)
            };
            let mut done = 0.0;
            while done < length {
                let next = done + left;
                if part % 2 == 0 {
                    self.segment(at(done), at(next.min(length)), width);
                }
                done = next;
                if next <= length {
                    (part, left) = pattern.next().expect("the pattern repeats forever");
                } else {
                    left = next - length;
                }
            }
        }
    }

    /// Covers the pixels near a segment, by the distance of their centres.
    fn segment(&mut self, from: (f32, f32), to: (f32, f32), width: f32) {
        // Walking along the longer side makes the cost grow with the length of
        // the segment, not with the area of its bounding box.
        let steep = (to.1 - from.1).abs() > (to.0 - from.0).abs();
        let (from, to) = (swapped_if(steep, from), swapped_if(steep, to));
        let (start, end) = if from.0 <= to.0 { (from, to) } else { (to, from) };
        let slope = if start.0 < end.0 { (end.1 - start.1) / (end.0 - start.0) } else { 0.0 };

        let reach = reach(width);
        let (columns, rows) = swapped_if(steep, (self.columns.clone(), self.rows.clone()));
        for column in within(start.0 - reach, end.0 + reach, &columns) {
            let along = column as f32 + 0.5;
            let centre = start.1 + (along.clamp(start.0, end.0) - start.0) * slope;
            // Across a diagonal the reach is √2 times as long.
            for row in within(centre - 1.5 * reach, centre + 1.5 * reach, &rows) {
                let away = distance_to_segment((along, row as f32 + 0.5), start, end);
                let (x, y) = swapped_if(steep, (column, row));
                self.cover(x, y, (width / 2.0 + 0.5 - away).clamp(0.0, 1.0));
            }
        }
    }

    fn cover(&mut self, x: u32, y: u32, share: f32) {
        let row = (y - self.rows.start) as usize * self.columns.len();
        let covered = &mut self.shares[row + (x - self.columns.start) as usize];
        *covered = covered.max(share);
    }

    /// Paints what is covered.
    pub(super) fn lay_on(&self, image: &mut RgbImage, colour: Rgb<u8>) {
        let places = self.rows.clone().flat_map(|y| self.columns.clone().map(move |x| (x, y)));
        for ((x, y), &share) in places.zip(&self.shares) {
            let pixel = image.get_pixel_mut(x, y);
            *pixel = blend(*pixel, colour, share);
        }
    }
}

fn swapped_if<T>(swap: bool, (x, y): (T, T)) -> (T, T) {
    if swap { (y, x) } else { (x, y) }
}

/// How far from its middle a line can touch a pixel's centre, and a bit more.
fn reach(width: f32) -> f32 {
    width / 2.0 + 1.0
}

/// The whole pixels between two positions, cut to `limits`.
fn within(low: f32, high: f32, limits: &Range<u32>) -> Range<u32> {
    let cut = |position: f32| position.clamp(limits.start as f32, limits.end as f32) as u32;
    cut(low.floor())..cut(high.ceil())
}

fn distance(a: (f32, f32), b: (f32, f32)) -> f32 {
    let (dx, dy) = (b.0 - a.0, b.1 - a.1);
    (dx * dx + dy * dy).sqrt()
}

fn distance_to_segment(point: (f32, f32), start: (f32, f32), end: (f32, f32)) -> f32 {
    let (dx, dy) = (end.0 - start.0, end.1 - start.1);
    let squared = dx * dx + dy * dy;
    let projected = (point.0 - start.0) * dx + (point.1 - start.1) * dy;
    let share = if squared > 0.0 { (projected / squared).clamp(0.0, 1.0) } else { 0.0 };
    distance(point, (start.0 + share * dx, start.1 + share * dy))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::canvas::rgb;

    /// The columns inked by a dashed line along the middle of a row, through `stops`.
    fn inked(stops: &[f32]) -> String {
        let mut image = RgbImage::from_pixel(16, 1, rgb(0xff_ff_ff));
        let points = stops.iter().map(|x| (*x, 0.5)).collect::<Vec<_>>();
        let mut ink = Coverage::around(&points, 1.0, &image);
        ink.line(&points, 1.0, &[2.0, 3.0]);
        ink.lay_on(&mut image, rgb(0));
        image.pixels().map(|pixel| if *pixel == rgb(0) { '#' } else { ' ' }).collect()
    }

    #[test]
    fn dashes_run_on_from_segment_to_segment() {
        let dashed = "###  ###  ###   ";
        assert_eq!(inked(&[0.5, 12.5]), dashed);
        assert_eq!(inked(&[0.5, 0.5, 1.1, 6.4, 12.5]), dashed);
    }

    #[test]
    fn dashing_ends_however_the_lengths_are_rounded() {
        let stops = (0..5000).map(|i| 0.1 + i as f32 * 0.003).collect::<Vec<_>>();
        assert!(inked(&stops).contains('#'));
    }
}
