//! The dense CRF alone.

use dense_crf::{DenseCrf, Params};
use numpy::{PyArray2, PyArray3, PyReadonlyArray3};
use pyo3::{
    exceptions::{PyTypeError, PyValueError},
    prelude::*,
};

use crate::{arrays, error::raised};

/// Parameters by preset, each of which may be replaced.
#[derive(Debug, FromPyObject)]
#[pyo3(from_item_all)]
pub struct CrfSettings {
    preset: String,
    iterations: Option<usize>,
    smoothness_weight: Option<f32>,
    theta_gamma: Option<f32>,
    appearance_weight: Option<f32>,
    theta_alpha: Option<f32>,
    theta_beta: Option<f32>,
}

impl CrfSettings {
    pub fn params(&self) -> PyResult<Params> {
        let mut params = preset(&self.preset)?;
        if let Some(kernel) = &mut params.smoothness {
            kernel.weight = self.smoothness_weight.unwrap_or(kernel.weight);
            kernel.theta_gamma = self.theta_gamma.unwrap_or(kernel.theta_gamma);
        }
        if let Some(kernel) = &mut params.appearance {
            kernel.weight = self.appearance_weight.unwrap_or(kernel.weight);
            kernel.theta_alpha = self.theta_alpha.unwrap_or(kernel.theta_alpha);
            kernel.theta_beta = self.theta_beta.unwrap_or(kernel.theta_beta);
        }
        params.iterations = self.iterations.unwrap_or(params.iterations);
        Ok(params)
    }
}

/// The parameters of a preset.
pub fn preset(name: &str) -> PyResult<Params> {
    match name {
        "natural" => Ok(Params::natural()),
        "glas" => Ok(Params::glas()),
        _ => Err(PyValueError::new_err(format!(
            "there is no CRF preset {name:?}; give \"natural\" or \"glas\""
        ))),
    }
}

/// Refines the probability of the foreground, `height × width`.
#[pyfunction]
pub fn crf<'py>(
    py: Python<'py>,
    image: &Bound<'py, PyAny>,
    probabilities: &Bound<'py, PyAny>,
    settings: CrfSettings,
) -> PyResult<Bound<'py, PyArray2<f32>>> {
    let (image, params) = (arrays::rgb(image)?, settings.params()?);
    let (height, width, map) = arrays::map(probabilities, "a map of probabilities")?;
    if (width, height) != (image.width() as usize, image.height() as usize) {
        return Err(PyValueError::new_err(format!(
            "the image is {}×{} pixels and the probabilities are {width}×{height}",
            image.width(),
            image.height()
        )));
    }
    let refined = py.detach(|| pinpoint::refine::refine_with(&image, &map, &params));
    arrays::array(py, (height, width), refined.map_err(raised)?)
}

/// Refines the probabilities of any number of labels, `labels × height × width`.
#[pyfunction]
pub fn crf_labels<'py>(
    py: Python<'py>,
    image: &Bound<'py, PyAny>,
    probabilities: &Bound<'py, PyAny>,
    settings: CrfSettings,
) -> PyResult<Bound<'py, PyArray3<f32>>> {
    let (image, params) = (arrays::rgb(image)?, settings.params()?);
    let array: PyReadonlyArray3<'_, f32> = probabilities.extract().map_err(|_| {
        PyTypeError::new_err(
            "probabilities are an array of labels × height × width with dtype float32",
        )
    })?;
    let shape = array.as_array().dim();
    let planes: Vec<f32> = array.as_array().iter().copied().collect();
    let (width, height) = (image.width() as usize, image.height() as usize);
    let refined =
        py.detach(|| DenseCrf::new(width, height, image.as_raw(), params)?.infer(&planes, shape.0));
    arrays::array(py, shape, refined.map_err(raised)?)
}
