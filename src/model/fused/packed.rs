//! Weights as the kernels read them: prepared once a step, used by all its passes.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use burn::backend::flex::FlexTensor;
use conv_kernels::{
    Isa,
    conv::{Algorithm, Filter, PackedWeights},
};

use super::values;

/// The prepared weights of one convolution, shared by all copies of it.
#[derive(Debug, Clone, Default)]
pub(in crate::model) struct Packed {
    forward: Arc<Mutex<Slot>>,
    backward: Arc<Mutex<Slot>>,
}

/// Prepared weights, and the tensor they were prepared from.
///
/// The tensor is held on to, so that equal addresses mean equal weights.
#[derive(Debug, Default)]
struct Slot {
    source: Option<FlexTensor>,
    packed: Option<PackedWeights>,
}

impl Packed {
    /// Does `work` with the weights prepared for a forward pass.
    pub(super) fn forward<T>(
        &self,
        filter: &Filter,
        weights: &FlexTensor,
        work: impl FnOnce(&PackedWeights) -> T,
    ) -> T {
        let make = |values: &[f32]| {
            PackedWeights::forward(Isa::detect(), filter, Algorithm::fastest(filter), values)
        };
        work(lock(&self.forward).of(weights, make))
    }

    /// Does `work` with the weights prepared for the gradient of the input.
    pub(super) fn backward<T>(
        &self,
        filter: &Filter,
        weights: &FlexTensor,
        work: impl FnOnce(&PackedWeights) -> T,
    ) -> T {
        let make = |values: &[f32]| {
            PackedWeights::backward_data(Isa::detect(), filter, Algorithm::fastest(filter), values)
        };
        work(lock(&self.backward).of(weights, make))
    }
}

impl Slot {
    fn of(
        &mut self,
        weights: &FlexTensor,
        make: impl FnOnce(&[f32]) -> PackedWeights,
    ) -> &PackedWeights {
        let current = self.source.as_ref().is_some_and(|source| same_memory(source, weights));
        if !current {
            if let Some(packed) = &mut self.packed {
                packed.update(values(weights));
            }
            self.source = Some(weights.clone());
        }
        self.packed.get_or_insert_with(|| make(values(weights)))
    }
}

fn same_memory(a: &FlexTensor, b: &FlexTensor) -> bool {
    Arc::ptr_eq(&a.data_arc(), &b.data_arc())
        && a.layout().start_offset() == b.layout().start_offset()
}

/// A panic elsewhere leaves a slot as it was or half updated: its source tells.
fn lock(slot: &Mutex<Slot>) -> MutexGuard<'_, Slot> {
    slot.lock().unwrap_or_else(PoisonError::into_inner)
}
