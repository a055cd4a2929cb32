//! Max pooling.

use conv_kernels::{Isa, pool::MaxPool};
use proptest::prelude::*;

use crate::reference::{assert_close, noise};

/// Largest value of each window and where in the input it lies.
fn naive_pool(
    (kernel, stride, padding): (usize, usize, usize),
    batch: usize,
    (height, width, channels): (usize, usize, usize),
    (out_height, out_width): (usize, usize),
    input: &[f32],
) -> Vec<(f32, usize)> {
    let mut found = Vec::new();
    for n in 0..batch {
        for oy in 0..out_height {
            for ox in 0..out_width {
                for c in 0..channels {
                    let window = (0..kernel * kernel).filter_map(|place| {
                        let y = (oy * stride + place / kernel).checked_sub(padding)?;
                        let x = (ox * stride + place % kernel).checked_sub(padding)?;
                        let at = ((n * height + y) * width + x) * channels + c;
                        (y < height && x < width).then(|| (input[at], at))
                    });
                    found.push(window.reduce(|a, b| if b.0 > a.0 { b } else { a }).unwrap());
                }
            }
        }
    }
    found
}

proptest! {
    #[test]
    fn pooling_finds_the_largest_value_and_returns_its_gradient(
        window in prop::sample::select(vec![(3, 2, 1), (2, 2, 0), (3, 1, 1), (1, 1, 0)]),
        batch in 1..3_usize,
        size in (3..20_usize, 3..20_usize, 1..40_usize),
        coarse in any::<bool>(),
    ) {
        let pool = MaxPool::new(window, batch, size).unwrap();
        let mut input = noise(1, batch * size.0 * size.1 * size.2);
        if coarse {
            // Many equal values: the first must win.
            input.iter_mut().for_each(|x| *x = x.round());
        }
        let expected = naive_pool(window, batch, size, pool.out_size(), &input);
        let grad = noise(2, pool.output_len());
        let mut expected_grad = vec![0.0_f64; input.len()];
        expected.iter().zip(&grad).for_each(|(&(_, at), &g)| expected_grad[at] += f64::from(g));
        for isa in Isa::available() {
            let (mut output, mut places) = (vec![f32::NAN; grad.len()], vec![0; grad.len()]);
            pool.forward(isa, &input, &mut output, &mut places);
            prop_assert!(output.iter().zip(&expected).all(|(y, e)| *y == e.0));
            let mut grad_input = vec![f32::NAN; input.len()];
            pool.backward(isa, &grad, &places, &mut grad_input);
            assert_close("gradient", &grad_input, &expected_grad, 1e-5);
        }
    }
}
