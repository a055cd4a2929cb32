//! Image to network input, and scores back to image pixels.
//!
//! ```text
//! training    RGB ─▶ rescale ─▶ reflect pad ─▶ crop ─▶ vary (augment) ─▶ normalize
//! evaluation  RGB ─▶ rescale ─▶ reflect pad to a multiple ─────────────▶ normalize
//!             scores at the original pixels ◀─ resize ◀─ crop ◀─ network ◀─┘
//! ```
//!
//! Neither path ever builds the padded image: padding, cropping and flipping are
//! changes of *where a pixel is read from*, and are done while the pixels are
//! copied out of the decoded image.

mod geometry;
mod planes;
mod resample;
mod resize;

pub use geometry::{EvalGeometry, InputView, Window};
pub(crate) use planes::reflected_run;
pub use planes::{Normalizer, Planes};
pub use resize::{
    MIN_SIDE, check_smallest, check_upscaled, rescale, resize_align_corners, working_size,
};

/// Width and height in pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the type's line says what the fields are")]
pub struct Size {
    pub width: u32,
    pub height: u32,
}

impl Size {
    /// The size of a decoded image.
    pub fn of(image: &image::RgbImage) -> Self {
        Self { width: image.width(), height: image.height() }
    }

    /// Height and width, in the order of a tensor's dimensions.
    pub fn rows_columns(self) -> [usize; 2] {
        [self.height as usize, self.width as usize]
    }

    /// Number of pixels.
    pub fn area(self) -> usize {
        self.width as usize * self.height as usize
    }
}
