//! What Python calls of pinpoint: arrays in, arrays out, the interpreter free while we compute.
//!
//! The package `pinpoint` (in `../pinpoint`) is what users see; it turns paths, images and
//! keyword arguments into the plain calls here.

mod arrays;
mod crf;
mod error;
mod evaluation;
mod features;
mod metrics;
mod prediction;
mod training;

use huge_pages::HugePages;
use pyo3::prelude::*;

/// As in the command: maps and weights are blocks of megabytes. Python's own memory is not concerned.
#[global_allocator]
static MEMORY: HugePages = HugePages;

#[pymodule]
mod _native {
    #[pymodule_export]
    use crate::{
        crf::{crf, crf_labels},
        error::PinpointError,
        evaluation::evaluate,
        features::{FeatureMaker, wanted_features},
        metrics::score_maps,
        prediction::{Prediction, Predictor},
        training::train,
    };
    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
