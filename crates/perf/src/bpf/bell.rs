//! A bell that a program in the kernel rings to wake this process.
//!
//! The kernel's own ring buffer, used for nothing but its wake-up: what is in it does not matter,
//! and a full one means that a wake-up is already on its way.

use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use super::call::{MAP_CREATE, MapCreate, call};
use crate::{Refusal, Ring};

const BPF_MAP_TYPE_RINGBUF: u32 = 27;

/// `bpf_ringbuf_output`, for [`super::Assembler::call`]: map, data, size, flags.
pub const RING_THE_BELL: i32 = 130;
/// The flag that wakes whether or not the last one was read.
pub const FORCE_WAKEUP: i32 = 1 << 1;

/// The bell.
#[derive(Debug)]
pub struct Bell {
    fd: OwnedFd,
    /// The consumer's page, then the producer's.
    pages: [NonNull<AtomicU64>; 2],
}

// SAFETY: the mappings belong to this value alone and hold atomic words.
unsafe impl Send for Bell {}

impl Bell {
    /// Kernels before 5.8 have none: the caller then looks now and again.
    pub fn new() -> Result<Bell, Refusal> {
        let page = Ring::page_size();
        let attr = MapCreate {
            map_type: BPF_MAP_TYPE_RINGBUF,
            max_entries: page as u32,
            ..MapCreate::default()
        };
        // SAFETY: the structure is the one of this command and holds no pointers.
        let fd = unsafe { call(MAP_CREATE, &attr)? };
        let map = |offset: usize, protection: i32| -> Result<NonNull<AtomicU64>, Refusal> {
            // SAFETY: one page of a descriptor that we own; the kernel checks offset and rights.
            let base = unsafe {
                libc::mmap(
                    std::ptr::null_mut(),
                    page,
                    protection,
                    libc::MAP_SHARED,
                    fd.as_raw_fd(),
                    offset as libc::off_t,
                )
            };
            match base {
                libc::MAP_FAILED => Err(Refusal::last()),
                base => NonNull::new(base.cast()).ok_or(Refusal::NotUnderstood),
            }
        };
        let consumer = map(0, libc::PROT_READ | libc::PROT_WRITE)?;
        let producer = match map(page, libc::PROT_READ) {
            Ok(producer) => producer,
            Err(refusal) => {
                // SAFETY: mapped just above with this length, and used by nobody yet.
                unsafe { libc::munmap(consumer.as_ptr().cast(), page) };
                return Err(refusal);
            }
        };
        Ok(Bell { fd, pages: [consumer, producer] })
    }

    /// For `poll`: readable when it was rung.
    pub fn raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }

    /// Whether it was rung since the last time this was asked.
    pub fn was_rung(&mut self) -> bool {
        // SAFETY: the first word of each page is the position, shared with the kernel as an
        // atomic counter for as long as the mapping lives.
        let (consumed, produced) = unsafe { (&*self.pages[0].as_ptr(), &*self.pages[1].as_ptr()) };
        let produced = produced.load(Ordering::Acquire);
        consumed.swap(produced, Ordering::AcqRel) != produced
    }
}

impl Drop for Bell {
    fn drop(&mut self) {
        for page in self.pages {
            // SAFETY: each was mapped with the length of a page.
            unsafe {
                libc::munmap(page.as_ptr().cast(), Ring::page_size());
            }
        }
    }
}
