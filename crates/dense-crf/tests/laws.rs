//! What must hold for every image, beside the exact sum over all pairs of pixels.

use dense_crf::{Appearance, DenseCrf, Error, Params, Smoothness, refine_mask};
use proptest::prelude::*;

/// The lattice only approximates a Gaussian. After one update at unit weights, probabilities
/// differ from the exact ones by this much at most and on average (seen: 0.04 and 0.012).
const EXACT_MAX: f32 = 0.08;
const EXACT_MEAN: f32 = 0.02;

#[derive(Debug, Clone)]
struct Case {
    width: usize,
    height: usize,
    labels: usize,
    rgb: Vec<u8>,
    probabilities: Vec<f32>,
}

impl Case {
    fn infer(&self, params: Params) -> Vec<f32> {
        let crf = DenseCrf::new(self.width, self.height, &self.rgb, params)
            .expect("cases are valid images");
        crf.infer(&self.probabilities, self.labels).expect("cases are distributions")
    }

    fn pixels(&self) -> usize {
        self.width * self.height
    }
}

/// Patches of a few colours with grain, and random probabilities.
fn cases(labels: impl Strategy<Value = usize>) -> impl Strategy<Value = Case> {
    (1_usize..20, 1_usize..16, labels, any::<u64>()).prop_map(|(width, height, labels, seed)| {
        let mut random = lcg(seed);
        let colours: Vec<u8> = (0..12).map(|_| (random() * 256.0) as u8).collect();
        let mut rgb = Vec::new();
        for i in 0..width * height {
            let patch = (i % width / 7 + i / width / 6) % 4;
            for channel in 0..3 {
                let grain = (random() * 9.0) as u8;
                rgb.push(colours[patch * 3 + channel].saturating_add(grain));
            }
        }
        let mut probabilities: Vec<f32> =
            (0..labels * width * height).map(|_| random() + 1e-3).collect();
        for pixel in 0..width * height {
            let at = |label| label * width * height + pixel;
            let sum: f32 = (0..labels).map(|label| probabilities[at(label)]).sum();
            (0..labels).for_each(|label| probabilities[at(label)] /= sum);
        }
        Case { width, height, labels, rgb, probabilities }
    })
}

/// Uniform in `[0, 1)`.
fn lcg(mut state: u64) -> impl FnMut() -> f32 {
    move || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1 << 24) as f32
    }
}

fn params() -> impl Strategy<Value = Params> {
    prop_oneof![Just(Params::glas()), Just(Params::natural())]
}

/// Mean field with every pair of pixels summed, in double precision.
fn exact(case: &Case, params: &Params) -> Vec<f32> {
    let n = case.pixels();
    let kernels = [
        params.smoothness.map(|k| (k.weight, k.theta_gamma, f32::INFINITY)),
        params.appearance.map(|k| (k.weight, k.theta_alpha, k.theta_beta)),
    ];
    let mut joint = vec![0.0; n * n];
    for (weight, space, colour) in kernels.into_iter().flatten() {
        let kernel: Vec<f64> =
            (0..n * n).map(|ij| pair(case, ij / n, ij % n, space, colour)).collect();
        let sums: Vec<f64> = kernel.chunks(n).map(|row| row.iter().sum()).collect();
        for (ij, joint) in joint.iter_mut().enumerate() {
            *joint += f64::from(weight) * kernel[ij] / (sums[ij / n] * sums[ij % n]).sqrt();
        }
    }
    let mut q: Vec<f64> = case.probabilities.iter().map(|&p| f64::from(p)).collect();
    for _ in 0..params.iterations {
        let energy: Vec<f64> = (0..q.len())
            .map(|at| {
                let row = &joint[at % n * n..][..n];
                let plane = &q[at / n * n..][..n];
                let message: f64 = row.iter().zip(plane).map(|(k, q)| k * q).sum();
                f64::from(case.probabilities[at].max(1e-5)).ln() + message
            })
            .collect();
        let total =
            |pixel: usize| -> f64 { (0..case.labels).map(|l| energy[l * n + pixel].exp()).sum() };
        q = (0..q.len()).map(|at| energy[at].exp() / total(at % n)).collect();
    }
    q.into_iter().map(|q| q as f32).collect()
}

fn pair(case: &Case, i: usize, j: usize, space: f32, colour: f32) -> f64 {
    let square = |a: f32, b: f32, theta: f32| f64::from((a - b) / theta).powi(2);
    let at = |pixel: usize| ((pixel % case.width) as f32, (pixel / case.width) as f32);
    let channel = |pixel: usize, c: usize| f32::from(case.rgb[pixel * 3 + c]);
    let position = square(at(i).0, at(j).0, space) + square(at(i).1, at(j).1, space);
    let colours: f64 = (0..3).map(|c| square(channel(i, c), channel(j, c), colour)).sum();
    (-(position + colours) / 2.0).exp()
}

fn greatest_difference(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

fn mean_difference(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).sum::<f32>() / a.len() as f32
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn answers_are_distributions(case in cases(1_usize..7), params in params()) {
        let answer = case.infer(params);
        prop_assert!(answer.iter().all(|p| (0.0..=1.0).contains(p)));
        for pixel in 0..case.pixels() {
            let sum: f32 = answer[pixel..].iter().step_by(case.pixels()).sum();
            prop_assert!((sum - 1.0).abs() < 1e-5, "{sum}");
        }
    }

    // One update, because further ones amplify any difference where the labels are undecided.
    #[test]
    fn an_update_stays_near_the_exact_sum_over_all_pairs(
        case in cases(2_usize..4), mut params in params(),
    ) {
        params.iterations = 1;
        params.smoothness.as_mut().unwrap().weight = 1.0;
        params.appearance.as_mut().unwrap().weight = 1.0;
        let (answer, exact) = (case.infer(params), exact(&case, &params));
        let (most, mean) = (greatest_difference(&answer, &exact), mean_difference(&answer, &exact));
        prop_assert!(most < EXACT_MAX && mean < EXACT_MEAN, "max {most} mean {mean}");
    }

    #[test]
    fn renaming_labels_renames_the_answer(case in cases(2_usize..7), params in params()) {
        let mut reversed = case.clone();
        let planes = case.probabilities.chunks(case.pixels()).rev();
        reversed.probabilities = planes.flatten().copied().collect();
        let expected = case.infer(params);
        let answer = reversed.infer(params);
        let renamed: Vec<f32> = answer.chunks(case.pixels()).rev().flatten().copied().collect();
        // With two labels exact; with more, sums over labels run in another order.
        let tolerance = if case.labels == 2 { 0.0 } else { 1e-3 };
        prop_assert!(greatest_difference(&expected, &renamed) <= tolerance);
    }

    #[test]
    fn on_a_constant_image_appearance_is_smoothness_of_its_width(case in cases(2_usize..3)) {
        let mut flat = case;
        flat.rgb.fill(77);
        let appearance = Appearance { weight: 2.0, theta_alpha: 4.0, theta_beta: 5.0 };
        let params = Params {
            smoothness: None,
            appearance: Some(appearance),
            iterations: 1,
            ..Params::natural()
        };
        let same = Smoothness { weight: 2.0, theta_gamma: 4.0 };
        let position_only = Params { smoothness: Some(same), appearance: None, ..params };
        // Lattices of five and two dimensions approximate the same Gaussian differently.
        let difference = mean_difference(&flat.infer(params), &exact(&flat, &position_only));
        prop_assert!(difference < EXACT_MEAN, "{difference}");
    }

    #[test]
    fn zero_weights_return_the_input_bit_for_bit(case in cases(2_usize..3)) {
        let params = Params {
            smoothness: Some(Smoothness { weight: 0.0, theta_gamma: 3.0 }),
            appearance: None,
            ..Params::glas()
        };
        let mask = &case.probabilities[case.pixels()..];
        let refined = refine_mask(&case.rgb, case.width, case.height, mask, &params).unwrap();
        prop_assert_eq!(refined, mask);
    }

    #[test]
    fn tiles_with_a_generous_halo_agree_with_the_whole(seed in any::<u64>(), labels in 2_usize..4) {
        let case = stripes(seed, labels);
        let params = Params {
            smoothness: Some(Smoothness { weight: 3.0, theta_gamma: 1.5 }),
            appearance: Some(Appearance { weight: 5.0, theta_alpha: 2.0, theta_beta: 9.0 }),
            iterations: 2,
            halo_thetas: 12.0,
            ..Params::natural()
        };
        let need = params.estimated_bytes(case.width, case.height, labels).unwrap();
        let tiled = Params { max_bytes: need * 2 / 3, ..params };
        let difference = greatest_difference(&case.infer(params), &case.infer(tiled));
        prop_assert!(difference < 1e-4, "{difference}");
        // And with the default overlap, nearly so.
        let default = Params { halo_thetas: 4.0, ..tiled };
        let difference = greatest_difference(&case.infer(params), &case.infer(default));
        prop_assert!(difference < 0.05, "{difference}");
    }
}

/// A wider image, so that it can be cut.
fn stripes(seed: u64, labels: usize) -> Case {
    let (width, height) = (160, 24);
    let mut random = lcg(seed);
    let rgb = (0..width * height * 3)
        .map(|i| 40 + (i / 3 % width / 20 * 25) as u8 + (random() * 12.0) as u8)
        .collect();
    let mut probabilities = vec![0.0; labels * width * height];
    for pixel in 0..width * height {
        let scores: Vec<f32> = (0..labels).map(|_| random() + 0.1).collect();
        let sum: f32 = scores.iter().sum();
        for (label, score) in scores.iter().enumerate() {
            probabilities[label * width * height + pixel] = score / sum;
        }
    }
    Case { width, height, labels, rgb, probabilities }
}

#[test]
fn a_mask_that_says_something_is_decided_as_by_the_exact_sum() {
    let (width, height) = (26, 22);
    let mut random = lcg(3);
    let inside = |i: usize| (i % width).abs_diff(12).pow(2) + (i / width).abs_diff(10).pow(2) < 60;
    let mut rgb = Vec::new();
    let mut foreground = Vec::new();
    for i in 0..width * height {
        let colour = if inside(i) { [130.0, 80.0, 150.0] } else { [215.0, 165.0, 200.0] };
        rgb.extend(colour.map(|value| (value + 12.0 * random()) as u8));
        foreground.push(if inside(i) { 0.35 } else { 0.05 } + 0.6 * random());
    }
    let background = foreground.iter().map(|p| 1.0 - p);
    let probabilities = background.chain(foreground.iter().copied()).collect();
    let case = Case { width, height, labels: 2, rgb, probabilities };
    for params in [Params::glas(), Params::natural()] {
        let (answer, exact) = (case.infer(params), exact(&case, &params));
        let agree = answer.iter().zip(&exact).filter(|(a, b)| (**a > 0.5) == (**b > 0.5)).count();
        assert!(agree as f32 >= 0.99 * answer.len() as f32, "{agree} of {}", answer.len());
        let mean = mean_difference(&answer, &exact);
        assert!(mean < 0.02, "{mean}");
    }
}

#[test]
fn any_number_of_threads_gives_the_same_bytes() {
    let case = stripes(7, 3);
    let run = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let answer = pool.install(|| case.infer(Params::natural()));
        answer.into_iter().map(f32::to_bits).collect::<Vec<_>>()
    };
    let one = run(1);
    assert!([2, 3, 8].into_iter().all(|threads| run(threads) == one));
}

#[test]
fn sums_slightly_off_are_renormalized_and_worse_ones_refused() {
    let params = Params { smoothness: None, appearance: None, ..Params::glas() };
    let crf = DenseCrf::new(1, 1, &[0; 3], params).unwrap();
    let answer = crf.infer(&[0.5, 0.5005], 2).unwrap();
    assert!((answer[0] + answer[1] - 1.0).abs() < 1e-6);
    assert!(matches!(crf.infer(&[0.5, 0.6], 2), Err(Error::Sum { pixel: 0, .. })));
}

#[test]
fn hostile_input_is_an_error_that_says_where() {
    let rgb = [0; 12];
    let crf = DenseCrf::new(2, 2, &rgb, Params::glas()).unwrap();
    for bad in [f32::NAN, f32::INFINITY, -0.1, 1.1] {
        let error = crf.infer(&[0.5, 0.5, 0.5, 0.5, 0.5, 0.5, bad, 0.5], 2).unwrap_err();
        assert!(matches!(error, Error::Probability { label: 1, pixel: 2, .. }), "{error}");
    }
    assert!(matches!(crf.infer(&[0.5; 7], 2), Err(Error::Length { name: "probabilities", .. })));
    assert!(matches!(crf.infer(&[], 0), Err(Error::Empty { .. })));
    assert!(matches!(crf.infer(&[0.5; 8], usize::MAX), Err(Error::TooLarge { .. })));
    let new = |width, height| DenseCrf::new(width, height, &rgb, Params::glas());
    assert!(matches!(new(0, 2), Err(Error::Empty { .. })));
    assert!(matches!(new(3, 2), Err(Error::Length { name: "rgb", .. })));
    assert!(matches!(new(usize::MAX, 2), Err(Error::TooLarge { .. })));
    let mask = refine_mask(&rgb, 2, 2, &[0.5; 3], &Params::glas());
    assert!(matches!(mask, Err(Error::Length { name: "foreground", .. })));
}

#[test]
fn a_kernel_too_narrow_for_the_lattice_is_an_error() {
    let narrow = Appearance { weight: 1.0, theta_alpha: 1e-4, theta_beta: 1e-4 };
    let params = Params { appearance: Some(narrow), ..Params::natural() };
    let crf = DenseCrf::new(2, 2, &[9; 12], params).unwrap();
    assert_eq!(crf.infer(&[0.5; 8], 2), Err(Error::TooNarrow));
}
