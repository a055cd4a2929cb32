//! What is in a picture: background, distractors, and objects of one class.
//!
//! Only [`Object::colour`] depends on the class. Everything else — how many,
//! how large, where, which colours, what is around — is drawn without it.

use std::f64::consts::{PI, TAU};

use super::{
    canvas::{Canvas, Colour, Layer, mix, tint},
    class::{Contour, ObjectClass, Place},
};
use crate::rng::Stream;

/// Share of the picture that objects cover, before frame and occlusion take from it.
const OBJECT_SHARE: (f64, f64) = (0.07, 0.38);

/// Smallest radius of an object relative to the side: three texture periods across.
const LEAST_RADIUS: f64 = 0.15;

pub(super) fn paint(side: u32, class: &'static ObjectClass, stream: &mut Stream) -> Canvas {
    let size = f64::from(side);
    let mut canvas = background(side, stream);
    for _ in 0..3 + stream.below(8) {
        canvas.paint(&Distractor::stroke(size, stream));
    }
    for _ in 0..1 + stream.below(3) {
        canvas.paint(&Distractor::figure(size, 0.06, stream));
    }
    for object in objects(size, class, stream) {
        canvas.paint(&object);
    }
    for _ in 0..stream.below(3) {
        canvas.paint(&Distractor::figure(size, 0.012, stream));
    }
    canvas
}

/// Two colours that run into each other, under coarse and fine noise.
fn background(side: u32, stream: &mut Stream) -> Canvas {
    let size = f64::from(side);
    let (from, to) = (any_colour(0.2, 0.8, stream), any_colour(0.2, 0.8, stream));
    let (across, down) = direction(stream);
    let octaves: Vec<(Noise, f32)> = [3, 6, 12, 24]
        .map(|cells| (Noise::new(cells, stream), stream.between(0.02, 0.14) as f32))
        .into();
    Canvas::filled(side, |x, y| {
        let (x, y) = (x / size, y / size);
        let run = 0.5 + 0.7 * ((x - 0.5) * across + (y - 0.5) * down);
        let noise: f32 = octaves.iter().map(|(noise, strength)| strength * noise.at(x, y)).sum();
        mix(from, to, run as f32).map(|value| value + noise)
    })
}

/// Smooth noise in `[−1, 1]` over the unit square.
struct Noise {
    cells: usize,
    /// Values at the corners of the cells, row by row.
    corners: Vec<f32>,
}

impl Noise {
    fn new(cells: usize, stream: &mut Stream) -> Self {
        let corners = (0..(cells + 1).pow(2)).map(|_| stream.between(-1.0, 1.0) as f32).collect();
        Self { cells, corners }
    }

    fn at(&self, x: f64, y: f64) -> f32 {
        let split = |v: f64| {
            let cell = ((v * self.cells as f64) as usize).min(self.cells - 1);
            let t = (v * self.cells as f64 - cell as f64) as f32;
            // Smoothstep: no visible lattice.
            (cell, t * t * (3.0 - 2.0 * t))
        };
        let ((column, right), (row, down)) = (split(x), split(y));
        let corner = |r: usize, c: usize| self.corners[r * (self.cells + 1) + c];
        let blend = |a: f32, b: f32, share: f32| a + share * (b - a);
        let upper = blend(corner(row, column), corner(row, column + 1), right);
        let lower = blend(corner(row + 1, column), corner(row + 1, column + 1), right);
        blend(upper, lower, down)
    }
}

/// One object: where it is, how it lies, and how it is coloured.
struct Object {
    class: &'static ObjectClass,
    centre: (f64, f64),
    /// Radius of the disc of equal area, in pixels.
    radius: f64,
    /// Cosine and sine of its orientation.
    facing: (f64, f64),
    /// Length over width, square root of.
    stretch: f64,
    contour: Contour,
    /// Texture period in pixels, and where the pattern starts, in periods.
    period: f64,
    offset: (f64, f64),
    ink: Colour,
    ground: Colour,
    /// How much lighter it gets from one side to the other.
    shade: (f64, f64),
}

/// One to three objects that share the area, the colours and nearly the period, but not pose or
/// place.
fn objects(side: f64, class: &'static ObjectClass, stream: &mut Stream) -> Vec<Object> {
    let (least, most) = OBJECT_SHARE;
    let share = stream.between(least, most);
    let fitting = (share / (PI * LEAST_RADIUS.powi(2))) as usize;
    let count = 1 + stream.below(fitting.clamp(1, 3));
    let radius = side * (share / (PI * count as f64)).sqrt();
    let (middle, contrast) = (stream.between(0.4, 0.6), stream.between(0.13, 0.35));
    // Ink may be the darker or the lighter of the two.
    let contrast = if stream.chance(0.5) { contrast } else { -contrast };
    let period = side * stream.between(0.085, 0.12);
    let ink = any_colour(middle + contrast, middle + contrast, stream);
    let ground = any_colour(middle - contrast, middle - contrast, stream);

    let mut placed: Vec<Object> = Vec::new();
    for _ in 0..count {
        let taken: Vec<_> = placed.iter().map(|object| object.centre).collect();
        let centre = free_place(side, radius, &taken, stream);
        let phases = [(); 3].map(|()| stream.between(0.0, TAU));
        let (light, strength) = (direction(stream), stream.between(0.0, 0.15));
        placed.push(Object {
            class,
            centre,
            radius: radius * stream.between(0.93, 1.07),
            facing: direction(stream),
            stretch: stream.between(0.88, 1.14),
            contour: Contour::new(class.outline, phases),
            period: period * stream.between(0.92, 1.08),
            offset: (stream.uniform(), stream.uniform()),
            ink,
            ground,
            shade: (strength * light.0, strength * light.1),
        });
    }
    placed
}

/// The emptiest of a few random places for an object of `radius`.
fn free_place(side: f64, radius: f64, taken: &[(f64, f64)], stream: &mut Stream) -> (f64, f64) {
    let margin = (0.75 * radius).min(0.4 * side);
    let room = |(x, y): (f64, f64)| {
        let gap = |&(a, b): &(f64, f64)| (x - a).powi(2) + (y - b).powi(2);
        taken.iter().map(gap).fold(f64::INFINITY, f64::min)
    };
    let mut place =
        || (stream.between(margin, side - margin), stream.between(margin, side - margin));
    let first = place();
    (0..9).fold(first, |best, _| {
        let next = place();
        if room(next) > room(best) { next } else { best }
    })
}

impl Layer for Object {
    fn reach(&self) -> (f64, f64, f64) {
        let stretch = self.stretch.max(1.0 / self.stretch);
        (self.centre.0, self.centre.1, self.radius * stretch * self.contour.reach)
    }

    fn colour(&self, x: f64, y: f64) -> Option<Colour> {
        let (dx, dy) = (x - self.centre.0, y - self.centre.1);
        let (cos, sin) = self.facing;
        let (along, across) = (dx * cos + dy * sin, dy * cos - dx * sin);
        let (u, v) = (along / self.stretch / self.radius, across * self.stretch / self.radius);
        let distance = (u * u + v * v).sqrt();
        if distance > self.contour.reach {
            return None;
        }
        let turn = (v.atan2(u) / TAU).rem_euclid(1.0);
        let depth = distance / self.contour.radius(turn);
        if depth > 1.0 {
            return None;
        }
        let ink = self.class.texture.is_ink(Place {
            x: along / self.period + self.offset.0,
            y: across / self.period + self.offset.1,
            depth: depth * self.radius / self.period + self.offset.0,
            turn,
        });
        let shade = (1.0 + self.shade.0 * u + self.shade.1 * v) as f32;
        Some((if ink { self.ink } else { self.ground }).map(|value| value * shade))
    }

    fn is_object(&self) -> bool {
        true
    }
}

/// A plain thing that any class may be seen with: a disc, a box or a line.
struct Distractor {
    centre: (f64, f64),
    facing: (f64, f64),
    /// Half length and half width, in pixels.
    half: (f64, f64),
    is_disc: bool,
    /// Colours at its two ends.
    colours: (Colour, Colour),
    opacity: f32,
}

impl Distractor {
    /// A disc, a box or a bar that covers up to `area` of the picture.
    fn figure(side: f64, area: f64, stream: &mut Stream) -> Self {
        let area = side * side * area * stream.between(0.3, 1.0);
        let aspect = [1.0, stream.between(1.0, 2.0), stream.between(4.0, 8.0)][stream.below(3)];
        let is_disc = aspect < 2.0 && stream.chance(0.5);
        let half = (0.5 * (area * aspect).sqrt(), 0.5 * (area / aspect).sqrt());
        let colour = any_colour(0.15, 0.85, stream);
        let other = any_colour(0.15, 0.85, stream);
        let end = if stream.chance(0.4) { other } else { colour };
        Self { is_disc, colours: (colour, end), ..Self::placed(side, half, stream) }
    }

    /// A thin, more or less transparent line.
    fn stroke(side: f64, stream: &mut Stream) -> Self {
        let half = (side * stream.between(0.08, 0.4), side * stream.between(0.006, 0.02));
        let opacity = stream.between(0.3, 0.9) as f32;
        Self { opacity, ..Self::placed(side, half, stream) }
    }

    /// A plain box somewhere.
    fn placed(side: f64, half: (f64, f64), stream: &mut Stream) -> Self {
        let colour = any_colour(0.15, 0.85, stream);
        Self {
            centre: (stream.between(0.0, side), stream.between(0.0, side)),
            facing: direction(stream),
            half,
            is_disc: false,
            colours: (colour, colour),
            opacity: 1.0,
        }
    }
}

impl Layer for Distractor {
    fn reach(&self) -> (f64, f64, f64) {
        (self.centre.0, self.centre.1, self.half.0 + self.half.1)
    }

    fn colour(&self, x: f64, y: f64) -> Option<Colour> {
        let (dx, dy) = (x - self.centre.0, y - self.centre.1);
        let (cos, sin) = self.facing;
        let (u, v) = ((dx * cos + dy * sin) / self.half.0, (dy * cos - dx * sin) / self.half.1);
        let inside = if self.is_disc { u * u + v * v < 1.0 } else { u.abs().max(v.abs()) < 1.0 };
        inside.then(|| mix(self.colours.0, self.colours.1, (0.5 + 0.5 * u) as f32))
    }

    fn opacity(&self) -> f32 {
        self.opacity
    }
}

/// Any hue, pale to strong, of a lightness in this range.
fn any_colour(darkest: f64, lightest: f64, stream: &mut Stream) -> Colour {
    tint(stream.uniform(), stream.between(0.1, 0.6), stream.between(darkest, lightest))
}

/// A random direction, as cosine and sine.
fn direction(stream: &mut Stream) -> (f64, f64) {
    let angle = stream.between(0.0, TAU);
    (angle.cos(), angle.sin())
}
