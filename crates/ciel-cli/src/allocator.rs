//! The allocator of the command: mimalloc, asked for an alignment only where that matters.
//!
//! Its blocks are aligned for all values of C, and so for nearly all of ours. Asked for what it
//! would do anyway it looks for a block that happens to be aligned, and takes a larger one if the
//! list at hand is empty: each list then stays empty, and whoever frees such a block has to find
//! where it begins. Read next: `main`.

use std::alloc::{GlobalAlloc, Layout};

use libmimalloc_sys::{mi_malloc, mi_realloc, mi_zalloc};
use mimalloc::MiMalloc;

/// Bytes to whose multiples each block is aligned that is not smaller.
const NATURAL: usize = 16;

/// The allocator of all threads; it has no state of its own here.
pub(crate) struct Allocator;

/// Whether a block of that size is aligned so without being asked.
fn is_natural(size: usize, align: usize) -> bool {
    align <= NATURAL && align <= size
}

// SAFETY: all blocks are of mimalloc, which frees them whatever they were asked for with, and
// aligns them as `is_natural` says; the rest is what the caller promises.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        match is_natural(layout.size(), layout.align()) {
            // SAFETY: any size may be asked for.
            true => unsafe { mi_malloc(layout.size()).cast() },
            // SAFETY: as the caller promises.
            false => unsafe { MiMalloc.alloc(layout) },
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        match is_natural(layout.size(), layout.align()) {
            // SAFETY: any size may be asked for.
            true => unsafe { mi_zalloc(layout.size()).cast() },
            // SAFETY: as the caller promises.
            false => unsafe { MiMalloc.alloc_zeroed(layout) },
        }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { MiMalloc.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        match is_natural(size, layout.align()) {
            // SAFETY: the caller has it from one of these functions.
            true => unsafe { mi_realloc(block.cast(), size).cast() },
            // SAFETY: as the caller promises.
            false => unsafe { MiMalloc.realloc(block, layout, size) },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_of_any_layout_are_aligned_and_keep_their_bytes() {
        for align in [1, 2, 4, 8, 16, 32, 64, 4096] {
            for size in (1..200).chain([1000, 4097, 70_000]) {
                check(Layout::from_size_align(size, align).unwrap());
            }
        }
    }

    fn check(layout: Layout) {
        let is_aligned = |block: *mut u8| block.addr().is_multiple_of(layout.align());
        for other in [1, layout.size() / 2 + 1, layout.size() * 3] {
            let kept = layout.size().min(other);
            // SAFETY: the sizes are not zero, only bytes inside of the block are looked at, and it
            // is freed with the layout that it has by then.
            unsafe {
                let block = Allocator.alloc_zeroed(layout);
                assert!(is_aligned(block), "{layout:?}");
                assert!((0..layout.size()).all(|at| *block.add(at) == 0));
                block.write_bytes(7, layout.size());
                let block = Allocator.realloc(block, layout, other);
                assert!(is_aligned(block), "{layout:?} became {other}");
                assert!((0..kept).all(|at| *block.add(at) == 7));
                Allocator.dealloc(
                    block,
                    Layout::from_size_align(other, layout.align()).unwrap(),
                );
                let block = Allocator.alloc(layout);
                assert!(is_aligned(block), "{layout:?}");
                Allocator.dealloc(block, layout);
            }
        }
    }
}
