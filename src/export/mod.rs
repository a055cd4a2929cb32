//! Trained networks as ONNX files, which run without pinpoint.
//!
//! ```text
//! image [1, 3, H, W], RGB in [0, 1] ─▶ normalize ─▶ backbone ─▶ heads ─┬─▶ mask [1, 1, H, W]
//!                                                                       └─▶ probabilities [1, C]
//! ```
//!
//! Height and width are free. Everything that `pinpoint predict` computes between the network's
//! input and its soft mask is in the graph; enlarging or shrinking the image, padding it, cutting
//! the mask and the CRF are not.

mod backbone;
mod cam;
mod graph;
mod mask;
mod minmax;
mod pooling;
mod probe;

use std::path::Path;

use self::graph::{Graph, Kind, Side, Value};
use crate::{
    config::{Config, Views},
    error::{Error, Result},
    method::cam::Cam,
    model::{
        params::Array,
        weights::{self, Arrays},
    },
    run::{RunDir, WeightsNote},
};

/// The outputs of a graph.
struct Outputs<'g> {
    /// `[1, 1, H, W]`
    mask: Value<'g>,
    /// `[1, C]`
    probabilities: Value<'g>,
    /// By the localizer, where that is another one, `[1, C]`.
    localizer: Option<Value<'g>>,
}

/// The ONNX file of a run's best weights.
pub fn onnx(run: &RunDir) -> Result<Vec<u8>> {
    let (config, path) = (run.config()?, run.best());
    require_exportable(run, &config)?;
    let noted = weights::read_with_note::<WeightsNote>(&path)?;
    run.require_settings(&config, &noted.note)?;
    let weights = Weights { arrays: &noted.arrays, path: &path };
    encode(&config, &weights, &noted.note)
}

/// Refuses methods and settings that cannot be exported.
fn require_exportable(run: &RunDir, config: &Config) -> Result<()> {
    let refuse = |problem: String, remedy: &str| {
        Err(Error::Run { path: run.root().to_owned(), problem, remedy: remedy.to_owned() })
    };
    let method = config.method.as_str();
    match method {
        "grad-cam" | "grad-cam++" | "layer-cam" => refuse(
            format!("the mask of `{method}` is a gradient, which ONNX cannot compute"),
            "export a run of `cam-avg`, whose training is the same and whose mask is its class map",
        ),
        "probe" if config.probe.views != Views::One || config.probe.scales != [1.0] => refuse(
            "this probe averages several views of each image, and only one is exported".to_owned(),
            "train with `probe.views = \"one\"` and `probe.scales = [1.0]`",
        ),
        "probe" | "minmax" => Ok(()),
        _ if cam_of(method).is_some() => Ok(()),
        _ => refuse(
            format!("there is no ONNX export of `{method}`"),
            "probe, minmax, cam-avg, cam-max, cam-lse and wildcat can be exported",
        ),
    }
}

fn cam_of(method: &str) -> Option<Cam> {
    match method {
        "cam-avg" => Some(Cam::Average),
        "cam-max" => Some(Cam::Max),
        "cam-lse" => Some(Cam::LogSumExp),
        "wildcat" => Some(Cam::Wildcat),
        _ => None,
    }
}

fn encode(config: &Config, weights: &Weights<'_>, note: &WeightsNote) -> Result<Vec<u8>> {
    let graph = Graph::default();
    let (height, width) = (Side::Free("height"), Side::Free("width"));
    let [one, classes] = [1, note.classes.len()].map(Side::Fixed);
    let image = graph.input("image", Kind::Float, &[one, Side::Fixed(3), height, width]);
    let (mean, spread) = config.preprocess.normalization.mean_std();
    let [mean, spread] = [mean, spread].map(|values| graph.constant(&[1, 3, 1, 1], &values));
    let input = (image - mean) / spread;
    let found = match cam_of(&config.method) {
        Some(cam) => cam::graph(input, cam, config, weights)?,
        None if config.method == "minmax" => minmax::graph(input, config, weights)?,
        None => probe::graph(input, config, weights)?,
    };
    graph.output("mask", found.mask, &[one, one, height, width]);
    graph.output("probabilities", found.probabilities, &[one, classes]);
    if let Some(localizer) = found.localizer {
        graph.output("localizer_probabilities", localizer, &[one, classes]);
    }
    Ok(graph.model(&notes(config, note)))
}

/// Metadata for those who run the graph.
fn notes(config: &Config, note: &WeightsNote) -> Vec<(&'static str, String)> {
    let json = |value: serde_json::Value| value.to_string();
    let preprocess = &config.preprocess;
    vec![
        ("classes", json(serde_json::json!(note.classes))),
        ("method", config.method.clone()),
        ("input", "RGB in [0, 1]; the graph normalizes it".to_owned()),
        (
            "normalization",
            json(serde_json::json!(preprocess.normalization)).trim_matches('"').to_owned(),
        ),
        ("threshold", note.threshold.to_string()),
        ("upscale_short_side", preprocess.upscale_short_side.to_string()),
        ("shrink_short_side", preprocess.shrink_short_side.to_string()),
        ("size_multiple", preprocess.eval_multiple.to_string()),
        ("padding", "reflect without repeating the edge, half before and half after".to_owned()),
        ("settings", toml::to_string(config).expect("settings are plain data")),
    ]
}

/// The tensors of a run, by name.
struct Weights<'a> {
    arrays: &'a Arrays,
    path: &'a Path,
}

impl Weights<'_> {
    fn get(&self, name: &str) -> Result<&Array> {
        self.arrays.get(name).ok_or_else(|| self.broken(&format!("without `{name}`")))
    }

    /// A tensor of so many axes.
    fn shaped<const N: usize>(&self, name: &str) -> Result<(&Array, [usize; N])> {
        let array = self.get(name)?;
        match <[usize; N]>::try_from(array.shape.as_slice()) {
            Ok(shape) => Ok((array, shape)),
            Err(_) => Err(self.broken(&format!("whose `{name}` is {:?}", array.shape))),
        }
    }

    fn broken(&self, what: &str) -> Error {
        Error::Weights {
            path: self.path.to_owned(),
            problem: format!("weights {what}"),
            remedy: "give a run as `pinpoint train` wrote it".to_owned(),
        }
    }
}
