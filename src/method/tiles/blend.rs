//! Values between two neighbours of a line.

/// Two neighbours on a line, and how much of the second is mixed in.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::method) struct Blend {
    pub(in crate::method) near: usize,
    pub(in crate::method) far: usize,
    fraction: f32,
}

impl Blend {
    #[inline]
    pub(in crate::method) fn mix(&self, near: f32, far: f32) -> f32 {
        (1.0 - self.fraction) * near + self.fraction * far
    }
}

/// How `count` values are mixed from a line of `length`, one at every `step` up to the last.
///
/// The plain-float twin of the products in `model::mask`.
pub(in crate::method) fn blends(count: usize, length: usize, step: f64) -> Vec<Blend> {
    let last = length - 1;
    let blend = |place: usize| {
        // In double precision, so that integer positions are hit exactly.
        let position = (place as f64 * step).min(last as f64);
        let near = position as usize;
        Blend { near, far: (near + 1).min(last), fraction: (position - near as f64) as f32 }
    };
    (0..count).map(blend).collect()
}

/// How `count` values are mixed from a line of `length`, the middles of both lines' cells aligned.
pub(in crate::method) fn half_pixel(count: usize, length: usize) -> Vec<Blend> {
    let (last, step) = (length - 1, length as f64 / count as f64);
    let blend = |place: usize| {
        let position = ((place as f64 + 0.5) * step - 0.5).clamp(0.0, last as f64);
        let near = position as usize;
        Blend { near, far: (near + 1).min(last), fraction: (position - near as f64) as f32 }
    };
    (0..count).map(blend).collect()
}

/// The same with the ends of both lines aligned.
pub(in crate::method) fn aligned(count: usize, length: usize) -> Vec<Blend> {
    let step = if count > 1 { (length - 1) as f64 / (count - 1) as f64 } else { 0.0 };
    blends(count, length, step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ends_are_aligned_and_the_rest_lies_evenly_between() {
        let line = [1.0, 3.0, 7.0];
        let mixed: Vec<f32> = aligned(5, 3)
            .iter()
            .map(|blend| blend.mix(line[blend.near], line[blend.far]))
            .collect();
        assert_eq!(mixed, [1.0, 2.0, 3.0, 5.0, 7.0]);
    }

    #[test]
    fn beyond_the_last_value_it_is_repeated() {
        let line = [1.0, 3.0];
        let mixed: Vec<f32> = blends(5, 2, 0.5)
            .iter()
            .map(|blend| blend.mix(line[blend.near], line[blend.far]))
            .collect();
        assert_eq!(mixed, [1.0, 2.0, 3.0, 3.0, 3.0]);
    }
}
