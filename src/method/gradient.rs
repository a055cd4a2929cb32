//! Gradients of a loss by the weights, summed over several backward passes.

use std::collections::BTreeMap;

use burn::{module::Module, tensor::Gradients};
use rayon::prelude::*;

use crate::{
    collective::Share,
    model::{layers::reuse, params},
};

/// The gradient of a batch's loss, by the name of the weight.
pub type GradientSum = BTreeMap<String, Vec<f32>>;

/// Floats that one thread adds at a time.
const BLOCK: usize = 16 * 1024;

/// The gradients of a backward pass by the weights of a module; zeros if this rank's share of the
/// batch has no image that counts.
pub fn collect(module: &impl Module, found: Gradients, share: &Share) -> GradientSum {
    let mut gradients = params::gradients(module, found);
    if !share.counts() {
        gradients.values_mut().for_each(|gradient| gradient.fill(0.0));
    }
    gradients
}

/// Adds the gradients of a backward pass on a share of the batch.
pub fn accumulate(sum: &mut GradientSum, module: &impl Module, found: Gradients, share: &Share) {
    for (name, gradient) in collect(module, found, share) {
        match sum.get_mut(&name) {
            None => {
                sum.insert(name, gradient);
            }
            Some(total) => {
                let blocks = total.par_chunks_mut(BLOCK).zip(gradient.par_chunks(BLOCK));
                blocks.for_each(|(total, more)| {
                    total.iter_mut().zip(more).for_each(|(total, more)| *total += more);
                });
                reuse(gradient);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use burn::{
        module::Param,
        tensor::{Device, Tensor},
    };

    use super::*;
    use crate::{device, model::layers::tensor};

    #[derive(Module, Debug)]
    struct Two {
        first: Param<Tensor<1>>,
        second: Param<Tensor<1>>,
    }

    fn weights(count: usize, device: &Device) -> Param<Tensor<1>> {
        Param::from_tensor(tensor(vec![1.0; count], [count], device))
    }

    #[test]
    fn passes_add_up_and_weights_that_none_reaches_are_absent() {
        let device = device::cpu().autodiff();
        // More than one block, and no whole number of them.
        let long = 2 * BLOCK + 3;
        let module = Two { first: weights(long, &device), second: weights(2, &device) };
        let mut sum = GradientSum::new();
        for factor in [2.0, 3.0] {
            let found = (module.first.val() * factor).sum().backward();
            accumulate(&mut sum, &module, found, &Share::whole(1));
        }
        let nothing = Share { mine: 0, ..Share::whole(1) };
        accumulate(&mut sum, &module, module.first.val().sum().backward(), &nothing);
        assert_eq!(sum.keys().collect::<Vec<_>>(), ["first"]);
        assert_eq!(sum["first"], vec![5.0; long]);
    }
}
