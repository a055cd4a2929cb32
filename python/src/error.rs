//! Our messages as exceptions.

use pyo3::{create_exception, exceptions::PyException, prelude::*};

create_exception!(
    pinpoint,
    PinpointError,
    PyException,
    "A problem with files, settings or data; the message names it and says what to do."
);

/// The exception that carries one of our errors.
pub fn raised(error: impl std::fmt::Display) -> PyErr {
    PinpointError::new_err(error.to_string())
}
