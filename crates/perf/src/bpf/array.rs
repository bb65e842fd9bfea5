//! Memory that a program in the kernel and this process share.

use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;

use super::call::{MAP_CREATE, MapCreate, call};
use crate::{Refusal, Ring};

const BPF_MAP_TYPE_ARRAY: u32 = 2;
const BPF_F_MMAPABLE: u32 = 1 << 10;

/// An array of one entry, mapped. The kernel's side reaches it by address, this side as words.
#[derive(Debug)]
pub struct SharedArray {
    fd: OwnedFd,
    base: NonNull<AtomicU64>,
    words: usize,
    mapped_bytes: usize,
}

// SAFETY: the mapping belongs to this value alone, its words are atomic, and nothing in it is tied
// to a thread.
unsafe impl Send for SharedArray {}
// SAFETY: as above; shared access goes through atomics only.
unsafe impl Sync for SharedArray {}

impl SharedArray {
    /// An array of so many bytes, all zero.
    pub fn new(bytes: u32) -> Result<SharedArray, Refusal> {
        let attr = MapCreate {
            map_type: BPF_MAP_TYPE_ARRAY,
            key_size: 4,
            value_size: bytes,
            max_entries: 1,
            map_flags: BPF_F_MMAPABLE,
        };
        // SAFETY: the structure is the one of this command and holds no pointers.
        let fd = unsafe { call(MAP_CREATE, &attr)? };
        let mapped_bytes = (bytes as usize).next_multiple_of(Ring::page_size());
        // SAFETY: a new shared mapping of a descriptor that we own; the kernel checks the size.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                mapped_bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                fd.as_raw_fd(),
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(Refusal::last());
        }
        let base = NonNull::new(base.cast()).ok_or(Refusal::NotUnderstood)?;
        Ok(SharedArray { fd, base, words: bytes as usize / 8, mapped_bytes })
    }

    /// What is shared.
    pub fn words(&self) -> &[AtomicU64] {
        // SAFETY: the mapping is page-aligned, lives as long as `self`, and holds that many words;
        // every access on this side is atomic, as it is on the kernel's (aligned words).
        unsafe { std::slice::from_raw_parts(self.base.as_ptr(), self.words) }
    }

    /// For [`super::Assembler::map_value`].
    pub fn raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}

impl Drop for SharedArray {
    fn drop(&mut self) {
        // SAFETY: the mapping was made with this base and length, and no slice outlives `self`.
        unsafe {
            libc::munmap(self.base.as_ptr().cast(), self.mapped_bytes);
        }
    }
}
