//! ReLU and addition on their own, for the few places where no other kernel takes them along.

use rayon::prelude::*;

use crate::simd::{Isa, Kernel, Simd};

/// Floats of a task.
const BLOCK: usize = 16 * 1024;

/// Writes `max(input, 0)`; NaN stays NaN.
pub fn relu(isa: Isa, input: &[f32], output: &mut [f32]) {
    sweep(isa, Operation::Relu, input, input, output);
}

/// Writes the gradient that passes a ReLU with this `output`.
pub fn relu_backward(isa: Isa, output: &[f32], grad_output: &[f32], grad_input: &mut [f32]) {
    sweep(isa, Operation::Gate, output, grad_output, grad_input);
}

/// Writes `a + b`.
pub fn add(isa: Isa, a: &[f32], b: &[f32], sum: &mut [f32]) {
    sweep(isa, Operation::Add, a, b, sum);
}

#[derive(Clone, Copy)]
enum Operation {
    Relu,
    Gate,
    Add,
}

fn sweep(isa: Isa, operation: Operation, a: &[f32], b: &[f32], result: &mut [f32]) {
    assert_eq!(a.len(), b.len(), "operands differ in length");
    assert_eq!(a.len(), result.len(), "result does not match the operands");
    let operands = a.par_chunks(BLOCK).zip(b.par_chunks(BLOCK));
    operands.zip(result.par_chunks_mut(BLOCK)).for_each(|((a, b), result)| {
        isa.run(Sweep { operation, a, b, result });
    });
}

struct Sweep<'a> {
    operation: Operation,
    a: &'a [f32],
    b: &'a [f32],
    result: &'a mut [f32],
}

impl Kernel for Sweep<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd, const R: usize, const V: usize>(self, simd: S) {
        for at in (0..self.a.len()).step_by(S::LANES) {
            let (a, b) = (simd.load_at(self.a, at), simd.load_at(self.b, at));
            let value = match self.operation {
                Operation::Relu => simd.relu(a),
                Operation::Gate => simd.where_positive(a, b),
                Operation::Add => simd.add(a, b),
            };
            simd.store_at(self.result, at, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_operation_by_hand_and_beyond_whole_vectors() {
        let a: Vec<f32> = (0..35).map(|i| i as f32 - 17.0).collect();
        let b: Vec<f32> = (0..35).map(|i| 100.0 + i as f32).collect();
        let of = |f: fn(f32, f32) -> f32| -> Vec<f32> {
            a.iter().zip(&b).map(|(&a, &b)| f(a, b)).collect()
        };
        for isa in Isa::available() {
            let mut result = vec![f32::NAN; 35];
            relu(isa, &a, &mut result);
            assert_eq!(result, of(|a, _| a.max(0.0)));
            relu_backward(isa, &a, &b, &mut result);
            assert_eq!(result, of(|a, b| if a > 0.0 { b } else { 0.0 }));
            add(isa, &a, &b, &mut result);
            assert_eq!(result, of(|a, b| a + b));
        }
    }
}
