//! Between `[batch, channels, height, width]` and the layout of the kernels.

use rayon::prelude::*;

/// Side of the square that is transposed within the first-level cache.
const SQUARE: usize = 32;

/// `[batch, channels, pixels]` to `[batch, pixels, channels]`.
pub fn to_channels_last(batch: usize, channels: usize, input: &[f32], output: &mut [f32]) {
    transpose(batch, channels, input, output);
}

/// `[batch, pixels, channels]` to `[batch, channels, pixels]`.
pub fn to_channels_first(batch: usize, channels: usize, input: &[f32], output: &mut [f32]) {
    let rows = input.len().checked_div(batch * channels).unwrap_or(0);
    transpose(batch, rows, input, output);
}

/// `[batch, rows, columns]` to `[batch, columns, rows]`.
fn transpose(batch: usize, rows: usize, input: &[f32], output: &mut [f32]) {
    assert_eq!(input.len(), output.len(), "output does not match the input");
    if input.is_empty() {
        return;
    }
    let matrix = input.len() / batch;
    assert_eq!((matrix * batch, matrix % rows), (input.len(), 0), "input is not whole images");
    let columns = matrix / rows;
    let band = SQUARE * rows;
    for (input, output) in input.chunks_exact(matrix).zip(output.chunks_exact_mut(matrix)) {
        output.par_chunks_mut(band).enumerate().for_each(|(index, output)| {
            transpose_band(index * SQUARE, rows, columns, input, output);
        });
    }
}

/// Fills the rows of the result that hold columns `first..` of the input.
fn transpose_band(first: usize, rows: usize, columns: usize, input: &[f32], output: &mut [f32]) {
    for top in (0..rows).step_by(SQUARE) {
        for (column, output) in output.chunks_exact_mut(rows).enumerate() {
            let bottom = rows.min(top + SQUARE);
            for (row, value) in (top..bottom).zip(&mut output[top..bottom]) {
                *value = input[row * columns + first + column];
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn channels_move_to_the_end() {
        let mut output = [0.0; 6];
        to_channels_last(1, 2, &[1., 2., 3., 10., 20., 30.], &mut output);
        assert_eq!(output, [1., 10., 2., 20., 3., 30.]);
    }

    proptest! {
        #[test]
        fn there_and_back_is_the_identity(batch in 1..4_usize, channels in 1..80_usize, pixels in 1..80_usize) {
            let input: Vec<f32> = (0..batch * channels * pixels).map(|i| i as f32).collect();
            let (mut last, mut first) = (vec![0.0; input.len()], vec![0.0; input.len()]);
            to_channels_last(batch, channels, &input, &mut last);
            to_channels_first(batch, channels, &last, &mut first);
            prop_assert_eq!(first, input);
        }
    }
}
