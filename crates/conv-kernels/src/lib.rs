//! CPU convolution and batch norm for training and inference, forward and backward: slices in, slices out.
