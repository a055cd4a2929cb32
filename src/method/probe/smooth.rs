//! Maps smoothed by a Gaussian.

/// Smooths a map of `[rows, columns]` by a Gaussian of `sigma` cells; the map is mirrored at its
/// borders.
pub(super) fn smooth(map: &[f32], [rows, columns]: [usize; 2], sigma: f64) -> Vec<f32> {
    let kernel = kernel(sigma);
    if kernel.len() == 1 {
        return map.to_vec();
    }
    let along_rows: Vec<f32> =
        map.chunks_exact(columns).flat_map(|row| smooth_line(row, &kernel)).collect();
    let mut smoothed = vec![0.0; map.len()];
    for column in 0..columns {
        let cells: Vec<f32> = (0..rows).map(|row| along_rows[row * columns + column]).collect();
        for (row, value) in smooth_line(&cells, &kernel).into_iter().enumerate() {
            smoothed[row * columns + column] = value;
        }
    }
    smoothed
}

/// One half of the kernel, from its middle to four `sigma` away; with the other half it sums to 1.
pub(crate) fn kernel(sigma: f64) -> Vec<f32> {
    let reach = if sigma > 0.0 { (4.0 * sigma + 0.5) as usize } else { 0 };
    let half: Vec<f64> =
        (0..=reach).map(|x| (-0.5 * (x as f64 / sigma.max(1e-9)).powi(2)).exp()).collect();
    let sum = 2.0 * half.iter().sum::<f64>() - half[0];
    half.into_iter().map(|value| (value / sum) as f32).collect()
}

fn smooth_line(values: &[f32], kernel: &[f32]) -> Vec<f32> {
    let length = values.len() as isize;
    let at = |index: isize| {
        // … c b a | a b c d | d c b …, as often as the kernel reaches over.
        let folded = index.rem_euclid(2 * length);
        values[folded.min(2 * length - 1 - folded) as usize]
    };
    let smoothed = (0..length).map(|index| {
        let beside =
            kernel.iter().enumerate().skip(1).map(|(away, weight)| {
                weight * (at(index - away as isize) + at(index + away as isize))
            });
        kernel[0] * values[index as usize] + beside.sum::<f32>()
    });
    smoothed.collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn without_spread_nothing_changes() {
        assert_eq!(smooth(&[1.0, 2.0, 3.0, 4.0], [2, 2], 0.0), [1.0, 2.0, 3.0, 4.0]);
    }

    #[test]
    fn a_line_is_smoothed_as_scipy_does() {
        // scipy.ndimage.gaussian_filter([0, 0, 1, 0], 1.0)
        let expected = [0.05842, 0.24224, 0.40338, 0.29596];
        let found = smooth(&[0.0, 0.0, 1.0, 0.0], [1, 4], 1.0);
        assert!(
            found.iter().zip(expected).all(|(a, b): (&f32, f32)| (a - b).abs() < 1e-4),
            "{found:?}"
        );
    }

    proptest! {
        #[test]
        fn a_constant_map_stays_and_the_mean_is_kept(
            rows in 1_usize..9, columns in 1_usize..9, sigma in 0.1_f64..4.0
        ) {
            let constant = smooth(&vec![2.5; rows * columns], [rows, columns], sigma);
            prop_assert!(constant.iter().all(|value| (value - 2.5).abs() < 1e-4));
            let map: Vec<f32> = (0..rows * columns).map(|i| ((i * 7) % 5) as f32).collect();
            let sum: f32 = smooth(&map, [rows, columns], sigma).iter().sum();
            prop_assert!((sum - map.iter().sum::<f32>()).abs() < 1e-2);
        }
    }
}
