//! The shape of a convolution, checked once so that the kernels need not check it.

/// A convolution whose sizes do not fit together.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ShapeError {
    /// A size that must be at least one is zero.
    #[error("{0} must not be zero")]
    Zero(&'static str),
    /// The dilated kernel does not fit into the padded image.
    #[error(
        "a kernel that covers {extent} pixels does not fit an image of {height}×{width} \
         padded by {padding}"
    )]
    #[expect(missing_docs, reason = "the message says what the fields are")]
    TooSmall { extent: usize, height: usize, width: usize, padding: usize },
}

/// A bank of square kernels, independent of the image it is laid over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Filter {
    /// Channels of the image.
    pub in_channels: usize,
    /// Channels of the result.
    pub out_channels: usize,
    /// Side of the square kernel in taps.
    pub kernel: usize,
    /// Pixels between neighbouring results.
    pub stride: usize,
    /// Zero pixels around the image.
    pub padding: usize,
    /// Pixels between neighbouring taps.
    pub dilation: usize,
}

impl Filter {
    /// A filter without dilation, padded by half a kernel so that stride 1 keeps the image size.
    pub fn new(in_channels: usize, out_channels: usize, kernel: usize, stride: usize) -> Self {
        Self { in_channels, out_channels, kernel, stride, padding: kernel / 2, dilation: 1 }
    }

    /// The same filter with its taps spread, and padded to match.
    pub fn dilated(self, dilation: usize) -> Self {
        Self { dilation, padding: self.kernel / 2 * dilation, ..self }
    }

    /// Number of weights, `[out_channels, in_channels, kernel, kernel]`.
    pub fn weights(&self) -> usize {
        self.out_channels * self.in_channels * self.taps()
    }

    /// Positions of the kernel.
    pub(crate) fn taps(&self) -> usize {
        self.kernel * self.kernel
    }

    /// Pixels from the first tap to the last, both included.
    pub(crate) fn extent(&self) -> usize {
        (self.kernel - 1) * self.dilation + 1
    }

    /// Few input channels: a row of taps is read as one run of floats, from a padded copy.
    pub(crate) fn reads_rows(&self) -> bool {
        self.in_channels < 8 && self.kernel > 1 && self.dilation == 1
    }

    fn size_after(&self, size: usize) -> Option<usize> {
        Some((size + 2 * self.padding).checked_sub(self.extent())? / self.stride + 1)
    }
}

/// A [`Filter`] laid over a batch of images `[batch, height, width, in_channels]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Conv {
    filter: Filter,
    batch: usize,
    height: usize,
    width: usize,
    out_height: usize,
    out_width: usize,
}

impl Conv {
    /// Checks that the filter fits the images.
    pub fn new(
        filter: Filter,
        batch: usize,
        height: usize,
        width: usize,
    ) -> Result<Self, ShapeError> {
        let Filter { in_channels, out_channels, kernel, stride, dilation, padding } = filter;
        let sizes = [in_channels, out_channels, kernel, stride, dilation];
        if let Some(zero) = sizes.iter().position(|&size| size == 0) {
            let names = ["in_channels", "out_channels", "kernel", "stride", "dilation"];
            return Err(ShapeError::Zero(names[zero]));
        }
        match (filter.size_after(height), filter.size_after(width)) {
            (Some(out_height), Some(out_width)) => {
                Ok(Self { filter, batch, height, width, out_height, out_width })
            }
            _ => Err(ShapeError::TooSmall { extent: filter.extent(), height, width, padding }),
        }
    }

    /// The filter.
    pub fn filter(&self) -> &Filter {
        &self.filter
    }

    /// Images.
    pub fn batch(&self) -> usize {
        self.batch
    }

    /// Rows of an image.
    pub fn height(&self) -> usize {
        self.height
    }

    /// Columns of an image.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Rows of a result.
    pub fn out_height(&self) -> usize {
        self.out_height
    }

    /// Columns of a result.
    pub fn out_width(&self) -> usize {
        self.out_width
    }

    /// Pixels of all results: the rows of the output seen as a matrix.
    pub fn out_pixels(&self) -> usize {
        self.batch * self.out_height * self.out_width
    }

    /// Floats of the input.
    pub fn input_len(&self) -> usize {
        self.batch * self.height * self.width * self.filter.in_channels
    }

    /// Floats of the output.
    pub fn output_len(&self) -> usize {
        self.out_pixels() * self.filter.out_channels
    }

    /// Multiply-adds of one pass, counted twice as usual.
    pub fn flops(&self) -> usize {
        2 * self.output_len() * self.filter.in_channels * self.filter.taps()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_padding_keeps_the_size_and_stride_two_halves_it() {
        let same = Conv::new(Filter::new(3, 4, 3, 1).dilated(4), 1, 9, 11).unwrap();
        assert_eq!((same.out_height(), same.out_width()), (9, 11));
        let half = Conv::new(Filter::new(3, 4, 7, 2), 1, 240, 241).unwrap();
        assert_eq!((half.out_height(), half.out_width()), (120, 121));
    }

    #[test]
    fn a_kernel_larger_than_the_padded_image_is_refused() {
        let filter = Filter { padding: 0, ..Filter::new(1, 1, 3, 1) };
        let error = Conv::new(filter, 1, 2, 5).unwrap_err();
        assert!(error.to_string().starts_with("a kernel that covers 3 pixels does not fit"));
    }
}
