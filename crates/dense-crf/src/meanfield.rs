//! Mean-field inference: a few updates of all pixels at once, each by the messages of all others.
//!
//! ```text
//! Q = p, then repeatedly   Eₗ = ln pₗ + Σ_m w_m (D^−½ K_m D^−½ Qₗ),   Q = softmax(E)
//! ```
//!
//! Probabilities come and go as planes, labels × pixels.

use rayon::prelude::*;

use crate::{kernel::Kernels, lattice::Scratch};

/// Smallest probability whose logarithm is taken.
const CLIP: f32 = 1e-5;

/// Labels filtered at once; four floats are one vector register on every machine we build for.
pub(crate) const LANES: usize = 4;

/// Working memory per pixel and label: input, output, and three buffers padded to [`LANES`].
pub(crate) const BYTES_PER_LABEL: usize = 4 * (2 + 3);
/// Working memory per pixel: the padding, and buffers for the softmax and the normalization.
pub(crate) const BYTES_PER_PIXEL: usize = 4 * (3 * (LANES - 1) + 4);

/// Pixels that one task computes.
const TASK: usize = 4096;

/// Refines the probabilities of two or more labels.
pub(crate) fn infer(
    kernels: &Kernels,
    iterations: usize,
    probabilities: &[f32],
    labels: usize,
) -> Vec<f32> {
    match labels {
        2 => infer_two(kernels, iterations, probabilities),
        _ => infer_many(kernels, iterations, probabilities, labels),
    }
}

/// With two labels only the difference of energies `E = E₁ − E₀` matters.
///
/// Filters are linear, so it needs only the filtered difference `Q₁ − Q₀ = tanh(E/2)`:
/// one channel does the work of two, and swapping the labels only flips signs.
fn infer_two(kernels: &Kernels, iterations: usize, probabilities: &[f32]) -> Vec<f32> {
    let (background, foreground) = probabilities.split_at(probabilities.len() / 2);
    let pairs = foreground.par_iter().zip(background);
    let log_odds: Vec<[f32; 1]> =
        pairs.map(|(f, b)| [f.max(CLIP).ln() - b.max(CLIP).ln()]).collect();
    let mut scratch = Scratch::default();
    let mut energy = log_odds.clone();
    let mut lead = vec![[0.0]; energy.len()];
    for _ in 0..iterations {
        map_pixels(&energy, &mut lead, |&[energy], lead| *lead = [tanh_half(energy)]);
        energy.copy_from_slice(&log_odds);
        kernels.add_messages(&lead, &mut scratch, &mut energy);
    }
    let background = energy.par_iter().map(|[energy]| logistic(-energy));
    background.chain(energy.par_iter().map(|[energy]| logistic(*energy))).collect()
}

/// Any number of labels, [`LANES`] at a time; surplus lanes have energy −∞, so probability zero.
fn infer_many(
    kernels: &Kernels,
    iterations: usize,
    probabilities: &[f32],
    labels: usize,
) -> Vec<f32> {
    let pixels = probabilities.len() / labels;
    let unary: Vec<_> =
        probabilities.chunks(LANES * pixels).map(|p| log_lanes(p, pixels)).collect();
    let mut energy = unary.clone();
    let mut q = unary.clone();
    let mut scratch = Scratch::default();
    softmax(&energy, &mut q);
    for _ in 0..iterations {
        for ((energy, unary), q) in energy.iter_mut().zip(&unary).zip(&q) {
            energy.copy_from_slice(unary);
            kernels.add_messages(q, &mut scratch, energy);
        }
        softmax(&energy, &mut q);
    }
    (0..labels)
        .flat_map(|label| q[label / LANES].iter().map(move |lanes| lanes[label % LANES]))
        .collect()
}

/// Interleaves the logarithms of up to [`LANES`] planes.
fn log_lanes(planes: &[f32], pixels: usize) -> Vec<[f32; LANES]> {
    let mut lanes = vec![[f32::NEG_INFINITY; LANES]; pixels];
    for (lane, plane) in planes.chunks_exact(pixels).enumerate() {
        map_pixels(plane, &mut lanes, |p, lanes| lanes[lane] = p.max(CLIP).ln());
    }
    lanes
}

/// `q = softmax(energy)` over all lanes of all groups, pixel by pixel.
fn softmax(energy: &[Vec<[f32; LANES]>], q: &mut [Vec<[f32; LANES]>]) {
    let mut most = vec![f32::NEG_INFINITY; energy[0].len()];
    for energy in energy {
        map_pixels(energy, &mut most, |energy, most| {
            *most = energy.iter().copied().fold(*most, f32::max);
        });
    }
    let mut total = vec![0.0; most.len()];
    for (energy, q) in energy.iter().zip(&mut *q) {
        q.copy_from_slice(energy);
        map_pixels(&most, q, |most, q| q.iter_mut().for_each(|q| *q = (*q - most).exp()));
        map_pixels(q, &mut total, |q, total| *total += (q[0] + q[1]) + (q[2] + q[3]));
    }
    for q in q {
        map_pixels(&total, q, |total, q| q.iter_mut().for_each(|q| *q /= total));
    }
}

/// Calls `f` with each pixel of `from` and the same pixel of `to`.
fn map_pixels<A: Sync, B: Send>(from: &[A], to: &mut [B], f: impl Fn(&A, &mut B) + Sync) {
    to.par_chunks_mut(TASK).zip(from.par_chunks(TASK)).for_each(|(to, from)| {
        from.iter().zip(to).for_each(|(from, to)| f(from, to));
    });
}

/// `tanh(x/2)`; `tanh_half(−x)` is `−tanh_half(x)` to the last bit.
fn tanh_half(x: f32) -> f32 {
    let e = (-x.abs()).exp();
    ((1.0 - e) / (1.0 + e)).copysign(x)
}

/// `1 / (1 + exp(−x))`
fn logistic(x: f32) -> f32 {
    1.0 / (1.0 + (-x).exp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn softmax_spans_groups_and_ignores_surplus_lanes() {
        let none = f32::NEG_INFINITY;
        let energy = [vec![[0.0; 4]], vec![[2_f32.ln(), none, none, none]]];
        let mut q = energy.clone();
        softmax(&energy, &mut q);
        let close = |q: f32, expected: f32| assert!((q - expected).abs() < 1e-6, "{q}");
        q[0][0].into_iter().for_each(|q| close(q, 1.0 / 6.0));
        close(q[1][0][0], 1.0 / 3.0);
        assert_eq!(q[1][0][1..], [0.0; 3]);
    }

    #[test]
    fn the_lead_of_a_label_is_its_probability_less_the_other() {
        for x in [-90.0, -2.0, -0.0, 0.0, 0.3, 5.0, 90.0] {
            let expected = logistic(x) - logistic(-x);
            assert!((tanh_half(x) - expected).abs() < 1e-6, "{x}");
        }
    }

    #[test]
    fn probabilities_are_clipped_before_the_logarithm() {
        assert_eq!(log_lanes(&[0.0, 1.0], 1)[0][..2], [CLIP.ln(), 0.0]);
    }

    #[test]
    fn two_labels_as_one_channel_agree_with_two_channels() {
        use crate::{Params, tile::Window};
        let rgb: Vec<u8> = (0..7 * 5 * 3).map(|i| (i * 37 % 251) as u8).collect();
        let window = Window { x: 0, y: 0, width: 7, height: 5 };
        let kernels = Kernels::build(&rgb, 7, &window, &Params::natural()).unwrap();
        let foreground: Vec<f32> = (0..35).map(|i| (i * 13 % 35) as f32 / 35.0).collect();
        let planes: Vec<f32> =
            foreground.iter().map(|p| 1.0 - p).chain(foreground.iter().copied()).collect();
        let one = infer(&kernels, 5, &planes, 2);
        let two = infer_many(&kernels, 5, &planes, 2);
        for (one, two) in one.iter().zip(&two) {
            assert!((one - two).abs() < 1e-5, "{one} {two}");
        }
    }
}
