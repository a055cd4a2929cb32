//! Temporary memory that outlives its use, so that a training step allocates nothing.
//!
//! Every thread keeps its own stack of buffers; a kernel takes one, and hands it back grown.

use std::{
    cell::RefCell,
    mem::MaybeUninit,
    ops::{Deref, DerefMut},
};

/// Floats on a cache line: buffers start on a line of their own.
const LINE: usize = 16;

#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line([f32; LINE]);

thread_local! {
    static FLOATS: RefCell<Vec<Vec<Line>>> = const { RefCell::new(Vec::new()) };
    static TABLES: RefCell<Vec<Table>> = const { RefCell::new(Vec::new()) };
}

/// Floats on loan, handed back when dropped.
pub(crate) struct Floats {
    lines: Vec<Line>,
    len: usize,
}

/// Lends `len` floats of unknown value.
pub(crate) fn floats(len: usize) -> Floats {
    let mut lines = FLOATS.with_borrow_mut(Vec::pop).unwrap_or_default();
    let needed = len.div_ceil(LINE);
    if lines.len() < needed {
        lines.resize(needed, Line([0.0; LINE]));
    }
    Floats { lines, len }
}

impl Deref for Floats {
    type Target = [f32];

    #[inline(always)]
    fn deref(&self) -> &[f32] {
        // SAFETY: `Line` is `LINE` floats without padding, and the vector holds enough of them.
        unsafe { std::slice::from_raw_parts(self.lines.as_ptr().cast::<f32>(), self.len) }
    }
}

impl DerefMut for Floats {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [f32] {
        // SAFETY: as above.
        unsafe { std::slice::from_raw_parts_mut(self.lines.as_mut_ptr().cast::<f32>(), self.len) }
    }
}

impl Drop for Floats {
    fn drop(&mut self) {
        let lines = std::mem::take(&mut self.lines);
        FLOATS.with_borrow_mut(|pool| pool.push(lines));
    }
}

/// Where a block of pixels reads and writes.
#[derive(Default)]
pub(crate) struct Table {
    /// Addresses to read from, by tap and pixel.
    pub(crate) reads: Vec<*const f32>,
    /// Indices to write to, by pixel.
    pub(crate) writes: Vec<usize>,
}

/// Lends an empty table; [`return_table`] takes it back.
pub(crate) fn table() -> Table {
    let mut table = TABLES.with_borrow_mut(Vec::pop).unwrap_or_default();
    table.reads.clear();
    table.writes.clear();
    table
}

/// Keeps the memory of a table for the next one.
pub(crate) fn return_table(table: Table) {
    TABLES.with_borrow_mut(|pool| pool.push(table));
}

/// Floats that start on a cache line and are kept by their owner.
#[derive(Clone, Default)]
pub(crate) struct AlignedFloats {
    lines: Vec<Line>,
}

impl AlignedFloats {
    /// All zero.
    pub(crate) fn zeroed(len: usize) -> Self {
        let lines: Box<[MaybeUninit<Line>]> = Box::new_zeroed_slice(len.div_ceil(LINE));
        // SAFETY: `Line` is floats, and zero bytes are the float zero. The macro `vec!` would write
        // them once more over memory that the system hands out cleared.
        Self { lines: unsafe { lines.assume_init() }.into_vec() }
    }

    pub(crate) fn as_slice(&self) -> &[f32] {
        // SAFETY: `Line` is `LINE` floats without padding.
        unsafe {
            std::slice::from_raw_parts(self.lines.as_ptr().cast::<f32>(), self.lines.len() * LINE)
        }
    }

    pub(crate) fn as_mut_slice(&mut self) -> &mut [f32] {
        let len = self.lines.len() * LINE;
        // SAFETY: `Line` is `LINE` floats without padding.
        unsafe { std::slice::from_raw_parts_mut(self.lines.as_mut_ptr().cast::<f32>(), len) }
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
