//! `bpf()`: whether this process may load the collector's kind of program.

use std::os::fd::{FromRawFd, OwnedFd};

use crate::Refusal;

/// What `bpf()` allowed when it was tried.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BpfAbilities {
    /// An array that user space can map, as the collector's tables are.
    pub table: Result<(), Refusal>,
    /// A program for perf events, verified and loaded.
    pub program: Result<(), Refusal>,
}

const BPF_MAP_CREATE: u32 = 0;
const BPF_PROG_LOAD: u32 = 5;
const BPF_MAP_TYPE_ARRAY: u32 = 2;
const BPF_F_MMAPABLE: u32 = 1 << 10;
const BPF_PROG_TYPE_PERF_EVENT: u32 = 7;

/// The head of `union bpf_attr` for creating a map.
#[repr(C)]
#[derive(Default)]
struct MapCreate {
    map_type: u32,
    key_size: u32,
    value_size: u32,
    max_entries: u32,
    map_flags: u32,
}

/// The head of `union bpf_attr` for loading a program.
#[repr(C)]
#[derive(Default)]
struct ProgLoad {
    prog_type: u32,
    insn_count: u32,
    insns: u64,
    license: u64,
    log_level: u32,
    log_size: u32,
    log_buf: u64,
    kern_version: u32,
    prog_flags: u32,
}

/// `r0 = 0; exit`, the smallest program that the verifier accepts.
const RETURN_ZERO: [u64; 2] = [0x0000_0000_0000_00b7, 0x0000_0000_0000_0095];

/// Tries both, and keeps nothing.
pub fn probe_bpf() -> BpfAbilities {
    let table = MapCreate {
        map_type: BPF_MAP_TYPE_ARRAY,
        key_size: 4,
        value_size: 8,
        max_entries: 1,
        map_flags: BPF_F_MMAPABLE,
    };
    let license = c"Dual MIT/GPL";
    let program = ProgLoad {
        prog_type: BPF_PROG_TYPE_PERF_EVENT,
        insn_count: RETURN_ZERO.len() as u32,
        insns: RETURN_ZERO.as_ptr() as u64,
        license: license.as_ptr() as u64,
        ..ProgLoad::default()
    };
    BpfAbilities { table: call(BPF_MAP_CREATE, &table), program: call(BPF_PROG_LOAD, &program) }
}

fn call<T>(command: u32, attr: &T) -> Result<(), Refusal> {
    // SAFETY: the kernel reads `size_of::<T>()` bytes; pointers inside refer to constants.
    let fd = unsafe {
        libc::syscall(libc::SYS_bpf, command, std::ptr::from_ref(attr), size_of::<T>() as u32)
    };
    if fd < 0 {
        return Err(Refusal::last());
    }
    // SAFETY: the descriptor is new and ours; dropping it frees the object.
    drop(unsafe { OwnedFd::from_raw_fd(fd as i32) });
    Ok(())
}
