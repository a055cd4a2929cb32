//! Evaluation from Python.

use std::{ops::ControlFlow, path::PathBuf};

use pinpoint::{EvaluateRequest, data::Split, refine::Preset, run::DataSource};
use pyo3::{exceptions::PyValueError, prelude::*};
use serde::de::{IntoDeserializer as _, value::Error as NameError};

use crate::error::raised;

/// What to score, as the package gives it.
#[derive(Debug, FromPyObject)]
#[pyo3(from_item_all)]
pub struct Wanted {
    run: Option<PathBuf>,
    method: Option<String>,
    maps: Option<PathBuf>,
    data: Option<PathBuf>,
    split: String,
    crf: Option<String>,
    threshold: String,
    oracle_label: bool,
    decidability: bool,
    report: Option<PathBuf>,
    threads: Option<usize>,
}

/// Scores a run, a trivial method or saved maps; gives an evaluation as JSON.
#[pyfunction]
pub fn evaluate(py: Python<'_>, wanted: Wanted) -> PyResult<String> {
    let request = EvaluateRequest {
        run: wanted.run,
        method: wanted.method,
        maps: wanted.maps,
        data: wanted.data.map(DataSource::new),
        split: Some(named::<Split>(&wanted.split, "split")?),
        crf: wanted.crf.map(|name| named::<Preset>(&name, "CRF preset")).transpose()?,
        threshold: wanted.threshold.parse().map_err(PyValueError::new_err)?,
        oracle_label: wanted.oracle_label,
        decidability: wanted.decidability,
        report: wanted.report,
        threads: wanted.threads,
        ..EvaluateRequest::default()
    };
    let mut interrupted = None;
    let report = py.detach(|| {
        pinpoint::evaluate(&request, |_| match Python::attach(|py| py.check_signals()) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                interrupted = Some(error);
                ControlFlow::Break(())
            }
        })
    });
    if let Some(error) = interrupted {
        return Err(error);
    }
    serde_json::to_string(&report.map_err(raised)?.evaluation).map_err(raised)
}

/// The variant that has this name in settings and reports.
fn named<T: for<'de> serde::Deserialize<'de>>(name: &str, what: &str) -> PyResult<T> {
    let name = name.into_deserializer();
    T::deserialize(name)
        .map_err(|error: NameError| PyValueError::new_err(format!("unknown {what}: {error}")))
}
