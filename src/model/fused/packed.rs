//! Weights as the kernels read them: prepared once a step, used by all its passes.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use burn::{backend::flex::FlexTensor, tensor::Bytes};
use conv_kernels::{
    Isa,
    batch_norm::{BatchNorm, fold},
    conv::{Algorithm, Filter, PackedWeights},
};

use super::values;

/// The prepared weights of one convolution, shared by all copies of it.
#[derive(Debug, Clone, Default)]
pub(in crate::model) struct Packed {
    /// For a forward pass.
    pub(super) forward: Prepared,
    /// For the gradient of the input.
    pub(super) backward: Prepared,
    folded: Arc<Mutex<Vec<Folded>>>,
}

/// Weights prepared for one direction, and the tensor they were prepared from.
#[derive(Debug, Clone, Default)]
pub(super) struct Prepared(Arc<Mutex<Option<(Source, PackedWeights)>>>);

/// A convolution with the batch norm behind it folded into it.
#[derive(Debug)]
pub(super) struct Folded {
    /// Weights, gamma, beta, mean and variance it was made of.
    sources: [Source; 5],
    pub(super) weights: PackedWeights,
    pub(super) bias: Vec<f32>,
}

/// The identity of a tensor that something was computed from.
///
/// A weak reference, so that the address is not used again, though the values may be freed.
#[derive(Debug)]
struct Source {
    memory: Weak<Bytes>,
    offset: usize,
}

impl Source {
    fn new(tensor: &FlexTensor) -> Self {
        Self { memory: Arc::downgrade(&tensor.data_arc()), offset: tensor.layout().start_offset() }
    }

    fn is(&self, tensor: &FlexTensor) -> bool {
        std::ptr::eq(self.memory.as_ptr(), Arc::as_ptr(&tensor.data_arc()))
            && self.offset == tensor.layout().start_offset()
    }
}

impl Prepared {
    /// Does `work` with the weights, brought up to date.
    pub(super) fn with<T>(
        &self,
        pack: fn(Isa, &Filter, Algorithm, &[f32]) -> PackedWeights,
        filter: &Filter,
        weights: &FlexTensor,
        work: impl FnOnce(&PackedWeights) -> T,
    ) -> T {
        let mut slot = lock(&self.0);
        // Left empty while `work` runs, so that a panic leaves nothing inconsistent.
        let packed = match slot.take() {
            Some((source, packed)) if source.is(weights) => packed,
            Some((_, mut packed)) => {
                packed.update(values(weights));
                packed
            }
            None => pack(Isa::detect(), filter, Algorithm::frugal(filter), values(weights)),
        };
        work(&slot.insert((Source::new(weights), packed)).1)
    }
}

impl Packed {
    /// Does `work` with the convolution that its batch norm is folded into.
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
        // One for the statistics of each branch; those of other weights are dropped.
        all.retain(|folded| folded.sources[0].is(&sources[0]));
        let same = |folded: &Folded| {
            folded.sources.iter().zip(&sources).all(|(mine, asked)| mine.is(asked))
        };
        let at = all.iter().position(same).unwrap_or_else(|| {
            all.push(Folded::new(filter, &sources, epsilon));
            all.len() - 1
        });
        work(&all[at])
    }

    /// Frees the folded convolutions, which training does not use.
    pub(super) fn unfold(&self) {
        lock(&self.folded).clear();
    }
}

impl Folded {
    fn new(filter: &Filter, sources: &[FlexTensor; 5], epsilon: f32) -> Self {
        let [weights, gamma, beta, mean, variance] = sources.each_ref().map(values);
        let norm = BatchNorm { mean, variance, gamma, beta, epsilon };
        let (weights, bias) = fold(&norm, weights);
        let weights =
            PackedWeights::forward(Isa::detect(), filter, Algorithm::frugal(filter), &weights);
        Self { sources: sources.each_ref().map(Source::new), weights, bias }
    }
}

/// A lock that ignores poisoning: after a panic, contents still match their sources, or are empty.
fn lock<T>(slot: &Mutex<T>) -> MutexGuard<'_, T> {
    slot.lock().unwrap_or_else(PoisonError::into_inner)
}
