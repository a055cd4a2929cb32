//! Errors in the caller's image, probabilities or parameters.
#![expect(missing_docs, reason = "each variant's message says what its fields are")]

/// The result of everything in this crate that checks the caller's data.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A problem with the input, named after what has to be fixed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A parameter is out of range.
    #[error("parameter `{name}` is {value} but must be {rule}")]
    Parameter { name: &'static str, value: f32, rule: &'static str },

    /// A slice does not have the length its dimensions promise.
    #[error("`{name}` has {found} values but {expected} were expected ({shape})")]
    Length { name: &'static str, found: usize, expected: usize, shape: &'static str },

    /// There is nothing to label, or nothing to label it with.
    #[error("an image of {width}×{height} pixels with {labels} labels has nothing to infer")]
    Empty { width: usize, height: usize, labels: usize },

    /// A probability is NaN, infinite, or outside `[0, 1]`.
    #[error("probability of label {label} at pixel {pixel} is {value}, outside [0, 1]")]
    Probability { label: usize, pixel: usize, value: f32 },

    /// The probabilities of a pixel are too far from a distribution to be rounding error.
    #[error(
        "probabilities at pixel {pixel} sum to {sum} instead of 1\nhint: apply a softmax first"
    )]
    Sum { pixel: usize, sum: f32 },

    /// The sizes multiply to more than this machine can address.
    #[error("{width}×{height} pixels with {labels} labels overflow the address space")]
    TooLarge { width: usize, height: usize, labels: usize },

    /// Even the smallest useful tile needs more memory than allowed.
    #[error(
        "`max_bytes` is {allowed} but the smallest tile needs {needed}\n\
         hint: raise `max_bytes`, or lower `theta_alpha` and `theta_gamma` (they set the overlap)"
    )]
    Memory { allowed: usize, needed: usize },

    /// The kernel is so narrow that lattice coordinates no longer fit their 63-bit key.
    #[error(
        "kernel is too narrow: lattice coordinates of a single tile do not fit\n\
         hint: raise `theta_alpha`, `theta_beta` and `theta_gamma`"
    )]
    TooNarrow,
}
