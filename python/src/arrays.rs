//! NumPy arrays as what pinpoint computes with.

use image::RgbImage;
use numpy::{
    Element, PyArray, PyReadonlyArray2, PyReadonlyArray3,
    ndarray::{Array, IntoDimension},
};
use pyo3::{
    exceptions::{PyTypeError, PyValueError},
    prelude::*,
};

/// An image from an array of `height × width × 3` bytes, whatever its order in memory.
pub fn rgb(image: &Bound<'_, PyAny>) -> PyResult<RgbImage> {
    let array: PyReadonlyArray3<'_, u8> = image.extract().map_err(|_| wrong(image))?;
    let view = array.as_array();
    let (height, width, channels) = view.dim();
    if channels != 3 {
        return Err(wrong(image));
    }
    let sides = (u32::try_from(width), u32::try_from(height));
    let (Ok(width), Ok(height)) = sides else {
        return Err(PyValueError::new_err("the image has a side of more than 2³² pixels"));
    };
    let bytes = view.iter().copied().collect();
    RgbImage::from_raw(width, height, bytes)
        .ok_or_else(|| PyValueError::new_err("the image has no pixels"))
}

fn wrong(image: &Bound<'_, PyAny>) -> PyErr {
    let described = image
        .getattr("dtype")
        .and_then(|dtype| Ok(format!("{dtype} of shape {}", image.getattr("shape")?)))
        .unwrap_or_else(|_| image.get_type().to_string());
    PyTypeError::new_err(format!(
        "an image is an array of height × width × 3 with dtype uint8, and this is {described}; \
         `pinpoint.as_image` makes one of grey or floating-point arrays and of PIL images"
    ))
}

/// A map of one number per pixel, row by row, with its height and width.
pub fn map(array: &Bound<'_, PyAny>, what: &str) -> PyResult<(usize, usize, Vec<f32>)> {
    let array: PyReadonlyArray2<'_, f32> = array.extract().map_err(|_| {
        PyTypeError::new_err(format!("{what} is an array of height × width with dtype float32"))
    })?;
    let view = array.as_array();
    let (height, width) = view.dim();
    Ok((height, width, view.iter().copied().collect()))
}

/// Values row by row as an array of that shape, without a copy.
pub fn array<'py, T: Element, S: IntoDimension>(
    py: Python<'py>,
    shape: S,
    values: Vec<T>,
) -> PyResult<Bound<'py, PyArray<T, S::Dim>>> {
    let array = Array::from_shape_vec(shape.into_dimension(), values)
        .map_err(|error| PyValueError::new_err(error.to_string()))?;
    Ok(PyArray::from_owned_array(py, array))
}
