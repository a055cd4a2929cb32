//! A network with one hidden layer, applied to each cell by itself.

use nalgebra::{DMatrix, DMatrixView, DVector};

use super::vector::{add_scaled, dot};
use crate::rng::Stream;

/// `f → relu(W₁ f + b₁) → W₂ h + b₂`
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Mlp {
    /// width × dimensions
    pub(crate) hidden: DMatrix<f32>,
    pub(crate) hidden_bias: DVector<f32>,
    /// outputs × width
    pub(crate) output: DMatrix<f32>,
    pub(crate) output_bias: DVector<f32>,
}

impl Mlp {
    /// A network with weights uniform in `±1/√inputs`.
    pub(super) fn random([dimensions, width, outputs]: [usize; 3], stream: &mut Stream) -> Self {
        let mut uniform = |inputs: usize| {
            let bound = 1.0 / (inputs as f64).sqrt();
            stream.between(-bound, bound) as f32
        };
        Self {
            hidden: DMatrix::from_fn(width, dimensions, |_, _| uniform(dimensions)),
            hidden_bias: DVector::from_fn(width, |_, _| uniform(dimensions)),
            output: DMatrix::from_fn(outputs, width, |_, _| uniform(width)),
            output_bias: DVector::from_fn(outputs, |_, _| uniform(width)),
        }
    }

    /// The outputs of `[cells, dimensions]`, outputs × cells.
    pub(crate) fn apply(&self, cells: &[f32]) -> DMatrix<f32> {
        self.outputs(&self.hidden_units(cells))
    }

    /// The hidden units, width × cells.
    pub(super) fn hidden_units(&self, cells: &[f32]) -> DMatrix<f32> {
        let dimensions = self.hidden.ncols();
        let cells = DMatrixView::from_slice(cells, dimensions, cells.len() / dimensions);
        let mut hidden = &self.hidden * cells;
        for mut cell in hidden.column_iter_mut() {
            cell.zip_apply(&self.hidden_bias, |value, bias| *value = (*value + bias).max(0.0));
        }
        hidden
    }

    /// The outputs, outputs × cells.
    pub(super) fn outputs(&self, hidden: &DMatrix<f32>) -> DMatrix<f32> {
        let width = hidden.nrows();
        let mut outputs = DMatrix::zeros(self.output.nrows(), hidden.ncols());
        for (index, &bias) in self.output_bias.iter().enumerate() {
            let weights: Vec<f32> = self.output.row(index).iter().copied().collect();
            let cells = hidden.as_slice().chunks_exact(width);
            for (output, cell) in outputs.row_mut(index).iter_mut().zip(cells) {
                *output = dot(&weights, cell) + bias;
            }
        }
        outputs
    }

    /// Every weight, in a fixed order.
    pub(super) fn weights(&self) -> Vec<f32> {
        let Self { hidden, hidden_bias, output, output_bias } = self;
        [hidden.as_slice(), hidden_bias.as_slice(), output.as_slice(), output_bias.as_slice()]
            .concat()
    }

    /// Replaces every weight, in the order of [`Self::weights`].
    pub(super) fn set_weights(&mut self, weights: &[f32]) {
        let Self { hidden, hidden_bias, output, output_bias } = self;
        let mut rest = weights;
        for part in [
            hidden.as_mut_slice(),
            hidden_bias.as_mut_slice(),
            output.as_mut_slice(),
            output_bias.as_mut_slice(),
        ] {
            let (taken, left) = rest.split_at(part.len());
            part.copy_from_slice(taken);
            rest = left;
        }
    }

    /// The gradient of a loss by all weights, from its gradient by the outputs.
    ///
    /// `cells` are `[cells, dimensions]`, `hidden` the units after dropout, width × cells, `kept`
    /// the factor of dropout for each unit, and `by_outputs` is outputs × cells.
    pub(super) fn gradient(
        &self,
        cells: &[f32],
        hidden: &DMatrix<f32>,
        kept: &[f32],
        by_outputs: &DMatrix<f32>,
    ) -> Self {
        let (width, dimensions) = (hidden.nrows(), self.hidden.ncols());
        let mut by_hidden = DMatrix::zeros(width, hidden.ncols());
        let mut by_hidden_bias = DVector::zeros(width);
        // width × outputs, so that the weights of an output are contiguous.
        let output = self.output.transpose();
        let mut by_output = DMatrix::zeros(width, output.ncols());
        let columns = by_hidden.as_mut_slice().chunks_exact_mut(width);
        let units = hidden.as_slice().chunks_exact(width).zip(kept.chunks_exact(width));
        for ((slopes, (units, kept)), by_outputs) in
            columns.zip(units).zip(by_outputs.column_iter())
        {
            for (index, &by_output_score) in by_outputs.iter().enumerate() {
                let weights = &output.as_slice()[index * width..][..width];
                add_scaled(slopes, by_output_score, weights);
                let sum = &mut by_output.as_mut_slice()[index * width..][..width];
                add_scaled(sum, by_output_score, units);
            }
            for (slope, (&unit, &kept)) in slopes.iter_mut().zip(units.iter().zip(kept)) {
                *slope *= if unit > 0.0 { kept } else { 0.0 };
            }
            add_scaled(by_hidden_bias.as_mut_slice(), 1.0, slopes);
        }
        // A view with swapped strides, which needs no transposed copy.
        let cells =
            DMatrixView::from_slice_with_strides(cells, hidden.ncols(), dimensions, dimensions, 1);
        Self {
            hidden: by_hidden * cells,
            hidden_bias: by_hidden_bias,
            output: by_output.transpose(),
            output_bias: by_outputs.column_sum(),
        }
    }
}

/// Dropout: zeroes values with probability `share`, and scales the others to keep the mean.
pub(super) fn drop_out(values: &mut [f32], share: f64, stream: &mut Stream) {
    if share == 0.0 {
        return;
    }
    // A byte decides on a value, so that one draw is enough for eight.
    let dropped = (share * 256.0).round() as u16;
    let scale = 256.0 / f32::from(256 - dropped);
    let factor = |byte: u8| if u16::from(byte) < dropped { 0.0 } else { scale };
    let (blocks, rest) = values.as_chunks_mut::<8>();
    for block in blocks {
        let draw = stream.next_u64().to_le_bytes();
        for lane in 0..8 {
            block[lane] *= factor(draw[lane]);
        }
    }
    if !rest.is_empty() {
        let draw = stream.next_u64().to_le_bytes();
        rest.iter_mut().zip(draw).for_each(|(value, byte)| *value *= factor(byte));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Purpose;

    #[test]
    fn two_hidden_units_are_computed_by_hand() {
        let network = Mlp {
            hidden: DMatrix::from_row_slice(2, 2, &[1.0, -1.0, 2.0, 0.0]),
            hidden_bias: DVector::from_vec(vec![0.5, -1.0]),
            output: DMatrix::from_row_slice(1, 2, &[3.0, -2.0]),
            output_bias: DVector::from_vec(vec![0.25]),
        };
        // Hidden 1.5 and 1, then −0.5 → 0 and −1 → 0.
        assert_eq!(network.apply(&[1.0, 0.0, 0.0, 1.0]).as_slice(), [2.75, 0.25]);
    }

    #[test]
    fn weights_come_back_in_their_order() {
        let mut stream = Stream::new(1, Purpose::Init, 0, 0);
        let network = Mlp::random([3, 4, 2], &mut stream);
        let mut copy = Mlp::random([3, 4, 2], &mut stream);
        assert_ne!(copy, network);
        copy.set_weights(&network.weights());
        assert_eq!(copy, network);
    }

    #[test]
    fn dropout_keeps_the_mean() {
        let mut values = vec![1.0; 80_000];
        drop_out(&mut values, 0.2, &mut Stream::new(1, Purpose::Dropout, 0, 0));
        let mean = values.iter().sum::<f32>() / values.len() as f32;
        // The standard error is 0.5/√80000.
        assert!((mean - 1.0).abs() < 0.01, "{mean}");
        assert!(values.iter().all(|&value| value == 0.0 || (value - 1.25).abs() < 0.01));
    }
}
