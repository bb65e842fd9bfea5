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

/// What was given back is kept for what is taken next, instead of being returned to the kernel and
/// brought again, cleared, a page at a time.
///
/// A copy of the units is taken and dropped for every window that is looked at twice: of a run of 187
/// million instructions, whose caches the kernel had to clear a hundred times, that was a twelfth.
pub fn keep_freed() {
    // Without glibc there is nothing to ask.
    #[cfg(target_env = "gnu")]
    // SAFETY: two settings of the allocator, which it heeds from the next piece on.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, KEPT_PIECE);
        libc::mallopt(libc::M_TRIM_THRESHOLD, KEPT);
    }
}

/// Longer pieces go back: more than 32 MiB is not taken for an answer.
#[cfg(target_env = "gnu")]
const KEPT_PIECE: libc::c_int = 32 << 20;
/// What is kept at most.
#[cfg(target_env = "gnu")]
const KEPT: libc::c_int = 256 << 20;

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
    #[cfg(target_env = "gnu")]
    fn what_is_taken_again_need_not_be_brought_again() {
        const ROUNDS: u64 = 8;
        // More than other tests give back, after which more is kept anyway.
        const PIECES: usize = 24;
        let layout = Layout::from_size_align(LARGE - 4096, 8).unwrap();
        let round = || {
            // SAFETY: used within their size and given back as they were taken.
            unsafe {
                let pieces = [(); PIECES].map(|()| LargePages.alloc(layout));
                for piece in pieces {
                    piece.write_bytes(1, layout.size());
                    LargePages.dealloc(piece, layout);
                }
            }
        };
        keep_freed();
        let before = minor_faults();
        (0..ROUNDS).for_each(|_| round());
        let faults = minor_faults() - before;
        let pages = (PIECES * layout.size() / 4096) as u64;
        assert!(faults < 2 * pages, "{faults} faults for {ROUNDS} times {pages} pages");
    }

    /// Pages that this thread was given so far.
    #[cfg(target_env = "gnu")]
    fn minor_faults() -> u64 {
        // SAFETY: a plain structure for which zero is a value, and the call fills it.
        let usage = unsafe {
            let mut usage: libc::rusage = std::mem::zeroed();
            libc::getrusage(libc::RUSAGE_THREAD, &mut usage);
            usage
        };
        usage.ru_minflt as u64
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
