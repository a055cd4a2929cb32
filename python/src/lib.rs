//! What Python calls of pinpoint: arrays in, arrays out, the interpreter free while we compute.
//!
//! The package `pinpoint` (in `../pinpoint`) is what users see; it turns paths, images and
//! keyword arguments into the plain calls here.

mod arrays;
mod crf;
mod error;
mod evaluation;
mod metrics;
mod prediction;
mod training;

use pyo3::prelude::*;

#[pymodule]
mod _native {
    #[pymodule_export]
    use crate::{
        crf::{crf, crf_labels},
        error::PinpointError,
        evaluation::evaluate,
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
