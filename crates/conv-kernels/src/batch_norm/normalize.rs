//! The forward pass: normalize, add the residual and rectify in one pass over memory.

use rayon::prelude::*;

use super::{BatchNorm, block_len};
use crate::simd::{Isa, Kernel, Simd};

/// Writes `relu(norm(input) + residual)`; without `residual` nothing is added, without `relu`
/// negative values stay.
pub fn normalize(
    isa: Isa,
    norm: &BatchNorm<'_>,
    input: &[f32],
    residual: Option<&[f32]>,
    relu: bool,
    output: &mut [f32],
) {
    let channels = norm.channels();
    assert_eq!(input.len(), output.len(), "output does not match the input");
    let fits = residual.is_none_or(|residual| residual.len() == input.len());
    assert!(fits, "residual does not match the input");
    let (scale, shift) = (norm.scales(), norm.shifts());
    let len = block_len(input.len(), channels);
    output.par_chunks_mut(len).enumerate().for_each(|(block, output)| {
        let here = block * len..block * len + output.len();
        let residual = residual.map(|residual| &residual[here.clone()]);
        isa.run(Rows { input: &input[here], residual, relu, scale: &scale, shift: &shift, output });
    });
}

/// A block of rows.
struct Rows<'a> {
    input: &'a [f32],
    residual: Option<&'a [f32]>,
    relu: bool,
    scale: &'a [f32],
    shift: &'a [f32],
    output: &'a mut [f32],
}

impl Kernel for Rows<'_> {
    #[inline(always)]
    fn run<S: Simd, const R: usize, const V: usize>(self, simd: S) {
        let channels = self.scale.len();
        let shift = &self.shift[..channels];
        for (index, input) in self.input.chunks_exact(channels).enumerate() {
            let output = &mut self.output[index * channels..][..channels];
            let residual = self.residual.map(|values| &values[index * channels..][..channels]);
            for c in (0..channels).step_by(S::LANES) {
                let (scale, shift) = (simd.load_at(self.scale, c), simd.load_at(shift, c));
                let mut value = simd.mul_add(simd.load_at(input, c), scale, shift);
                if let Some(residual) = residual {
                    value = simd.add(value, simd.load_at(residual, c));
                }
                if self.relu {
                    value = simd.relu(value);
                }
                simd.store_at(output, c, value);
            }
        }
    }
}
