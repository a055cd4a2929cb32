//! Weights as the kernels read them: prepared once a step, used by all its passes.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use burn::backend::flex::FlexTensor;
use conv_kernels::{
    Isa,
    batch_norm::{BatchNorm, fold},
    conv::{Algorithm, Filter, PackedWeights},
};

use super::values;

/// The prepared weights of one convolution, shared by all copies of it.
#[derive(Debug, Clone, Default)]
pub(in crate::model) struct Packed {
    forward: Arc<Mutex<Slot>>,
    backward: Arc<Mutex<Slot>>,
    folded: Arc<Mutex<Vec<Folded>>>,
}

/// A convolution that has taken in the batch norm behind it.
#[derive(Debug)]
pub(super) struct Folded {
    /// Weights, gamma, beta, mean and variance it was made of.
    sources: [FlexTensor; 5],
    pub(super) weights: PackedWeights,
    pub(super) bias: Vec<f32>,
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

impl Packed {
    /// Does `work` with the convolution that has taken in its batch norm.
    ///
    /// `sources` are weights, gamma, beta, mean and variance.
    pub(super) fn folded<T>(
        &self,
        filter: &Filter,
        sources: [FlexTensor; 5],
        epsilon: f32,
        work: impl FnOnce(&Folded) -> T,
    ) -> T {
        let mut all = lock(&self.folded);
        // One for the statistics of each branch; what was made of other weights is of no use.
        all.retain(|folded| same_memory(&folded.sources[0], &sources[0]));
        let same = |folded: &Folded| {
            folded.sources.iter().zip(&sources).all(|(mine, asked)| same_memory(mine, asked))
        };
        let at = all.iter().position(same).unwrap_or_else(|| {
            all.push(Folded::new(filter, sources.clone(), epsilon));
            all.len() - 1
        });
        work(&all[at])
    }

    /// Gives back the memory of folded convolutions, which training has no use for.
    pub(super) fn unfold(&self) {
        lock(&self.folded).clear();
    }
}

impl Folded {
    fn new(filter: &Filter, sources: [FlexTensor; 5], epsilon: f32) -> Self {
        let [weights, gamma, beta, mean, variance] = sources.each_ref().map(values);
        let norm = BatchNorm { mean, variance, gamma, beta, epsilon };
        let (weights, bias) = fold(&norm, weights);
        let weights =
            PackedWeights::forward(Isa::detect(), filter, Algorithm::fastest(filter), &weights);
        Self { sources, weights, bias }
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
            self.source = None;
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

/// What a panic elsewhere leaves behind names the tensors it was made of, or none.
fn lock<T>(slot: &Mutex<T>) -> MutexGuard<'_, T> {
    slot.lock().unwrap_or_else(PoisonError::into_inner)
}
