//! Memory to walk through: lines linked into one random cycle.

use std::io;
use std::ptr::{self, NonNull};

/// Bytes of a line.
const LINE: usize = 64;
/// Where in its line a link lies.
pub(crate) const LINK: usize = 8;

/// Pages of memory of our own, given back when dropped.
#[derive(Debug)]
pub struct Arena {
    start: NonNull<u8>,
    bytes: usize,
}

impl Arena {
    /// So many bytes; in huge pages if asked and the kernel has them.
    ///
    /// # Errors
    ///
    /// There is no such memory.
    pub fn new(bytes: usize, huge: bool) -> io::Result<Arena> {
        const HUGE: usize = 2 << 20;
        let bytes = bytes.max(LINE).next_multiple_of(if huge { HUGE } else { 4096 });
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a fresh anonymous mapping at an address that the kernel chooses.
        let mapped = unsafe { libc::mmap(ptr::null_mut(), bytes, access, kind, -1, 0) };
        if mapped == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(mapped.cast::<u8>()).ok_or_else(io::Error::last_os_error)?;
        let advice = if huge { libc::MADV_HUGEPAGE } else { libc::MADV_NOHUGEPAGE };
        // SAFETY: the range is the mapping just made. Advice may be refused: pages are then small.
        unsafe { libc::madvise(start.as_ptr().cast(), bytes, advice) };
        // SAFETY: the mapping is `bytes` long, writable and ours alone.
        unsafe { ptr::write_bytes(start.as_ptr(), 0, bytes) };
        Ok(Arena { start, bytes })
    }

    /// The first byte.
    pub(crate) fn start(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// How many bytes there are.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Links the lines at `places` into one cycle, in an order drawn from a seed. A place beyond
    /// the arena is left out. Returns the first link.
    pub(crate) fn weave(&mut self, places: &[usize], seed: u64) -> *const u8 {
        let mut order: Vec<usize> =
            places.iter().copied().filter(|place| place + LINE <= self.bytes).collect();
        shuffle(&mut order, seed);
        for (k, &place) in order.iter().enumerate() {
            let next = order.get((k + 1) % order.len()).copied().unwrap_or(0);
            // SAFETY: both places are lines within the mapping; links are aligned to eight bytes
            // because places are to lines and the mapping is to pages.
            unsafe {
                let link = self.start().add(place + LINK).cast::<*const u8>();
                link.write(self.start().add(next));
            }
        }
        let first = order.first().copied().unwrap_or(0);
        // SAFETY: the place is within the mapping.
        unsafe { self.start().add(first) }
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours and nobody holds a pointer into it any longer.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

/// Every line of so many bytes.
pub(crate) fn lines(bytes: usize) -> Vec<usize> {
    (0..bytes / LINE).map(|line| line * LINE).collect()
}

/// One line of each page, in another set of the first level each.
pub(crate) fn line_a_page(pages: usize) -> Vec<usize> {
    (0..pages).map(|page| page * 4096 + page % 64 * LINE).collect()
}

fn shuffle(order: &mut [usize], seed: u64) {
    let mut state = seed | 1;
    for k in (1..order.len()).rev() {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        order.swap(k, (state % (k as u64 + 1)) as usize);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_woven_arena_is_one_cycle_through_every_line() {
        for (bytes, places) in [(1 << 14, lines(1 << 14)), (64 * 4096, line_a_page(64))] {
            let mut arena = Arena::new(bytes, false).unwrap();
            let first = arena.weave(&places, 7);
            let mut at = first;
            for step in 1..=places.len() {
                // SAFETY: every link leads to a line of the arena, as the test is to show.
                at = unsafe { at.add(LINK).cast::<*const u8>().read() };
                assert_eq!(at == first, step == places.len(), "{step}");
            }
        }
    }

    #[test]
    fn places_beyond_the_arena_are_left_out() {
        let mut arena = Arena::new(4096, false).unwrap();
        let first = arena.weave(&[0, 64, 1 << 30], 3);
        // SAFETY: as above.
        let second = unsafe { first.add(LINK).cast::<*const u8>().read() };
        assert_ne!(first, second);
        assert!(Arena::new(usize::MAX / 2, false).is_err());
    }
}
