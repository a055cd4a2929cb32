//! Scores of anybody's maps.

use numpy::PyReadonlyArray2;
use pinpoint::{
    data::mask::Mask,
    metrics::{Evaluator, ImageCase, ImageSummary, PredictedClass, Protocol, ScoreMap},
};
use pyo3::{
    exceptions::{PyTypeError, PyValueError},
    prelude::*,
    types::PyList,
};

use crate::{arrays, error::raised};

/// Scores maps against masks; gives an evaluation as JSON.
///
/// `labels` and `predicted` are class indices, or empty where classes do not count.
#[pyfunction]
pub fn score_maps(
    py: Python<'_>,
    maps: &Bound<'_, PyList>,
    masks: &Bound<'_, PyList>,
    classes: Vec<String>,
    labels: Vec<usize>,
    predicted: Vec<usize>,
    threshold: &str,
) -> PyResult<String> {
    let threshold = crate::prediction::threshold(threshold)?;
    let protocol = Protocol { threshold, ..Protocol::default() };
    let mut evaluator = Evaluator::new(&classes, protocol);
    for (index, (map, mask)) in maps.iter().zip(masks.iter()).enumerate() {
        py.check_signals()?;
        let (height, width, scores) = arrays::map(&map, &format!("map {index}"))?;
        let truth = truth(&mask, index)?;
        let summary = py.detach(|| {
            let case = ImageCase {
                id: &index.to_string(),
                label: labels.get(index).copied().unwrap_or(0),
                classifier: predicted
                    .get(index)
                    .map(|&class| PredictedClass { class, probability: 1.0 }),
                localizer: None,
                map: Some(ScoreMap::new(width, height, &scores)?),
                truth: Some(&truth),
                boxes: &[],
            };
            ImageSummary::of(&case, &protocol)
        });
        evaluator.accumulate(summary.map_err(|error| raised(format!("map {index}: {error}")))?);
    }
    let evaluation = py.detach(|| evaluator.compute());
    serde_json::to_string(&evaluation).map_err(|error| PyValueError::new_err(error.to_string()))
}

fn truth(mask: &Bound<'_, PyAny>, index: usize) -> PyResult<Mask> {
    let mask: PyReadonlyArray2<'_, bool> = mask.extract().map_err(|_| {
        PyTypeError::new_err(format!(
            "mask {index} is not an array of height × width with dtype bool"
        ))
    })?;
    let view = mask.as_array();
    let (height, width) = view.dim();
    Ok(Mask {
        width: width as u32,
        height: height as u32,
        foreground: view.iter().copied().collect(),
        ignored: None,
    })
}
