//! `pinpoint bench`: seconds and memory of one step, for comparison in one run with others.

use std::{process::ExitCode, time::Instant};

use anyhow::Context;
use burn::{
    module::Module as _,
    tensor::{Device, Tensor},
};
use pinpoint::{
    collective::Share,
    config::{Backbone, Config, Stem},
    device,
    method::{
        Learner as _,
        dropout::Dropout,
        minmax::{Minmax, Step, size::Barrier, trust::Trust},
    },
    model::{Model, layers::tensor},
    rng::{Purpose, Stream},
    train::optimizer::Optimizer,
};
use serde::Serialize;

use crate::{
    choice::named,
    machine::{peak_mib, use_threads},
    ui::Ui,
};

/// Measure a training step or a prediction on random weights and images
#[derive(Debug, clap::Args, Serialize)]
pub(crate) struct Bench {
    /// What to measure
    #[arg(value_enum)]
    mode: Mode,

    /// Depth of the network
    #[arg(long, value_parser = named::<Backbone>(BACKBONES), default_value = "resnet18")]
    backbone: Backbone,

    /// First convolutions of the network
    #[arg(long, value_parser = named::<Stem>(STEMS), default_value = "deep")]
    stem: Stem,

    /// Side of the square images, in pixels
    #[arg(long, value_name = "N", default_value_t = 240)]
    size: usize,

    /// Images per step
    #[arg(long, value_name = "N", default_value_t = 8)]
    batch: usize,

    /// Erasing rounds, in which no image is stopped
    #[arg(long, value_name = "N", default_value_t = 4)]
    rounds: usize,

    /// Number of classes
    #[arg(long, value_name = "N", default_value_t = 5)]
    #[serde(skip)]
    classes: usize,

    /// Steps to measure, after one to warm up; the fastest is reported
    #[arg(long, value_name = "N", default_value_t = 3)]
    #[serde(skip)]
    steps: usize,

    /// Device to compute on: `cpu`, or a GPU backend of this build
    #[arg(long, value_name = "DEVICE", default_value = "cpu")]
    #[serde(skip)]
    device: String,

    /// Threads to use; all cores by default
    #[arg(long, value_name = "N")]
    #[serde(skip)]
    threads: Option<usize>,
}

const BACKBONES: &[&str] = &["tiny", "resnet18", "resnet34", "resnet50", "resnet101"];
const STEMS: &[&str] = &["deep", "classic"];

#[derive(Debug, Clone, Copy, clap::ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
enum Mode {
    /// Forward and backward passes of all rounds, and the update of the weights
    Train,
    /// Mask and class of a batch
    Predict,
}

/// The output, one JSON line.
#[derive(Serialize)]
struct Measured<'a> {
    #[serde(flatten)]
    bench: &'a Bench,
    threads: usize,
    seconds: f64,
    peak_mib: Option<f64>,
}

impl Bench {
    pub(crate) fn run(self, ui: &mut Ui) -> anyhow::Result<ExitCode> {
        let threads = use_threads(self.threads)?;
        let device = device::open(&self.device)?;
        let mut config = Config::default();
        config.model.backbone = self.backbone;
        config.model.stem = self.stem;
        config.erase.rounds = self.rounds;
        config.check()?;

        let seconds = match self.mode {
            Mode::Train => self.train(&config, &device),
            Mode::Predict => self.predict(&config, &device),
        };
        let measured = Measured { bench: &self, threads, seconds, peak_mib: peak_mib() };
        ui.print(&serde_json::to_string(&measured).context("plain data")?);
        Ok(ExitCode::SUCCESS)
    }

    fn train(&self, config: &Config, device: &Device) -> f64 {
        let mut model = Some(Model::new(config, self.classes, &device.clone().autodiff()));
        let mut optimizer = Optimizer::new(config.optimizer.clone());
        let labels: Vec<usize> = (0..self.batch).map(|image| image % self.classes).collect();
        self.fastest(|| {
            let current = model.take().expect("each step gives the model back");
            let step = Step {
                config,
                model: &current,
                images: self.images(device),
                labels: &labels,
                dropout: &Dropout::default(),
                rounds: self.rounds,
                trust: Trust::unconditional(self.batch, config.erase.sigma),
                mean_colour: [0.0; 3],
                size: Barrier::at(&config.loss.size, 0),
                frozen: false,
                share: Share::whole(self.batch),
            };
            let outcome = step.run();
            let rate = config.optimizer.learning_rate;
            model = Some(optimizer.update(current, outcome.gradients, rate));
        })
    }

    fn predict(&self, config: &Config, device: &Device) -> f64 {
        let model = Model::new(config, self.classes, device).valid();
        let images = self.images(device);
        self.fastest(|| {
            Minmax.localize(&model, images.clone(), None, config);
        })
    }

    /// Normalized noise, `[batch, 3, size, size]`.
    fn images(&self, device: &Device) -> Tensor<4> {
        let mut stream = Stream::new(0, Purpose::Synthetic, 0, 0);
        let shape = [self.batch, 3, self.size, self.size];
        let noise = (0..shape.iter().product()).map(|_| stream.between(-1.0, 1.0) as f32);
        tensor(noise.collect(), shape, device)
    }

    /// Seconds of the fastest step, after one that warms up.
    fn fastest(&self, mut step: impl FnMut()) -> f64 {
        step();
        let time = |_| {
            let started = Instant::now();
            step();
            started.elapsed().as_secs_f64()
        };
        (0..self.steps.max(1)).map(time).fold(f64::INFINITY, f64::min)
    }
}
