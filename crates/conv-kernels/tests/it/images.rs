//! Pooling and resizing.

use conv_kernels::{Isa, pool::MaxPool, resize::Resize};
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

    #[test]
    fn resizing_interpolates_between_four_neighbours(
        batch in 1..3_usize,
        (from, to) in ((1..12_usize, 1..12_usize), (1..30_usize, 1..30_usize)),
        channels in 1..20_usize,
    ) {
        let resize = Resize { batch, from, to, channels };
        let input = noise(1, resize.input_len());
        let position = |i: usize, from: usize, to: usize| {
            if to > 1 { i as f64 * (from - 1) as f64 / (to - 1) as f64 } else { 0.0 }
        };
        let tent = |a: f64, b: usize| (1.0 - (a - b as f64).abs()).max(0.0);
        let mut expected = Vec::new();
        for n in 0..batch {
            for y in 0..to.0 {
                for x in 0..to.1 {
                    for c in 0..channels {
                        let (py, px) = (position(y, from.0, to.0), position(x, from.1, to.1));
                        let mut sum = 0.0;
                        for sy in 0..from.0 {
                            for sx in 0..from.1 {
                                let at = ((n * from.0 + sy) * from.1 + sx) * channels + c;
                                sum += f64::from(input[at]) * tent(py, sy) * tent(px, sx);
                            }
                        }
                        expected.push(sum);
                    }
                }
            }
        }
        for isa in Isa::available() {
            let mut output = vec![f32::NAN; resize.output_len()];
            resize.forward(isa, &input, &mut output);
            assert_close("resized", &output, &expected, 2e-5);
        }
    }

    #[test]
    fn the_backward_resizing_is_the_adjoint_of_the_forward_one(
        batch in 1..3_usize,
        (from, to) in ((1..12_usize, 1..12_usize), (1..30_usize, 1..30_usize)),
        channels in 1..5_usize,
    ) {
        let resize = Resize { batch, from, to, channels };
        let (x, y) = (noise(1, resize.input_len()), noise(2, resize.output_len()));
        let dot = |a: &[f32], b: &[f32]| -> f64 {
            a.iter().zip(b).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum()
        };
        for isa in Isa::available() {
            let (mut forth, mut back) = (vec![f32::NAN; y.len()], vec![f32::NAN; x.len()]);
            resize.forward(isa, &x, &mut forth);
            resize.backward(isa, &y, &mut back);
            let (left, right) = (dot(&forth, &y), dot(&x, &back));
            prop_assert!((left - right).abs() < 1e-4 * (1.0 + y.len() as f64).sqrt());
        }
    }
}
