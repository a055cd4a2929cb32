//! Temporary memory that outlives its use, so that a training step allocates nothing.
//!
//! Every thread keeps its own stack of buffers; a kernel takes one, and hands it back grown.

use std::{
    cell::RefCell,
    mem::{self, MaybeUninit},
    ops::{Deref, DerefMut},
    slice,
};

/// Floats on a cache line: buffers start on a line of their own.
const LINE: usize = 16;

#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line([f32; LINE]);

/// Whole cache lines of floats.
#[derive(Clone, Default)]
pub(crate) struct AlignedFloats(Vec<Line>);

impl AlignedFloats {
    /// At least `len` zeros.
    pub(crate) fn zeroed(len: usize) -> Self {
        let lines: Box<[MaybeUninit<Line>]> = Box::new_zeroed_slice(len.div_ceil(LINE));
        // SAFETY: `Line` is floats, and zero bytes are the float zero. The macro `vec!` would write
        // them once more over memory that the system hands out cleared.
        Self(unsafe { lines.assume_init() }.into_vec())
    }
}

impl Deref for AlignedFloats {
    type Target = [f32];

    #[inline(always)]
    fn deref(&self) -> &[f32] {
        // SAFETY: `Line` is `LINE` floats without padding.
        unsafe { slice::from_raw_parts(self.0.as_ptr().cast(), self.0.len() * LINE) }
    }
}

impl DerefMut for AlignedFloats {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [f32] {
        // SAFETY: as above.
        unsafe { slice::from_raw_parts_mut(self.0.as_mut_ptr().cast(), self.0.len() * LINE) }
    }
}

thread_local! {
    static POOL: RefCell<Vec<AlignedFloats>> = const { RefCell::new(Vec::new()) };
}

/// Floats on loan, handed back when dropped.
pub(crate) struct Floats {
    memory: AlignedFloats,
    len: usize,
}

/// Lends `len` floats of unknown value.
pub(crate) fn floats(len: usize) -> Floats {
    let mut memory = POOL.with_borrow_mut(Vec::pop).unwrap_or_default();
    if memory.len() < len {
        memory.0.resize(len.div_ceil(LINE), Line([0.0; LINE]));
    }
    Floats { memory, len }
}

impl Deref for Floats {
    type Target = [f32];

    #[inline(always)]
    fn deref(&self) -> &[f32] {
        &self.memory[..self.len]
    }
}

impl DerefMut for Floats {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [f32] {
        &mut self.memory[..self.len]
    }
}

impl Drop for Floats {
    fn drop(&mut self) {
        POOL.with_borrow_mut(|pool| pool.push(mem::take(&mut self.memory)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nested_loans_do_not_share_memory() {
        let (mut outer, mut inner) = (floats(20), floats(20));
        outer.fill(1.0);
        inner.fill(2.0);
        assert!(outer.iter().all(|&x| x == 1.0));
    }

    #[test]
    fn loans_start_on_a_cache_line() {
        assert_eq!(floats(3).as_ptr() as usize % 64, 0);
    }
}
