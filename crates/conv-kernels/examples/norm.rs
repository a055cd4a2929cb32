//! Milliseconds of the passes around a convolution: batch norm with residual and ReLU, pooling.
//!
//! `cargo run --release -p conv-kernels --example norm [-- THREADS]`
#![allow(clippy::print_stdout, reason = "prints its table")]

use std::time::Instant;

use conv_kernels::{
    Isa,
    batch_norm::{self, Activation, BatchNorm, Moments},
    pool::MaxPool,
};

fn best(mut work: impl FnMut()) -> f64 {
    let time = |_| {
        let start = Instant::now();
        work();
        start.elapsed().as_secs_f64() * 1e3
    };
    (0..30).map(time).fold(f64::INFINITY, f64::min)
}

fn layer(isa: Isa, batch: usize, side: usize, channels: usize) {
    let len = batch * side * side * channels;
    let (input, residual) = (vec![0.5; len], vec![0.25; len]);
    let (mut output, mut values, mut grad) = (vec![0.0; len], vec![0.5; len], vec![0.25; len]);
    let moments = Moments::measure(isa, &input, channels);
    let (gamma, beta) = (vec![1.0; channels], vec![0.0; channels]);
    let norm = BatchNorm {
        mean: &moments.mean,
        variance: &moments.variance,
        gamma: &gamma,
        beta: &beta,
        epsilon: 1e-5,
    };
    let measure = best(|| drop(Moments::measure(isa, &input, channels)));
    let forward = best(|| batch_norm::normalize(isa, &norm, &input, None, true, &mut output));
    let added =
        best(|| batch_norm::normalize(isa, &norm, &input, Some(&residual), true, &mut output));
    let backward = best(|| {
        let relu = Activation::Relu;
        batch_norm::backward(isa, &norm, &mut values, relu, &mut grad, false, |part| {
            Some(part.clone())
        });
    });
    let both = best(|| {
        let relu = Activation::ReluOf(&output);
        batch_norm::backward(isa, &norm, &mut values, relu, &mut grad, true, |part| {
            Some(part.clone())
        });
    });
    println!(
        "{batch}x{side}x{side}x{channels}: moments {measure:.2}, relu(norm) {forward:.2}, \
         relu(norm + residual) {added:.2}, backward {backward:.2}, with residual {both:.2}"
    );
}

fn pooling(isa: Isa, batch: usize, side: usize, channels: usize) {
    let pool = MaxPool::new((3, 2, 1), batch, (side, side, channels)).expect("a pooling");
    let mut input = vec![0.5; batch * side * side * channels];
    let (mut output, mut places) = (vec![0.0; pool.output_len()], vec![0; pool.output_len()]);
    let forward = best(|| pool.forward(isa, &input, &mut output, &mut places));
    let backward = best(|| pool.backward(isa, &output, &places, &mut input));
    println!("{batch}x{side}x{side}x{channels}: pooling {forward:.2}, backward {backward:.2}");
}

fn main() {
    let threads = std::env::args().nth(1).map_or(0, |n| n.parse().expect("a number of threads"));
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a pool");
    let isa = Isa::detect();
    pool.install(|| {
        for (side, channels) in [(120, 64), (60, 64), (30, 128), (15, 256), (8, 512), (60, 256)] {
            layer(isa, 8, side, channels);
        }
        pooling(isa, 8, 120, 64);
    });
}
