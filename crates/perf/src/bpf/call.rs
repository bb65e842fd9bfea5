//! The `bpf()` system call itself.

use std::os::fd::{FromRawFd, OwnedFd};

use crate::Refusal;

pub(super) const MAP_CREATE: u32 = 0;
pub(super) const PROG_LOAD: u32 = 5;

/// The head of `union bpf_attr` for creating a map.
#[repr(C)]
#[derive(Default)]
pub(super) struct MapCreate {
    pub(super) map_type: u32,
    pub(super) key_size: u32,
    pub(super) value_size: u32,
    pub(super) max_entries: u32,
    pub(super) map_flags: u32,
}

/// The head of `union bpf_attr` for loading a program.
#[repr(C)]
#[derive(Default)]
pub(super) struct ProgLoad {
    pub(super) prog_type: u32,
    pub(super) insn_count: u32,
    pub(super) insns: u64,
    pub(super) license: u64,
    pub(super) log_level: u32,
    pub(super) log_size: u32,
    pub(super) log_buf: u64,
    pub(super) kern_version: u32,
    pub(super) prog_flags: u32,
    pub(super) prog_name: [u8; 16],
}

/// Makes the call; what comes back is a new descriptor.
///
/// # Safety
/// `T` must be the head of the `bpf_attr` of that command, and pointers inside must stay valid
/// during the call.
pub(super) unsafe fn call<T>(command: u32, attr: &T) -> Result<OwnedFd, Refusal> {
    // SAFETY: the kernel reads `size_of::<T>()` bytes; the caller vouches for what they say.
    let fd = unsafe {
        libc::syscall(libc::SYS_bpf, command, std::ptr::from_ref(attr), size_of::<T>() as u32)
    };
    if fd < 0 {
        return Err(Refusal::last());
    }
    // SAFETY: the descriptor is new and ours.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as i32) })
}
