//! GFLOP/s of every convolution of ResNet-18 and ResNet-50, beside what the processor can do.
//!
//! `cargo run --release -p conv-kernels --example roofline [-- --json]
//! [--isa portable|avx2|avx512|neon] [--size 240] [--batch 8] [--repeat 5] [--only TEXT] [--cpu]
//! [--direct] [--list]`
//!
//! `--cpu` measures processor time on a single thread instead of the clock on all: the figure to
//! tune by on a machine that others use too (Linux only).
#![allow(clippy::print_stdout, reason = "prints its table")]

use std::{env, time::Instant};

use conv_kernels::{
    Isa,
    conv::{self, Algorithm, Conv, Epilogue, Filter, PackedWeights},
    peak::saturate,
};

/// A layer shape, and how often each network has it.
struct Layer {
    name: &'static str,
    /// The image is this many times smaller than the network's.
    shrink: usize,
    filter: Filter,
}

fn layers() -> Vec<Layer> {
    let layer = |name, shrink, i, o, kernel, stride| Layer {
        name,
        shrink,
        filter: Filter::new(i, o, kernel, stride),
    };
    vec![
        layer("stem 7x7/2 3-64", 1, 3, 64, 7, 2),
        layer("deep stem 3x3/2 3-64", 1, 3, 64, 3, 2),
        layer("deep stem 3x3 64-64", 2, 64, 64, 3, 1),
        layer("3x3 64-64", 4, 64, 64, 3, 1),
        layer("3x3/2 64-128", 4, 64, 128, 3, 2),
        layer("1x1/2 64-128", 4, 64, 128, 1, 2),
        layer("3x3 128-128", 8, 128, 128, 3, 1),
        layer("3x3/2 128-256", 8, 128, 256, 3, 2),
        layer("3x3 256-256", 16, 256, 256, 3, 1),
        layer("3x3/2 256-512", 16, 256, 512, 3, 2),
        layer("3x3 512-512", 32, 512, 512, 3, 1),
        layer("1x1 64-64", 4, 64, 64, 1, 1),
        layer("1x1 64-256", 4, 64, 256, 1, 1),
        layer("1x1 256-64", 4, 256, 64, 1, 1),
        layer("1x1 256-128", 4, 256, 128, 1, 1),
        layer("1x1/2 256-512", 4, 256, 512, 1, 2),
        layer("3x3/2 128-128", 4, 128, 128, 3, 2),
        layer("1x1 128-512", 8, 128, 512, 1, 1),
        layer("1x1 512-128", 8, 512, 128, 1, 1),
        layer("1x1 256-1024", 16, 256, 1024, 1, 1),
        layer("1x1 1024-256", 16, 1024, 256, 1, 1),
        layer("1x1 512-2048", 32, 512, 2048, 1, 1),
        layer("1x1 2048-512", 32, 2048, 512, 1, 1),
    ]
}

struct Options {
    json: bool,
    isa: Isa,
    size: usize,
    batch: usize,
    repeat: usize,
    only: String,
    cpu: bool,
    direct: bool,
    list: bool,
}

fn options() -> Options {
    let mut options = Options {
        json: false,
        isa: Isa::detect(),
        size: 240,
        batch: 8,
        repeat: 5,
        only: String::new(),
        cpu: false,
        direct: false,
        list: false,
    };
    let mut words = env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().expect("a value follows the flag");
        match word.as_str() {
            "--list" => options.list = true,
            "--json" => options.json = true,
            "--isa" => options.isa = parse_isa(&value()),
            "--size" => options.size = value().parse().expect("a number"),
            "--batch" => options.batch = value().parse().expect("a number"),
            "--repeat" => options.repeat = value().parse().expect("a number"),
            "--direct" => options.direct = true,
            "--cpu" => options.cpu = true,
            "--only" => options.only = value(),
            _ => panic!("unknown argument `{word}`"),
        }
    }
    options
}

fn parse_isa(name: &str) -> Isa {
    let found = Isa::available().into_iter().find(|isa| format!("{isa:?}").to_lowercase() == name);
    found.expect("an instruction set of this machine")
}

/// Seconds of the fastest of `repeat` runs, after one to warm up.
fn best(watch: Watch, repeat: usize, mut work: impl FnMut()) -> f64 {
    work();
    let time = |_| {
        let start = watch.seconds();
        work();
        watch.seconds() - start
    };
    (0..repeat).map(time).fold(f64::INFINITY, f64::min)
}

/// What time is measured by.
#[derive(Clone, Copy)]
enum Watch {
    Clock(Instant),
    Processor,
}

impl Watch {
    fn seconds(self) -> f64 {
        match self {
            Self::Clock(start) => start.elapsed().as_secs_f64(),
            Self::Processor => {
                // The system updates the processor time of a thread when it yields.
                std::thread::yield_now();
                let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux");
                let nanoseconds: f64 =
                    text.split(' ').next().and_then(|n| n.parse().ok()).expect("a number");
                nanoseconds * 1e-9
            }
        }
    }
}

/// GFLOP/s of a core that does nothing but multiply and add.
fn peak(options: &Options, watch: Watch) -> f64 {
    let mut operations = 0.0;
    let seconds = best(watch, options.repeat, || {
        operations = saturate(options.isa, 5_000_000);
    });
    operations / seconds / 1e9
}

fn measure(layer: &Layer, options: &Options, watch: Watch) -> [f64; 4] {
    let size = options.size.div_ceil(layer.shrink);
    let conv = Conv::new(layer.filter, options.batch, size, size).expect("a convolution");
    let (filter, isa) = (conv.filter(), options.isa);
    let algorithm = if options.direct { Algorithm::Direct } else { Algorithm::fastest(filter) };
    let weights = vec![0.01; filter.weights()];
    let mut forward = PackedWeights::forward(isa, filter, algorithm, &weights);
    let backward = PackedWeights::backward_data(isa, filter, algorithm, &weights);
    let mut input = vec![0.5; conv.input_len()];
    let mut output = vec![0.5; conv.output_len()];
    let mut grad_weights = weights.clone();
    [
        best(watch, options.repeat, || {
            conv::forward(&conv, &forward, &input, Epilogue::default(), &mut output);
        }),
        best(watch, options.repeat, || {
            conv::backward_data(&conv, &backward, &output, None, &mut input)
        }),
        best(watch, options.repeat, || {
            conv::backward_weights(isa, &conv, algorithm, &input, &output, &mut grad_weights);
        }),
        best(watch, options.repeat, || forward.update(&weights)),
    ]
}

fn main() {
    let options = options();
    if options.list {
        return layers().iter().for_each(|layer| println!("{}", layer.name));
    }
    let watch = if options.cpu { Watch::Processor } else { Watch::Clock(Instant::now()) };
    let peak = if options.json { 0.0 } else { peak(&options, watch) };
    let threads = if options.cpu { 1 } else { 0 };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a pool");
    pool.install(|| report(&options, watch, peak));
}

fn report(options: &Options, watch: Watch, peak: f64) {
    if !options.json {
        let threads = rayon::current_num_threads();
        println!("{:?}, {threads} threads, peak {peak:.0} GFLOP/s a core", options.isa);
        println!(
            "{:24} forward, backward data, backward weights: ms (GFLOP/s); packing: ms",
            "layer"
        );
    }
    for layer in layers().iter().filter(|layer| layer.name.contains(&options.only)) {
        let size = options.size.div_ceil(layer.shrink);
        let seconds = measure(layer, options, watch);
        if options.json {
            let [forward, data, weights, pack] = seconds.map(|seconds| seconds * 1e3);
            println!(
                r#"{{"layer": "{}", "size": {size}, "forward": {forward}, "data": {data}, "weights": {weights}, "pack": {pack}}}"#,
                layer.name
            );
            continue;
        }
        let conv = Conv::new(layer.filter, options.batch, size, size).expect("a convolution");
        let [forward, data, weights, _] =
            seconds.map(|s| format!("{:6.2} ({:3.0})", s * 1e3, conv.flops() as f64 / s / 1e9));
        println!("{:24} {forward} {data} {weights} {:6.2}", layer.name, seconds[3] * 1e3);
    }
}
