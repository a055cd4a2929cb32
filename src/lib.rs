//! Weakly supervised localization: masks of objects, learned from image labels alone.
//!
//! Train on labelled images of your own, which gives a run directory:
//!
//! ```no_run
//! use pinpoint::{TrainRequest, method, train};
//!
//! let settings = method::published("probe")?;
//! let mut request = TrainRequest::new("data/pets", "runs/pets", settings);
//! request.weights = Some("resnet18.safetensors".into());
//! train(&request, &mut ())?;
//! # Ok::<(), pinpoint::Error>(())
//! ```
//!
//! Open a run and predict an image in memory, in tiles if it is large:
//!
//! ```no_run
//! use pinpoint::{PredictOptions, Predictor};
//!
//! let predictor = Predictor::open("runs/pets", "cpu")?;
//! let image = image::RgbImage::new(640, 480);
//! let found = predictor.predict(&image, &PredictOptions::default())?;
//! println!("{:?}, {:.0} % foreground", found.class_name, 100.0 * found.foreground());
//! for region in found.regions() {
//!     println!("{:?}", region.bounds);
//! }
//! # Ok::<(), pinpoint::Error>(())
//! ```
//!
//! Score a run on the test images of the dataset that it was trained on:
//!
//! ```no_run
//! use std::ops::ControlFlow;
//!
//! use pinpoint::{EvaluateRequest, evaluate};
//!
//! let report = evaluate(&EvaluateRequest::run("runs/pets"), |_| ControlFlow::Continue(()))?;
//! println!("F1 of the foreground: {:?}", report.evaluation.scores.mean.f1_foreground);
//! # Ok::<(), pinpoint::Error>(())
//! ```
//!
//! Snap a soft mask of any origin to the edges of its image, by the dense CRF alone:
//!
//! ```
//! use pinpoint::refine::{Preset, refine};
//!
//! let image = image::RgbImage::from_fn(8, 4, |x, _| image::Rgb([if x < 4 { 20 } else { 230 }; 3]));
//! let mask: Vec<f32> = (0..32).map(|i| if i % 8 < 4 { 0.2 } else { 0.8 }).collect();
//! let snapped = refine(&image, &mask, Preset::Natural)?;
//! assert!(snapped[0] < 0.2 && snapped[7] > 0.8);
//! # Ok::<(), pinpoint::Error>(())
//! ```
//!
//! Where to read on, by what the modules do with data:
//!
//! ```text
//! data ─▶ train (model, method) ─▶ run ─┬─▶ predict ─▶ formats
//!                                       ├─▶ evaluate (metrics) ─▶ report
//!                                       └─▶ export
//! ```
//!
//! [`workflow`] has each of these as one call. The modules are declared below in the order of their
//! dependencies: each imports only from those before it.
//!
//! `docs/method.md` has the equations, which [`method::minmax::Step`] follows line by line;
//! `docs/data.md` says what a dataset may look like, and `ARCHITECTURE.md` has the rules that keep
//! the modules apart.
#![forbid(unsafe_code)]

mod bilinear;
mod digest;
mod error;
mod ordered;
mod protobuf;
mod regular;

pub use error::{Error, Result};

/// Settings of one experiment, as read from TOML.
pub mod config;

/// Named random streams, the only source of randomness.
pub mod rng;

/// Processes that train one network together.
pub mod collective;

/// Statistics that methods and metrics share.
pub mod stats;

/// The processor and the GPUs that tensors can be on.
pub mod device;

/// Images, labels and masks: from files to augmented batches.
pub mod data;

/// The networks: a backbone with a localizer and a classifier head, and those of the baselines.
pub mod model;

/// The methods: how each learns, and how its masks are read. Min-max entropy, the probe, baselines.
pub mod method;

/// The run directory: settings, weights, checkpoint and metrics, each file written atomically.
pub mod run;

/// The training loop.
pub mod train;

/// Trained networks as ONNX files.
pub mod export;

/// Score maps snapped to the edges of their image by a dense CRF.
pub mod refine;

/// Scores of masks, boxes and classes against ground truth.
pub mod metrics;

/// Prediction: class, mask and regions of an image.
pub mod predict;

/// Masks in the formats of other programs, and event files of TensorBoard.
pub mod formats;

/// Evaluation: a split is predicted and scored.
pub mod evaluate;

/// Reports: JSON, tables, figures, overlays and pages; several of them compared.
pub mod report;

/// Training and evaluation, each as one call.
pub mod workflow;

pub use config::Config;
pub use data::Dataset;
pub use predict::{PredictOptions, Prediction, Predictor};
pub use report::Report;
pub use workflow::{EvaluateRequest, TrainRequest, evaluate, train};
