//! What a process may do, and giving it up.

use std::io;

/// Capabilities by the kernel's numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Capability {
    /// Read files and search directories of everyone.
    DacReadSearch = 2,
    /// Look into processes of everyone.
    SysPtrace = 19,
    /// Open performance events on everything.
    Perfmon = 38,
    /// Load programs into the kernel.
    Bpf = 39,
}

#[repr(C)]
struct Header {
    version: u32,
    pid: i32,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Data {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

const VERSION_3: u32 = 0x2008_0522;
const LAST_POSSIBLE: u8 = 63;

/// Gives up everything else, for good: permitted, effective, inheritable, ambient and bounding.
/// What was not held is not gained. To be called before there are other threads, since each thread
/// has its own.
pub fn keep_only(kept: &[Capability]) -> io::Result<()> {
    // Nothing that is executed later gains anything.
    prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0)?;
    prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_CLEAR_ALL as libc::c_ulong, 0)?;
    for number in 0..=LAST_POSSIBLE {
        let kept = kept.iter().any(|&capability| capability as u8 == number);
        // EINVAL: past the last that this kernel knows. EPERM: nothing to lose without SETPCAP.
        if !kept && prctl(libc::PR_CAPBSET_DROP, libc::c_ulong::from(number), 0).is_err() {
            let error = io::Error::last_os_error();
            match error.raw_os_error() {
                Some(libc::EINVAL) => break,
                Some(libc::EPERM) => break,
                _ => return Err(error),
            }
        }
    }
    let mut data = held()?;
    for (half, data) in data.iter_mut().enumerate() {
        let mask = kept
            .iter()
            .map(|&capability| capability as u32)
            .filter(|number| (number / 32) as usize == half)
            .fold(0, |mask, number| mask | 1 << (number % 32));
        *data = Data {
            effective: data.permitted & mask,
            permitted: data.permitted & mask,
            inheritable: 0,
        };
    }
    let header = Header { version: VERSION_3, pid: 0 };
    // SAFETY: version 3 reads two data structures.
    match unsafe { libc::syscall(libc::SYS_capset, &raw const header, data.as_ptr()) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

fn held() -> io::Result<[Data; 2]> {
    let mut data = [Data::default(); 2];
    let mut header = Header { version: VERSION_3, pid: 0 };
    // SAFETY: version 3 writes two data structures.
    match unsafe { libc::syscall(libc::SYS_capget, &raw mut header, data.as_mut_ptr()) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(data),
    }
}

fn prctl(option: libc::c_int, first: libc::c_ulong, second: libc::c_ulong) -> io::Result<()> {
    // SAFETY: these options take numbers only.
    match unsafe { libc::prctl(option, first, second, 0, 0) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}
