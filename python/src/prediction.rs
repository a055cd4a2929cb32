//! A run that predicts images, and what it predicts.

use std::path::PathBuf;

use image::RgbImage;
use numpy::{PyArray1, PyArray2, PyArray3};
use pinpoint::{
    data::{PixelBox, image::read_rgb},
    metrics::{Threshold, ThresholdRule},
    predict::{self, PredictOptions, Tiling},
    report::{overlay, picture::encode_grey_png},
    run::write_atomically,
};
use pyo3::{exceptions::PyValueError, prelude::*};

use crate::{arrays, crf, error::raised};

/// A trained run, opened once and used from any thread.
#[pyclass(frozen, module = "pinpoint")]
pub struct Predictor {
    #[pyo3(get)]
    run: PathBuf,
    #[pyo3(get)]
    device: String,
    inner: predict::Predictor,
}

#[pymethods]
impl Predictor {
    #[new]
    fn new(py: Python<'_>, run: PathBuf, device: String) -> PyResult<Self> {
        let inner = py.detach(|| predict::Predictor::open(&run, &device)).map_err(raised)?;
        Ok(Self { run, device, inner })
    }

    #[getter]
    fn classes(&self) -> Vec<String> {
        self.inner.classes().to_vec()
    }

    #[getter]
    fn method(&self) -> &str {
        self.inner.method()
    }

    /// Predicts an image in memory.
    fn predict_array(
        &self,
        py: Python<'_>,
        image: &Bound<'_, PyAny>,
        options: Options,
    ) -> PyResult<Prediction> {
        let (image, options) = (arrays::rgb(image)?, options.checked(&self.inner)?);
        let inner = py.detach(|| self.inner.predict(&image, &options)).map_err(raised)?;
        Ok(Prediction::new(image, inner, &self.inner))
    }

    /// Predicts an image file.
    fn predict_file(
        &self,
        py: Python<'_>,
        path: PathBuf,
        options: Options,
    ) -> PyResult<Prediction> {
        let options = options.checked(&self.inner)?;
        let limit = self.inner.config().data.max_megapixels;
        let found = py.detach(|| {
            let image = read_rgb(&path, limit)?;
            let inner = self.inner.predict_named(&image, &path, &options)?;
            Ok::<_, pinpoint::Error>((image, inner))
        });
        let (image, inner) = found.map_err(raised)?;
        Ok(Prediction::new(image, inner, &self.inner))
    }
}

/// What is done with an image beside running the network.
#[derive(Debug, FromPyObject)]
#[pyo3(from_item_all)]
pub struct Options {
    crf: Option<String>,
    threshold: String,
    tile: Option<usize>,
    class_name: Option<String>,
}

impl Options {
    fn checked(&self, predictor: &predict::Predictor) -> PyResult<PredictOptions> {
        let class = self.class_name.as_ref().map(|name| {
            predictor.classes().iter().position(|class| class == name).ok_or_else(|| {
                PyValueError::new_err(format!(
                    "the run has no class {name:?}; it has {}",
                    predictor.classes().join(", ")
                ))
            })
        });
        let mut tiling = Tiling::default();
        if let Some(tile) = self.tile {
            if !(64..=16_384).contains(&tile) {
                return Err(PyValueError::new_err("`tile` must be from 64 to 16384 pixels"));
            }
            tiling.tile = tile;
        }
        Ok(PredictOptions {
            crf: self.crf.as_deref().map(crf::preset).transpose()?,
            threshold: threshold(&self.threshold)?,
            tiling,
            class: class.transpose()?,
        })
    }
}

/// Where maps are cut, as the command names it.
pub fn threshold(rule: &str) -> PyResult<Threshold> {
    let rule: ThresholdRule = rule.parse().map_err(PyValueError::new_err)?;
    rule.ready().ok_or_else(|| {
        PyValueError::new_err(format!(
            "the threshold {rule} needs images with masks; `pinpoint.evaluate` finds it, and its \
             number may be given here"
        ))
    })
}

/// Class, scores and mask of one image.
#[pyclass(frozen, module = "pinpoint")]
pub struct Prediction {
    image: RgbImage,
    #[pyo3(get)]
    classes: Vec<String>,
    #[pyo3(get)]
    label: Option<String>,
    #[pyo3(get)]
    probability: Option<f32>,
    #[pyo3(get)]
    threshold: f32,
    inner: predict::Prediction,
}

impl Prediction {
    fn new(image: RgbImage, inner: predict::Prediction, predictor: &predict::Predictor) -> Self {
        Self {
            image,
            classes: predictor.classes().to_vec(),
            label: inner.class_name.clone(),
            probability: inner.probability(),
            threshold: inner.threshold,
            inner,
        }
    }

    fn sides(&self) -> (usize, usize) {
        (self.image.height() as usize, self.image.width() as usize)
    }
}

#[pymethods]
impl Prediction {
    #[getter]
    fn mask<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<bool>>> {
        arrays::array(py, self.sides(), self.inner.mask.clone())
    }

    #[getter]
    fn scores<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f32>>> {
        arrays::array(py, self.sides(), self.inner.scores.clone())
    }

    #[getter]
    fn probabilities<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyArray1<f32>>> {
        self.inner.probabilities.as_ref().map(|found| PyArray1::from_slice(py, found))
    }

    /// Left, top, right and bottom of each region, the largest region first; right and bottom are
    /// the first column and row beyond it.
    #[getter]
    fn boxes(&self) -> Vec<(u32, u32, u32, u32)> {
        let regions = self.inner.regions();
        let corners = |b: &PixelBox| (b.x0 as u32, b.y0 as u32, b.x1 as u32, b.y1 as u32);
        regions.iter().map(|region| corners(&region.bounds)).collect()
    }

    /// The image with its mask coloured, `height × width × 3`.
    fn overlay<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray3<u8>>> {
        let (height, width) = self.sides();
        let painted = py.detach(|| overlay::annotated(&self.image, &self.inner.mask, None));
        arrays::array(py, (height, width, 3), painted.into_raw())
    }

    /// Writes the mask as a grey PNG, 255 is foreground; the file appears whole or not at all.
    fn save_mask(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        py.detach(|| {
            let mask: Vec<u8> =
                self.inner.mask.iter().map(|&inside| 255 * u8::from(inside)).collect();
            write_atomically(&path, &encode_grey_png(self.image.width(), &mask))
        })
        .map_err(raised)
    }

    fn __repr__(&self) -> String {
        let (height, width) = self.sides();
        let named = match (&self.label, self.probability) {
            (Some(label), Some(probability)) => format!("{label:?} ({probability:.3}), "),
            _ => String::new(),
        };
        let share = 100.0 * self.inner.foreground();
        format!("Prediction({named}{width}×{height}, {share:.1} % foreground)")
    }
}
