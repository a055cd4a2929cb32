//! A slice written by many threads at places that never overlap.

use std::marker::PhantomData;

/// Hands out parts of one mutable slice to concurrent tasks.
#[derive(Clone, Copy)]
pub(crate) struct Shared<'a> {
    start: *mut f32,
    len: usize,
    lifetime: PhantomData<&'a mut [f32]>,
}

// SAFETY: it stands for a `&mut [f32]`, which may move between threads; that concurrent parts do
// not overlap is promised at each call of `part`.
unsafe impl Send for Shared<'_> {}
// SAFETY: as above.
unsafe impl Sync for Shared<'_> {}

impl<'a> Shared<'a> {
    pub(crate) fn new(slice: &'a mut [f32]) -> Self {
        Self { start: slice.as_mut_ptr(), len: slice.len(), lifetime: PhantomData }
    }

    /// `len` floats from `from` on.
    ///
    /// # Safety
    /// No other part that overlaps with this one is in use.
    #[inline(always)]
    pub(crate) unsafe fn part(&self, from: usize, len: usize) -> &'a mut [f32] {
        assert!(from <= self.len && len <= self.len - from, "part lies outside of the slice");
        // SAFETY: within bounds, and exclusive by the caller's promise.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(from), len) }
    }

    /// `len` floats from `from` on, to be read.
    ///
    /// # Safety
    /// No part that overlaps with this one is in use.
    #[inline(always)]
    pub(crate) unsafe fn view(&self, from: usize, len: usize) -> &'a [f32] {
        assert!(from <= self.len && len <= self.len - from, "part lies outside of the slice");
        // SAFETY: within bounds, and nobody writes there by the caller's promise.
        unsafe { std::slice::from_raw_parts(self.start.add(from), len) }
    }

    /// The address of value `at`.
    ///
    /// # Safety
    /// `at` lies in the slice, and what is written there overlaps with no part in use.
    #[inline(always)]
    pub(crate) unsafe fn address(&self, at: usize) -> *mut f32 {
        debug_assert!(at < self.len);
        // SAFETY: within the slice by the caller's promise.
        unsafe { self.start.add(at) }
    }
}
