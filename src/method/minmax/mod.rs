//! Min-max entropy: be sure of what the mask shows, ignorant of what it hides.
//!
//! Belharbi et al., *Min-max entropy for weakly supervised pointwise
//! localization*, 2019. The localizer looks at the image and gives a mask; the
//! classifier must name the class on the masked-in image and know nothing on the
//! masked-out one. [`erase`](crate::method::minmax::erase) makes the localizer look again where it has not
//! looked yet, [`losses`](crate::method::minmax::losses) has the three terms, and
//! [`step`](crate::method::minmax::step) is the method, line by
//! line.

/// Recursive erasing: how far to trust each further look.
pub mod erase;

/// The three terms that training minimizes.
pub mod losses;

/// Dropout masks of one step.
pub mod dropout;

/// What erased pixels become.
pub mod fill;

/// One step of training, without the optimizer.
pub mod step;

pub use self::step::{Outcome, Step};
