//! What the classes look like: an outline filled with a texture.
//!
//! Both are functions of an object's own coordinates, so that place, size
//! and orientation cannot tell a class. Every texture is half ink and half
//! ground, and every outline is scaled to the area of the unit disc, so that
//! neither colour nor area can.

use std::f64::consts::{FRAC_1_SQRT_2, PI, TAU};

/// A class of the synthetic set.
#[derive(Debug)]
pub(super) struct ObjectClass {
    pub(super) name: &'static str,
    pub(super) outline: Outline,
    pub(super) texture: Texture,
}

/// A closed curve around the origin: radius as a function of the angle.
#[derive(Debug, Clone, Copy)]
pub(super) enum Outline {
    /// A circle, more or less dented.
    Round { dents: f64 },
    /// A flower of cosine petals.
    Petals { count: f64, depth: f64 },
    /// A wheel with blunt teeth.
    Teeth { count: f64, depth: f64 },
    /// Straight edges between tips at radius 1 and notches at `notch`.
    Points { count: f64, notch: f64 },
    /// Round with one tip.
    Drop,
}

/// A two-tone pattern.
#[derive(Debug, Clone, Copy)]
pub(super) enum Texture {
    Stripes,
    Dots,
    Checks,
    Rings,
    Grid,
    Zigzag,
    Spokes,
    Triangles,
}

/// Where a point is in an object: what textures are made of.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    /// Along and across the object, in texture periods.
    pub(super) x: f64,
    pub(super) y: f64,
    /// Distance from the centre relative to the outline, in texture periods.
    pub(super) depth: f64,
    /// Around the centre, in turns.
    pub(super) turn: f64,
}

/// All classes; a dataset of `n` classes has the first `n`.
pub(super) static CLASSES: [ObjectClass; 8] = [
    class("striped-disc", Outline::Round { dents: 0.04 }, Texture::Stripes),
    class("dotted-blob", Outline::Round { dents: 0.18 }, Texture::Dots),
    class("checkered-star", Outline::Points { count: 5.0, notch: 0.55 }, Texture::Checks),
    class("ringed-flower", Outline::Petals { count: 5.0, depth: 0.22 }, Texture::Rings),
    class("gridded-triangle", Outline::Points { count: 3.0, notch: 0.56 }, Texture::Grid),
    class("zigzag-drop", Outline::Drop, Texture::Zigzag),
    class("spoked-wheel", Outline::Teeth { count: 9.0, depth: 0.1 }, Texture::Spokes),
    class("tiled-square", Outline::Points { count: 4.0, notch: FRAC_1_SQRT_2 }, Texture::Triangles),
];

const fn class(name: &'static str, outline: Outline, texture: Texture) -> ObjectClass {
    ObjectClass { name, outline, texture }
}

/// An object's outline, scaled to the area of the unit disc.
#[derive(Debug)]
pub(super) struct Contour {
    /// Radius at evenly spaced angles, the first one again at the end.
    radii: Vec<f64>,
    /// The greatest of them.
    pub(super) reach: f64,
}

impl Contour {
    /// The contour of an object whose irregularities are at `phases`.
    pub(super) fn new(outline: Outline, phases: [f64; 3]) -> Self {
        const ANGLES: usize = 720;
        let radius = |i: usize| outline.radius(TAU * i as f64 / ANGLES as f64, phases);
        let mut radii: Vec<f64> = (0..ANGLES).map(radius).collect();
        let mean_square = radii.iter().map(|r| r * r).sum::<f64>() / ANGLES as f64;
        radii.push(radii[0]);
        radii.iter_mut().for_each(|r| *r /= mean_square.sqrt());
        let reach = radii.iter().copied().fold(0.0, f64::max);
        Self { radii, reach }
    }

    /// Radius after `turn` turns, from 0 to 1.
    pub(super) fn radius(&self, turn: f64) -> f64 {
        let last = self.radii.len() - 1;
        let place = turn * last as f64;
        let before = (place as usize).min(last - 1);
        let share = place - before as f64;
        self.radii[before] + share * (self.radii[before + 1] - self.radii[before])
    }
}

impl Outline {
    /// Radius at `angle`, before scaling.
    fn radius(self, angle: f64, phases: [f64; 3]) -> f64 {
        let (ideal, dents) = match self {
            Self::Round { dents } => (1.0, dents),
            Self::Petals { count, depth } => (1.0 + depth * (count * angle).cos(), 0.03),
            Self::Teeth { count, depth } => {
                (1.0 + depth * (3.0 * (count * angle).cos()).clamp(-1.0, 1.0), 0.02)
            }
            Self::Points { count, notch } => (points(angle, count, notch), 0.03),
            Self::Drop => (0.75 + 0.85 * (0.5 + 0.5 * angle.cos()).powi(8), 0.02),
        };
        let [a, b, c] = phases;
        let wave = (2.0 * angle + a).cos() + (3.0 * angle + b).cos() + (5.0 * angle + c).cos();
        ideal * (1.0 + dents * wave)
    }
}

/// Radius of a star with straight edges: 1 at each of `count` tips, `notch` half-way between.
fn points(angle: f64, count: f64, notch: f64) -> f64 {
    let half = PI / count;
    // Angle to the nearest tip, in 0..=half.
    let off = (angle.rem_euclid(2.0 * half) - half).abs();
    let off = half - off;
    // The line through both corners, in polar form.
    1.0 / (off.cos() + off.sin() * (1.0 / notch - half.cos()) / half.sin())
}

impl Texture {
    /// Whether there is ink at a place.
    pub(super) fn is_ink(self, place: Place) -> bool {
        let Place { x, y, depth, turn } = place;
        match self {
            Self::Stripes => first_half(x),
            Self::Dots => {
                let (dx, dy) = (x.rem_euclid(1.0) - 0.5, y.rem_euclid(1.0) - 0.5);
                dx * dx + dy * dy < 0.5 / PI
            }
            Self::Checks => first_half(x / 1.4) == first_half(y / 1.4),
            Self::Rings => first_half(depth),
            // Lines this wide leave half of the ground.
            Self::Grid => x.rem_euclid(1.0) < LINE || y.rem_euclid(1.0) < LINE,
            Self::Zigzag => first_half(y + (x.rem_euclid(2.0) - 1.0).abs()),
            Self::Spokes => first_half(7.0 * turn),
            Self::Triangles => {
                // Three families of lines, 120° apart.
                let (a, b) = (x / 1.6, (0.5 * x + 0.75_f64.sqrt() * y) / 1.6);
                first_half(a) ^ first_half(b) ^ first_half(b - a)
            }
        }
    }
}

/// `1 − √½`.
const LINE: f64 = 1.0 - FRAC_1_SQRT_2;

fn first_half(period: f64) -> bool {
    period.rem_euclid(1.0) < 0.5
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_texture_is_half_ink() {
        for ObjectClass { name, texture, .. } in &CLASSES {
            let grid = (0..210).flat_map(|x| (0..210).map(move |y| (x as f64, y as f64)));
            let ink = grid.filter(|(x, y)| {
                // 0.08 periods a step: 16.8 periods, a whole number of each lattice.
                let (x, y) = (0.08 * x + 0.013, 0.08 * y + 0.017);
                texture.is_ink(Place { x, y, depth: x, turn: x / 16.8 })
            });
            let share = ink.count() as f64 / (210.0 * 210.0);
            assert!((share - 0.5).abs() < 0.04, "{name}: {share}");
        }
    }

    #[test]
    fn a_square_has_straight_edges() {
        let square = |angle| points(angle, 4.0, FRAC_1_SQRT_2);
        // On the edge from (1, 0) to (0, 1), x + y = 1.
        for angle in [0.0_f64, 0.3, 0.785, 1.2] {
            let r = square(angle);
            assert!((r * angle.cos() + r * angle.sin() - 1.0).abs() < 1e-12);
        }
    }

    #[test]
    fn every_contour_has_the_area_of_the_unit_disc() {
        for ObjectClass { name, outline, .. } in &CLASSES {
            let contour = Contour::new(*outline, [0.3, 2.0, 4.0]);
            let turns = (0..1000).map(|i| (f64::from(i) + 0.5) / 1000.0);
            let area = turns.map(|turn| contour.radius(turn).powi(2)).sum::<f64>() * PI / 1000.0;
            assert!((area - PI).abs() < 0.01, "{name}: {area}");
        }
    }

    #[test]
    fn names_differ() {
        let mut names: Vec<_> = CLASSES.iter().map(|class| class.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), CLASSES.len());
    }
}
