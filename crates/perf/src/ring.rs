//! The kernel's ring of records, read without copying the whole.
//!
//! ```text
//! | control page | data page 0 | … | data page 2^n − 1 |
//!     data_head: kernel writes up to here (ever growing)
//!     data_tail: we have read up to here
//! ```

use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::Refusal;

/// Offsets in `struct perf_event_mmap_page`.
const DATA_HEAD: usize = 1024;
const DATA_TAIL: usize = 1032;

/// A mapped ring. Records are handed out as byte slices, header included.
#[derive(Debug)]
pub struct Ring {
    base: NonNull<u8>,
    data_bytes: usize,
    /// A record that wraps around the end is put together here.
    joined: Vec<u8>,
}

/// What one pass over the ring found.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RingRead {
    /// Records handed out.
    pub records: u64,
    /// Bytes that had to be skipped because a header made no sense. Never seen from a kernel; the
    /// ring would be read in circles if it were not checked.
    pub skipped_bytes: u64,
}

// SAFETY: the mapping belongs to this value alone, and nothing in it is tied to a thread.
unsafe impl Send for Ring {}

impl Ring {
    /// Bytes in a page.
    pub fn page_size() -> usize {
        // SAFETY: sysconf has no preconditions.
        let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
        usize::try_from(size).unwrap_or(4096)
    }

    pub(crate) fn map(fd: &OwnedFd, data_pages: usize) -> Result<Ring, Refusal> {
        let page = Ring::page_size();
        let data_bytes = data_pages * page;
        // SAFETY: a new shared mapping of a perf descriptor that we own; the kernel checks sizes.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                page + data_bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                fd.as_raw_fd(),
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(Refusal::last());
        }
        let base = NonNull::new(base.cast::<u8>()).ok_or(Refusal::NotUnderstood)?;
        Ok(Ring { base, data_bytes, joined: Vec::new() })
    }

    fn word(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: both words lie in the control page, eight-byte aligned, and are shared with the
        // kernel as atomic counters for as long as the mapping lives.
        unsafe { &*self.base.as_ptr().add(offset).cast::<AtomicU64>() }
    }

    /// The data between two ever-growing positions, as at most two slices.
    fn slices(&self, from: u64, length: usize) -> (&[u8], &[u8]) {
        let start = (from % self.data_bytes as u64) as usize;
        let first = length.min(self.data_bytes - start);
        // SAFETY: both slices lie inside the data pages; the kernel does not write between tail
        // and head until the tail moves, and it moves only after the slices are gone.
        unsafe {
            let data = self.base.as_ptr().add(Ring::page_size());
            (
                std::slice::from_raw_parts(data.add(start), first),
                std::slice::from_raw_parts(data, length - first),
            )
        }
    }

    /// Hands every record that is there to `each`, then gives the room back.
    pub fn drain(&mut self, mut each: impl FnMut(&[u8])) -> RingRead {
        let mut read = RingRead::default();
        let mut joined = std::mem::take(&mut self.joined);
        let head = self.word(DATA_HEAD).load(Ordering::Acquire);
        let mut tail = self.word(DATA_TAIL).load(Ordering::Relaxed);
        while head.wrapping_sub(tail) >= 8 {
            let Some(size) = self.record_size(tail, head) else {
                read.skipped_bytes += head.wrapping_sub(tail);
                break;
            };
            let (front, back) = self.slices(tail, size);
            if back.is_empty() {
                each(front);
            } else {
                joined.clear();
                joined.extend_from_slice(front);
                joined.extend_from_slice(back);
                each(&joined);
            }
            read.records += 1;
            tail = tail.wrapping_add(size as u64);
        }
        self.word(DATA_TAIL).store(head, Ordering::Release);
        self.joined = joined;
        read
    }

    /// The size in the header at a position, if it is possible there.
    fn record_size(&self, tail: u64, head: u64) -> Option<usize> {
        // Headers are eight-byte aligned in a ring whose size is a multiple of eight: never split.
        let (header, _) = self.slices(tail, 8);
        let size = u16::from_ne_bytes(header.get(6..8)?.try_into().ok()?);
        (size >= 8 && u64::from(size) <= head.wrapping_sub(tail)).then_some(usize::from(size))
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: the mapping was made with this base and length, and no slice outlives `self`.
        unsafe {
            libc::munmap(self.base.as_ptr().cast(), Ring::page_size() + self.data_bytes);
        }
    }
}
