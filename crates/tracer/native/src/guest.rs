//! The program's memory, read and written without trusting its pointers.
//!
//! It is asked for by the number of the thread: the process goes by that of its first, which may have
//! ended.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;

use crate::memory;

/// Reads as many bytes as there are, up to a length.
pub(crate) fn read(address: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0u8; len];
    let local = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: len };
    // Page by page: what is behind a page that is not there is not asked for.
    let first = (4096 - address % 4096).min(len as u64) as usize;
    let second = (len - first).min(4096);
    let third = len - first - second;
    let mut from = address;
    let remote = [first, second, third].map(|len| {
        let piece = libc::iovec { iov_base: from as *mut _, iov_len: len };
        from = from.wrapping_add(len as u64);
        piece
    });
    // SAFETY: the kernel checks every address; what it writes to is ours.
    let count = unsafe {
        libc::process_vm_readv(libc::gettid(), &raw const local, 1, remote.as_ptr(), 3, 0)
    };
    let count = match count {
        -1 if is_refused() => by_file(|file| file.read_at(&mut bytes, address)),
        _ => count.max(0) as usize,
    };
    bytes.truncate(count);
    bytes
}

/// Whether the last call was refused for what it is: some containers do, and have the same as a file.
fn is_refused() -> bool {
    let why = std::io::Error::last_os_error().raw_os_error();
    matches!(why, Some(libc::EPERM | libc::ENOSYS))
}

/// Does something with the memory as a file, which is not kept open.
fn by_file(act: impl FnOnce(&File) -> std::io::Result<usize>) -> usize {
    let file = OpenOptions::new().read(true).write(true).open("/proc/thread-self/mem");
    file.and_then(|file| act(&file)).unwrap_or(0)
}

/// Writes bytes; whether all could be. The program may write to pages that we guard.
pub(crate) fn write(address: u64, bytes: &[u8]) -> bool {
    write_once(address, bytes) || memory::unguard_all() && write_once(address, bytes)
}

fn write_once(address: u64, bytes: &[u8]) -> bool {
    let local = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    let remote = libc::iovec { iov_base: address as *mut _, iov_len: bytes.len() };
    // SAFETY: the kernel checks every address; ours is only read.
    let count = unsafe {
        libc::process_vm_writev(libc::gettid(), &raw const local, 1, &raw const remote, 1, 0)
    };
    match count {
        -1 if is_refused() => by_file(|file| file.write_at(bytes, address)) == bytes.len(),
        _ => count == bytes.len() as isize,
    }
}

/// Reads words; `None` if not all can be.
pub(crate) fn words<const COUNT: usize>(address: u64) -> Option<[u64; COUNT]> {
    let bytes = read(address, COUNT * 8);
    let mut all = [0; COUNT];
    if bytes.len() < COUNT * 8 {
        return None;
    }
    for (word, piece) in all.iter_mut().zip(bytes.chunks_exact(8)) {
        *word = u64::from_le_bytes(piece.try_into().ok()?);
    }
    Some(all)
}

/// Writes words; whether all could be.
pub(crate) fn write_words(address: u64, words: &[u64]) -> bool {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    write(address, &bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_is_read_and_written_and_what_is_not_is_no_fault() {
        let mut words = [1u64, 2, 3];
        let at = words.as_mut_ptr() as u64;
        assert_eq!(super::words::<3>(at), Some([1, 2, 3]));
        assert!(write_words(at + 8, &[7]));
        assert_eq!(super::words::<3>(at), Some([1, 7, 3]));
        assert_eq!(by_file(|file| file.read_at(&mut [0; 8], at)), 8);
        assert_eq!(read(16, 8), []);
        assert!(!write(16, &[0]));
        assert_eq!(super::words::<1>(16), None);
    }
}
