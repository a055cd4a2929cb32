//! Buffers that are used again, so that a training step allocates nothing.
//!
//! Every thread keeps its own stack of buffers. A kernel takes the top one, which is replaced if it
//! is too small, and puts it back at its end.

use std::{
    cell::RefCell,
    mem,
    ops::{Deref, DerefMut},
};

/// Bytes of a cache line.
const LINE: usize = 64;

/// Floats that begin on a cache line of their own.
#[derive(Default)]
pub(crate) struct AlignedFloats {
    memory: Vec<f32>,
    start: usize,
    len: usize,
}

impl AlignedFloats {
    pub(crate) fn zeroed(len: usize) -> Self {
        let memory = vec![0.0; len + LINE / size_of::<f32>()];
        let start = memory.as_ptr().align_offset(LINE);
        Self { memory, start, len }
    }
}

impl Deref for AlignedFloats {
    type Target = [f32];

    #[inline(always)]
    fn deref(&self) -> &[f32] {
        &self.memory[self.start..][..self.len]
    }
}

impl DerefMut for AlignedFloats {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [f32] {
        &mut self.memory[self.start..][..self.len]
    }
}

thread_local! {
    static POOL: RefCell<Vec<AlignedFloats>> = const { RefCell::new(Vec::new()) };
}

/// A buffer taken from the thread's stack, put back when dropped.
pub(crate) struct Floats(AlignedFloats);

/// Takes a buffer of `len` floats of unknown value.
pub(crate) fn floats(len: usize) -> Floats {
    let mut floats = POOL.with_borrow_mut(Vec::pop).unwrap_or_default();
    if floats.start + len > floats.memory.len() {
        floats = AlignedFloats::zeroed(len);
    }
    floats.len = len;
    Floats(floats)
}

impl Deref for Floats {
    type Target = [f32];

    #[inline(always)]
    fn deref(&self) -> &[f32] {
        &self.0
    }
}

impl DerefMut for Floats {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [f32] {
        &mut self.0
    }
}

impl Drop for Floats {
    fn drop(&mut self) {
        POOL.with_borrow_mut(|pool| pool.push(mem::take(&mut self.0)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nested_buffers_do_not_share_memory() {
        let (mut outer, mut inner) = (floats(20), floats(20));
        outer.fill(1.0);
        inner.fill(2.0);
        assert!(outer.iter().all(|&x| x == 1.0));
    }

    #[test]
    fn buffers_start_on_a_cache_line() {
        assert_eq!(floats(3).as_ptr() as usize % 64, 0);
    }
}
