//! Draws a disc, blurs and corrupts its mask, and lets the CRF repair it.
//!
//! ```text
//! cargo run --release -p dense-crf --example refine
//! ```
#![expect(clippy::print_stdout, reason = "an example talks to its reader")]

use dense_crf::{Params, refine_mask};

const WIDTH: usize = 160;
const HEIGHT: usize = 120;

fn main() -> Result<(), dense_crf::Error> {
    let mut noise = noise();
    let distance = |i: usize| {
        let (x, y) = ((i % WIDTH) as f32 - 80.0, (i / WIDTH) as f32 - 60.0);
        x.hypot(y) - 35.0
    };
    let truth: Vec<bool> = (0..WIDTH * HEIGHT).map(|i| distance(i) < 0.0).collect();

    // A purple disc on pink, with grain.
    let mut rgb = Vec::with_capacity(truth.len() * 3);
    for &inside in &truth {
        let colour = if inside { [130.0, 80.0, 150.0] } else { [215.0, 165.0, 200.0] };
        rgb.extend(colour.map(|value: f32| (value + 16.0 * noise()) as u8));
    }
    // A mask that knows roughly where the disc is: soft by 12 pixels, and noisy.
    let mask: Vec<f32> = (0..truth.len())
        .map(|i| (0.5 - distance(i) / 24.0 + 0.9 * noise()).clamp(0.05, 0.95))
        .collect();

    let refined = refine_mask(&rgb, WIDTH, HEIGHT, &mask, &Params::natural())?;
    println!("wrong pixels before: {:5.2} %", error(&mask, &truth));
    println!("wrong pixels after:  {:5.2} %", error(&refined, &truth));
    Ok(())
}

/// Share of pixels on the wrong side of one half, in percent.
fn error(mask: &[f32], truth: &[bool]) -> f32 {
    let wrong = mask.iter().zip(truth).filter(|(p, truth)| (**p > 0.5) != **truth).count();
    100.0 * wrong as f32 / truth.len() as f32
}

/// Uniform in `[−0.5, 0.5)`.
fn noise() -> impl FnMut() -> f32 {
    let mut state = 1_u64;
    move || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1 << 24) as f32 - 0.5
    }
}
