//! Padding by reflection, as a rule for where a pixel is read from.

/// The pixel of a line of `size` that stands at `position` once the line is
/// mirrored at both ends for ever, without repeating the edge pixel.
///
/// ```text
/// position  … -3 -2 -1  0  1  2  3  4  5 …      size 4
/// pixel     …  3  2  1  0  1  2  3  2  1 …
/// ```
///
/// Defined for any padding, even one wider than the line.
pub fn reflect(position: i64, size: usize) -> usize {
    assert!(size > 0, "an image has at least one pixel");
    let last = size as i64 - 1;
    if last == 0 {
        return 0;
    }
    let folded = position.rem_euclid(2 * last);
    folded.min(2 * last - folded) as usize
}

/// Where `length` pixels from `start` on are read from; `start` may lie before the line.
pub(crate) fn reflected_run(start: i64, length: usize, size: usize) -> Vec<usize> {
    (start..).take(length).map(|position| reflect(position, size)).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_edge_pixel_is_not_repeated() {
        assert_eq!(reflected_run(-3, 10, 4), [3, 2, 1, 0, 1, 2, 3, 2, 1, 0]);
    }

    #[test]
    fn a_line_narrower_than_its_padding_is_reflected_again_and_again() {
        assert_eq!(reflected_run(-3, 8, 2), [1, 0, 1, 0, 1, 0, 1, 0]);
        assert_eq!(reflected_run(-15, 32, 1), [0; 32]);
    }

    proptest! {
        #[test]
        fn neighbours_stay_neighbours(position in -10_000_i64..10_000, size in 2_usize..700) {
            let step = reflect(position, size).abs_diff(reflect(position + 1, size));
            prop_assert_eq!(step, 1);
        }

        #[test]
        fn the_image_itself_is_left_alone(size in 1_usize..700) {
            prop_assert_eq!(reflected_run(0, size, size), (0..size).collect::<Vec<_>>());
        }
    }
}
