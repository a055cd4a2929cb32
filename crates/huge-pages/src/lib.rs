//! An allocator that puts large blocks of memory into huge pages.
//!
//! Programs that sweep over arrays of many megabytes touch a page of 4 KiB every thousand floats:
//! each fresh one is a page fault, and there are more of them than the processor's TLB has entries.

use std::alloc::{GlobalAlloc, Layout, System};

/// Bytes from which on a block is made of huge pages, and the size of such a page on most machines.
const LARGE: usize = 2 << 20;

/// An allocator that asks the system for huge pages where a block is large.
///
/// It is for whole programs, and worth most to short ones, which use fresh memory only:
///
/// ```
/// #[global_allocator]
/// static MEMORY: huge_pages::HugePages = huge_pages::HugePages;
///
/// assert!(vec![0.0_f32; 1 << 20].iter().all(|&value| value == 0.0));
/// ```
///
/// Linux grants huge pages where its setting `transparent_hugepage` is `madvise` or `always`;
/// else, and on other systems, this is the standard allocator.
#[derive(Debug, Clone, Copy, Default)]
pub struct HugePages;

/// Whether a block is mapped by us; depends on the layout alone, which is the same when it is freed.
fn is_large(layout: Layout) -> bool {
    cfg!(target_os = "linux") && layout.size() >= LARGE && layout.align() <= LARGE
}

// SAFETY: small blocks are the standard allocator's. Large ones are fresh private mappings, which
// overlap nothing, are aligned to `LARGE`, and are unmapped by the length they were mapped with.
unsafe impl GlobalAlloc for HugePages {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if is_large(layout) {
            return mapping::map(layout.size());
        }
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if is_large(layout) {
            // The system clears what it hands out.
            return mapping::map(layout.size());
        }
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if is_large(layout) {
            // SAFETY: the block came from `map` with this size, by the same test of its layout.
            return unsafe { mapping::unmap(block, layout.size()) };
        }
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller promises that `size`, rounded up to the alignment, is in range.
        let wanted = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        if !is_large(layout) && !is_large(wanted) {
            // SAFETY: the block is the standard allocator's, and so is what becomes of it.
            return unsafe { System.realloc(block, layout, size) };
        }
        // SAFETY: `wanted` is a valid layout of at least one byte.
        let moved = unsafe { self.alloc(wanted) };
        if !moved.is_null() {
            // SAFETY: both blocks are as long as what is copied, and a new one overlaps no other.
            unsafe {
                moved.copy_from_nonoverlapping(block, layout.size().min(size));
                self.dealloc(block, layout);
            }
        }
        moved
    }
}

#[cfg(target_os = "linux")]
mod mapping {
    use std::ptr;

    use super::LARGE;

    /// Fresh memory, all zero, aligned to [`LARGE`]; null if there is none.
    pub(super) fn map(size: usize) -> *mut u8 {
        let Some(roomy) = size.checked_add(LARGE) else { return ptr::null_mut() };
        let (access, kind) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a mapping of its own, wherever the system likes, disturbs nothing.
        let start = unsafe { libc::mmap(ptr::null_mut(), roomy, access, kind, -1, 0) };
        if start == libc::MAP_FAILED {
            return ptr::null_mut();
        }
        let start = start.cast::<u8>();
        // Whole pages: the system's are powers of two below `LARGE`, and `start` is on one.
        let before = start.align_offset(LARGE);
        // SAFETY: `before` is below `LARGE`, and the mapping is that much longer than `size`.
        let block = unsafe { start.add(before) };
        let end = before + size.next_multiple_of(page());
        // SAFETY: what is given back lies in the mapping, before and behind the block.
        unsafe {
            if before > 0 {
                libc::munmap(start.cast(), before);
            }
            if end < roomy {
                libc::munmap(start.add(end).cast(), roomy - end);
            }
            // Only advice: without huge pages the memory is as good.
            libc::madvise(block.cast(), size, libc::MADV_HUGEPAGE);
        }
        block
    }

    /// Gives memory back.
    ///
    /// # Safety
    ///
    /// The block must come from [`map`] with the same size, and nothing may use it any more.
    pub(super) unsafe fn unmap(block: *mut u8, size: usize) {
        // SAFETY: the mapping is ours to end. The system rounds the length up to whole pages.
        unsafe { libc::munmap(block.cast(), size) };
    }

    fn page() -> usize {
        // SAFETY: asks for a constant.
        let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
        usize::try_from(size).unwrap_or(4096)
    }
}

#[cfg(not(target_os = "linux"))]
mod mapping {
    pub(super) fn map(_: usize) -> *mut u8 {
        unreachable!("no block is large on this system")
    }

    pub(super) unsafe fn unmap(_: *mut u8, _: usize) {
        unreachable!("no block is large on this system")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(size: usize) -> Layout {
        Layout::from_size_align(size, 64).unwrap()
    }

    #[test]
    fn blocks_of_any_size_are_aligned_writable_and_freed() {
        for size in [1, 4096, LARGE - 1, LARGE, LARGE + 1, 3 * LARGE + 12_345, 9 * LARGE] {
            let layout = layout(size);
            // SAFETY: the block is used within its size, and freed once with its layout.
            unsafe {
                let block = HugePages.alloc_zeroed(layout);
                assert!(!block.is_null() && block.align_offset(layout.align()) == 0);
                let bytes = std::slice::from_raw_parts_mut(block, size);
                assert!(bytes.iter().all(|&byte| byte == 0));
                bytes.fill(7);
                HugePages.dealloc(block, layout);
            }
        }
    }

    #[test]
    fn blocks_keep_their_content_when_they_grow_and_shrink_across_the_limit() {
        let sizes = [100, LARGE - 8, LARGE + 8, 4 * LARGE, 5 * LARGE + 1, LARGE, 64];
        // SAFETY: the block is used within its size, and its layout is always the last one.
        unsafe {
            let mut block = HugePages.alloc(layout(sizes[0]));
            block.write_bytes(3, sizes[0]);
            for (from, to) in sizes.iter().zip(&sizes[1..]) {
                block = HugePages.realloc(block, layout(*from), *to);
                assert!((0..64).all(|at| *block.add(at) == 3), "{from} → {to}");
                block.add(to - 1).write(3);
            }
            HugePages.dealloc(block, layout(64));
        }
    }

    #[test]
    fn more_than_there_is_gives_null() {
        let layout = Layout::from_size_align(isize::MAX as usize - 63, 64).unwrap();
        // SAFETY: nothing is done with the block.
        assert!(unsafe { HugePages.alloc(layout) }.is_null());
    }
}
