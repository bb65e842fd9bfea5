//! Memory of large tables on large pages.
//!
//! A modelled last-level cache is megabytes that are looked at here and there. On small pages the host
//! then walks its own tables for nearly every look, twice over in a virtual machine.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

/// The bytes of a large page.
const LARGE: usize = 2 << 20;

/// Bytes that may still be asked for on large pages. Tables are made once, at the start. A kernel that
/// has no large page at hand moves memory about until it has one, which may take long: what is
/// allocated again and again must not have it do so.
static LEFT: AtomicUsize = AtomicUsize::new(64 << 20);

/// The system's allocator, which asks for large pages where a piece is as long as one.
///
/// The kernel may not have any at hand, which changes nothing but time.
#[derive(Clone, Copy, Debug)]
pub struct LargePages;

/// The layout that a piece has: one that is long begins at a large page.
fn laid(layout: Layout) -> Layout {
    match layout.size() >= LARGE {
        true => layout.align_to(LARGE).unwrap_or(layout),
        false => layout,
    }
}

/// Asks for large pages under a piece.
fn ask(piece: *mut u8, layout: Layout) {
    if piece.is_null() || layout.size() < LARGE {
        return;
    }
    let without = |left: usize| left.checked_sub(layout.size());
    if LEFT.fetch_update(Relaxed, Relaxed, without).is_ok() {
        // SAFETY: the piece is ours and that long; the advice changes nothing that is in it.
        unsafe { libc::madvise(piece.cast(), layout.size(), libc::MADV_HUGEPAGE) };
    }
}

// SAFETY: every piece comes from the system's allocator and goes back to it, in both cases with the
// layout that `laid` makes of the caller's, which is at least as strict.
unsafe impl GlobalAlloc for LargePages {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise; a stricter layout is as long.
        let piece = unsafe { System.alloc(laid(layout)) };
        ask(piece, layout);
        piece
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if layout.size() < LARGE {
            // SAFETY: the caller's promise.
            return unsafe { System.alloc_zeroed(layout) };
        }
        // SAFETY: the caller's promise. Asked for before it is written, so that it is not small yet.
        let piece = unsafe { self.alloc(layout) };
        if !piece.is_null() {
            // SAFETY: a new piece of that many bytes.
            unsafe { piece.write_bytes(0, layout.size()) };
        }
        piece
    }

    unsafe fn dealloc(&self, piece: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise, and the layout that it was allocated with.
        unsafe { System.dealloc(piece, laid(layout)) }
    }

    unsafe fn realloc(&self, piece: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if layout.size().max(size) < LARGE {
            // SAFETY: the caller's promise.
            return unsafe { System.realloc(piece, layout, size) };
        }
        let Ok(new_layout) = Layout::from_size_align(size, layout.align()) else {
            return std::ptr::null_mut();
        };
        // SAFETY: the caller's promise; both pieces are as long as what is copied.
        unsafe {
            let moved = self.alloc(new_layout);
            if !moved.is_null() {
                std::ptr::copy_nonoverlapping(piece, moved, layout.size().min(size));
                self.dealloc(piece, layout);
            }
            moved
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_keep_what_is_in_them_however_long_they_become() {
        let sizes = [64, LARGE - 1, LARGE, 3 * LARGE + 5, LARGE + 1, 100];
        // SAFETY: pieces are used within their sizes and given back as they were taken.
        unsafe {
            let mut layout = Layout::from_size_align(sizes[0], 16).unwrap();
            let mut piece = LargePages.alloc(layout);
            piece.write_bytes(7, 64);
            for size in sizes {
                piece = LargePages.realloc(piece, layout, size);
                layout = Layout::from_size_align(size, 16).unwrap();
                assert!(!piece.is_null());
                let is_laid = piece.addr().is_multiple_of(if size >= LARGE { LARGE } else { 16 });
                assert!(is_laid, "{size} bytes at {piece:?}");
                let bytes = std::slice::from_raw_parts(piece, 64);
                assert!(bytes.iter().all(|byte| *byte == 7), "{size}");
            }
            LargePages.dealloc(piece, layout);
        }
    }

    #[test]
    fn large_pages_are_asked_for_only_so_often() {
        let layout = Layout::from_size_align(4 * LARGE, 8).unwrap();
        for _ in 0..100 {
            // SAFETY: given back as it was taken.
            unsafe { LargePages.dealloc(LargePages.alloc(layout), layout) };
        }
        assert!(LEFT.load(Relaxed) < 4 * LARGE, "no more is left than a piece needs");
    }

    #[test]
    fn pieces_that_are_to_be_zero_are() {
        for size in [48, 2 * LARGE + 8] {
            let layout = Layout::from_size_align(size, 8).unwrap();
            // SAFETY: as above.
            unsafe {
                let used = LargePages.alloc(layout);
                used.write_bytes(1, size);
                LargePages.dealloc(used, layout);
                let piece = LargePages.alloc_zeroed(layout);
                let bytes = std::slice::from_raw_parts(piece, size);
                assert!(bytes.iter().all(|byte| *byte == 0), "{size}");
                LargePages.dealloc(piece, layout);
            }
        }
    }
}
