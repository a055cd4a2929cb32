//! Bilinear interpolation: positions, weights and rounding.
//!
//! Masks must agree to the bit (whole and in tiles, with and without a gradient), so all of these
//! are defined here. Two interpolations are not this one: images are resized in
//! `data::preprocess::resample` with Pillow's integer weights, and tensors with a gradient are
//! interpolated by matrix products with these weights.

use rayon::prelude::*;

/// Two neighbours on a line, and the weight of the second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Tap {
    pub(crate) near: usize,
    pub(crate) far: usize,
    weight: f32,
}

impl Tap {
    /// The neighbours of a `position` on a line with indices up to `last`; positions beyond the
    /// ends are moved to them.
    fn at(position: f64, last: usize) -> Self {
        let position = position.clamp(0.0, last as f64);
        let near = position as usize;
        Self { near, far: last.min(near + 1), weight: (position - near as f64) as f32 }
    }

    /// The weights of the two neighbours.
    pub(crate) fn weights(&self) -> [f32; 2] {
        [1.0 - self.weight, self.weight]
    }

    /// The interpolated value, rounded as a matrix product is on processors with fused
    /// multiply-add, so that it is the same with and without a gradient.
    #[inline]
    pub(crate) fn mix(&self, near: f32, far: f32) -> f32 {
        let [one, other] = self.weights();
        other.mul_add(far, one * near)
    }

    /// The value interpolated between two scores; between equal scores it is exactly that score,
    /// since scores are ranked and ties must stay ties.
    #[inline]
    pub(crate) fn mix_scores(&self, near: f32, far: f32) -> f32 {
        near + (far - near) * self.weight
    }

    /// The value interpolated between two features, of which a cell has hundreds: without fused
    /// multiply-add, so that it is vectorized on every processor.
    #[inline]
    pub(crate) fn mix_features(&self, near: f32, far: f32) -> f32 {
        let [one, other] = self.weights();
        one * near + other * far
    }
}

/// How `count` values at multiples of `step` are read from a line of `length`.
pub(crate) fn spaced(count: usize, length: usize, step: f64) -> Vec<Tap> {
    (0..count).map(|place| Tap::at(place as f64 * step, length - 1)).collect()
}

/// How `count` values are read from a line of `length` with the ends of both lines aligned.
///
/// The same as PyTorch's `interpolate(mode="bilinear", align_corners=True)`:
/// value i of n is read at `i · (m − 1) / (n − 1)` of m.
pub(crate) fn aligned(count: usize, length: usize) -> Vec<Tap> {
    let step = if count > 1 { (length - 1) as f64 / (count - 1) as f64 } else { 0.0 };
    spaced(count, length, step)
}

/// How `count` values are read from a line of `length` with half-pixel centres: PyTorch's
/// `align_corners=False`.
pub(crate) fn half_pixel(count: usize, length: usize) -> Vec<Tap> {
    let step = length as f64 / count as f64;
    (0..count).map(|place| Tap::at((place as f64 + 0.5) * step - 0.5, length - 1)).collect()
}

/// Interpolates one row of a plane with `width` columns.
pub(crate) fn read_line(plane: &[f32], width: usize, row: Tap, columns: &[Tap], line: &mut [f32]) {
    let [above, below] = [row.near, row.far].map(|row| &plane[row * width..][..width]);
    let between: Vec<f32> = above.iter().zip(below).map(|(&a, &b)| row.mix(a, b)).collect();
    for (value, column) in line.iter_mut().zip(columns) {
        *value = column.mix(between[column.near], between[column.far]);
    }
}

/// Interpolates planes of `height × width`, which lie one after the other.
pub(crate) fn read_planes(
    planes: &[f32],
    [height, width]: [usize; 2],
    rows: &[Tap],
    columns: &[Tap],
) -> Vec<f32> {
    let pixels = height * width;
    let mut read = vec![0.0; planes.len() / pixels * rows.len() * columns.len()];
    read.par_chunks_exact_mut(columns.len()).enumerate().for_each(|(line, read)| {
        let plane = &planes[line / rows.len() * pixels..][..pixels];
        read_line(plane, width, rows[line % rows.len()], columns, read);
    });
    read
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(line: &[f32], taps: &[Tap]) -> Vec<f32> {
        taps.iter().map(|tap| tap.mix(line[tap.near], line[tap.far])).collect()
    }

    #[test]
    fn aligned_ends_meet_and_the_rest_lies_evenly_between() {
        assert_eq!(read(&[1.0, 3.0, 7.0], &aligned(5, 3)), [1.0, 2.0, 3.0, 5.0, 7.0]);
        assert_eq!(read(&[4.0, 1.0], &aligned(1, 2)), [4.0]);
    }

    #[test]
    fn beyond_the_last_value_it_is_repeated() {
        assert_eq!(read(&[1.0, 3.0], &spaced(5, 2, 0.5)), [1.0, 2.0, 3.0, 3.0, 3.0]);
    }

    #[test]
    fn half_pixels_read_a_quarter_beside_the_middles() {
        assert_eq!(read(&[0.0, 4.0], &half_pixel(4, 2)), [0.0, 1.0, 3.0, 4.0]);
    }

    #[test]
    fn planes_are_read_one_by_one() {
        let planes = [0.0, 1.0, 2.0, 3.0, 10.0, 10.0, 10.0, 10.0];
        let taps = aligned(3, 2);
        let read = read_planes(&planes, [2, 2], &taps, &taps);
        assert_eq!(read[..9], [0.0, 0.5, 1.0, 1.0, 1.5, 2.0, 2.0, 2.5, 3.0]);
        assert_eq!(read[9..], [10.0; 9]);
    }

    proptest! {
        #[test]
        fn between_two_neighbours_means_between_their_values(
            line in prop::collection::vec(-9.0_f32..9.0, 1..9),
            count in 1_usize..40,
        ) {
            for taps in [aligned(count, line.len()), half_pixel(count, line.len())] {
                for (tap, value) in taps.iter().zip(read(&line, &taps)) {
                    let (a, b) = (line[tap.near], line[tap.far]);
                    prop_assert!(a.min(b) - 1e-5 <= value && value <= a.max(b) + 1e-5);
                }
            }
        }

        #[test]
        fn where_neighbours_are_equal_so_is_what_lies_between(
            value in -9.0_f32..9.0,
            count in 1_usize..40,
        ) {
            for taps in [aligned(count, 3), half_pixel(count, 3)] {
                for read in read(&[value; 3], &taps) {
                    // One rounding of each of the two weights' products.
                    prop_assert!((read - value).abs() <= value.abs() * 2e-7 + f32::MIN_POSITIVE);
                }
            }
        }
    }
}
