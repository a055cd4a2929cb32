//! Features of a probe, made by many processes before one trains on them.

use std::path::PathBuf;

use pinpoint::{
    train::{self, FeatureImage, Made},
    workflow::FeatureWork,
};
use pyo3::{exceptions::PyKeyboardInterrupt, prelude::*};

use crate::{error::raised, training::Wanted};

/// Names and paths of the images whose features a training needs, and how many cells of each.
#[pyfunction]
pub fn wanted_features(
    py: Python<'_>,
    wanted: Wanted,
) -> PyResult<(Vec<(String, PathBuf)>, usize)> {
    let request = wanted.request()?;
    let work = py.detach(|| FeatureWork::of(&request)).map_err(raised)?;
    let images = work.images.into_iter().map(|image| (image.id, image.path));
    Ok((images.collect(), work.cells))
}

/// The backbone of a training to come, which makes features shard by shard.
#[pyclass(frozen, module = "pinpoint")]
pub struct FeatureMaker {
    inner: train::FeatureMaker,
}

#[pymethods]
impl FeatureMaker {
    #[new]
    fn new(py: Python<'_>, wanted: Wanted, cells: usize) -> PyResult<Self> {
        let request = wanted.request()?;
        let inner = py.detach(|| FeatureWork::maker(&request, cells)).map_err(raised)?;
        Ok(Self { inner })
    }

    /// Writes a shard: how many images were computed and how many were there, and those that have
    /// no features, each with the reason.
    fn make(
        &self,
        py: Python<'_>,
        folder: PathBuf,
        number: usize,
        images: Vec<(String, PathBuf)>,
    ) -> PyResult<(usize, usize, Vec<(PathBuf, String)>)> {
        let images: Vec<FeatureImage> =
            images.into_iter().map(|(id, path)| FeatureImage { id, path }).collect();
        let mut interrupted = None;
        let made = py.detach(|| {
            self.inner.make(&folder, number, &images, || {
                interrupted = Python::attach(|py| py.check_signals()).err();
                interrupted.is_none()
            })
        });
        match (made.map_err(raised)?, interrupted) {
            (Some(Made { done, kept, failed }), _) => Ok((done, kept, failed)),
            (None, error) => Err(error.unwrap_or_else(|| PyKeyboardInterrupt::new_err(()))),
        }
    }
}
