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

/// Whether a block is mapped by us. The layout alone decides, which is the same when it is freed.
fn is_large(layout: Layout) -> bool {
    cfg!(target_os = "linux") && layout.size() >= LARGE && layout.align() <= LARGE
}

// SAFETY: small blocks are the standard allocator's. Large ones are private mappings, which overlap
// nothing, are aligned to `LARGE`, have one owner at a time, the caller or `KEPT`, and are unmapped
// by the length they were mapped with.
unsafe impl GlobalAlloc for HugePages {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if is_large(layout) {
            return kept::take(layout.size()).unwrap_or_else(|| mapping::map(layout.size()));
        }
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if is_large(layout) {
            let Some(block) = kept::take(layout.size()) else {
                // The system clears what it hands out.
                return mapping::map(layout.size());
            };
            // SAFETY: the block is as long as what is cleared, and nobody else has it.
            unsafe { block.write_bytes(0, layout.size()) };
            return block;
        }
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if is_large(layout) {
            // SAFETY: the block came from `map` with this size, by the same test of its layout, and
            // the caller gives it up.
            return unsafe { kept::give(block, layout.size()) };
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
        if moved.is_null() {
            return moved;
        }
        // SAFETY: both blocks are as long as what is copied, and a new one overlaps no other.
        unsafe { moved.copy_from_nonoverlapping(block, layout.size().min(size)) };
        if is_large(layout) {
            // Not kept: what grew out of a block will not need one of its size again, and to keep
            // each would hold as much memory as the whole has at its end.
            // SAFETY: the block came from `map` with this size, by the same test of its layout.
            unsafe { mapping::unmap(block, layout.size()) };
        } else {
            // SAFETY: the block is the standard allocator's.
            unsafe { System.dealloc(block, layout) };
        }
        moved
    }
}

/// Blocks that were freed, kept for the next one of the same size.
///
/// A program that does the same to one image after the other frees and allocates the same sizes all
/// the time, and a fresh page costs more than what is computed with it.
mod kept {
    use std::{ptr, sync::Mutex};

    use super::mapping;

    /// Blocks that are kept at most.
    const BLOCKS: usize = 8;
    /// Bytes that are kept at most, of all blocks together.
    const BYTES: usize = 32 << 20;
    /// Sizes that are remembered as having been freed before.
    const SIZES: usize = 32;

    static KEPT: Mutex<Kept> =
        Mutex::new(Kept { blocks: [Block::NONE; BLOCKS], bytes: 0, freed: [0; SIZES] });

    struct Kept {
        /// The oldest first, then unused places, of size zero.
        blocks: [Block; BLOCKS],
        bytes: usize,
        /// The last sizes that were freed, each once, the newest first.
        freed: [usize; SIZES],
    }

    #[derive(Clone, Copy)]
    struct Block {
        start: *mut u8,
        size: usize,
    }

    impl Block {
        const NONE: Self = Self { start: ptr::null_mut(), size: 0 };
    }

    // SAFETY: a kept block has no other owner, so that any thread may have it next.
    unsafe impl Send for Block {}

    /// A block of exactly that size, with any content; none if none is kept.
    pub(super) fn take(size: usize) -> Option<*mut u8> {
        // If it is locked, the caller maps a new block: an allocation never waits.
        let mut kept = KEPT.try_lock().ok()?;
        // The newest is the likeliest to be in the processor's cache.
        let at = kept.blocks.iter().rposition(|block| block.size == size)?;
        Some(kept.remove(at).start)
    }

    /// Keeps a block, or gives it back to the system if it is too large or the first of its size:
    /// what happened once, as a buffer for a whole file, need not happen again.
    ///
    /// # Safety
    ///
    /// The block comes from [`mapping::map`] with the same size, and nothing uses it any more.
    pub(super) unsafe fn give(start: *mut u8, size: usize) {
        if size <= BYTES / 2
            && let Ok(mut kept) = KEPT.try_lock()
            && kept.is_repeated(size)
        {
            return kept.add(Block { start, size });
        }
        // SAFETY: as the caller promises.
        unsafe { mapping::unmap(start, size) };
    }

    impl Kept {
        /// Makes room by unmapping the oldest blocks, and keeps one more.
        fn add(&mut self, block: Block) {
            while self.blocks[BLOCKS - 1].size > 0 || self.bytes + block.size > BYTES {
                let oldest = self.remove(0);
                // SAFETY: it was given to us with this size, and is kept no longer.
                unsafe { mapping::unmap(oldest.start, oldest.size) };
            }
            let end = self.blocks.iter().position(|block| block.size == 0).unwrap_or(BLOCKS - 1);
            self.blocks[end] = block;
            self.bytes += block.size;
        }

        /// Whether a block of this size was freed before; remembers it.
        fn is_repeated(&mut self, size: usize) -> bool {
            let repeated = self.freed.contains(&size);
            if !repeated {
                self.freed.rotate_right(1);
                self.freed[0] = size;
            }
            repeated
        }

        /// Takes a block out; those behind it move up.
        fn remove(&mut self, at: usize) -> Block {
            let block = self.blocks[at];
            self.blocks.copy_within(at + 1.., at);
            self.blocks[BLOCKS - 1] = Block::NONE;
            self.bytes -= block.size;
            block
        }
    }

    #[cfg(all(test, target_os = "linux"))]
    mod tests {
        use super::{super::LARGE, *};

        #[test]
        fn a_freed_block_serves_the_next_one_of_its_size() {
            // A size that no other test uses, as all of them share what is kept.
            let size = 2 * LARGE + 77;
            // SAFETY: each block is ours, and given up at once.
            unsafe { give(mapping::map(size), size) };
            assert_eq!(take(size), None, "the first of its size");
            let block = mapping::map(size);
            // SAFETY: the block is ours, and taken back before it is used again.
            unsafe { give(block, size) };
            assert_eq!(take(size + 1), None);
            // Another test may have pushed it out, but nothing else can come of it.
            assert!(take(size).is_none_or(|found| found == block));
            assert_eq!(take(size), None);
        }

        #[test]
        fn what_is_kept_is_bounded() {
            for index in 1..80 {
                let size = LARGE + (index % 12) * (LARGE / 2);
                // SAFETY: each block is mapped for this, and given up at once.
                unsafe { give(mapping::map(size), size) };
                if let Ok(kept) = KEPT.try_lock() {
                    let bytes: usize = kept.blocks.iter().map(|block| block.size).sum();
                    assert!(bytes == kept.bytes && bytes <= BYTES, "{bytes} {}", kept.bytes);
                }
            }
        }
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
        // SAFETY: `before` is below `LARGE`, by which the mapping is longer than `size`.
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
    /// The block comes from [`map`] with the same size, and nothing uses it any more.
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
    #[cfg(target_os = "linux")]
    fn what_grew_leaves_nothing_behind() {
        // A size that no other test uses, as all of them share what is kept.
        let (small, large) = (2 * LARGE + 333, 3 * LARGE + 333);
        // SAFETY: the block is used within its size, and freed once with its last layout.
        unsafe {
            for _ in 0..3 {
                let block = HugePages.alloc(layout(small));
                let block = HugePages.realloc(block, layout(small), large);
                assert_eq!(kept::take(small), None);
                HugePages.dealloc(block, layout(large));
            }
        }
    }

    #[test]
    fn more_than_there_is_gives_null() {
        let layout = Layout::from_size_align(isize::MAX as usize - 63, 64).unwrap();
        // SAFETY: nothing is done with the block.
        assert!(unsafe { HugePages.alloc(layout) }.is_null());
    }
}
