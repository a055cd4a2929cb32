//! The localizer passes of a step repeated, to propagate the mask's gradient to the localizer.
//!
//! Only for `mask.gradient = "through"`; the paper detaches the mask. The gradient of the
//! accumulated mask is known only after the classifier's two losses, and keeping the graph of
//! every localizer pass until then would make memory grow with the number of rounds.

use burn::tensor::Tensor;

use super::{LocalizerPass, Step, each, images_of_pass};
use crate::{
    method::gradient::{GradientSum, accumulate},
    model::Pass,
};

impl Step<'_> {
    /// Repeats the passes that gave `mask` and differentiates each: the localizer's loss, and
    /// the classifier's losses through the mask, whose gradient by it is `mask_gradient`.
    pub(super) fn replay(
        &self,
        passes: &[LocalizerPass],
        mask: &Tensor<4>,
        mask_gradient: &Tensor<4>,
        gradients: &mut GradientSum,
    ) {
        let mut recursion = self.start();
        let (masks, mask_gradients) = (each(mask), each(mask_gradient));
        for pass in passes {
            let passed = images_of_pass(&pass.active);
            let labels = self.labels_of(&passed);
            // The running statistics were updated by the first pass.
            let statistics = self.unless_frozen(Pass::TrainOnly(pass.share));
            let response = self.localize(&recursion, &passed, statistics);
            let mut loss = self.localizer_loss(&response, &labels);
            let constant = response.detached().mask(self.size(), &self.rules());

            // The maximum of Eq. 10 passes its gradient to the pass that attains it.
            let samples = pass.active.iter().zip(&pass.trust).zip(each(&constant));
            let attained = samples.map(|((&i, &trust), mask)| {
                let attains = (mask * trust).equal(masks[i].clone()).float();
                mask_gradients[i].clone() * attains * trust
            });
            let attained: Vec<Tensor<4>> = attained.collect();
            if !attained.is_empty() {
                let attained = Tensor::cat(attained, 0).autodiff();
                loss = loss + (response.mask(self.size(), &self.rules()) * attained).sum();
            }
            self.accumulate_and_erase(&mut recursion, pass, constant);
            accumulate(gradients, self.model, loss.backward(), &pass.share);
        }
    }
}
